/* The rules: what a report must show for each cause. verdict.c evaluates them in the order of the table at the end. */
#include "analyze/causes/cores.h"
#include "analyze/verdict/verdict_priv.h"

#include <math.h>
#include <string.h>

static bool cannot_tell(struct weir_verdict_cause *cause, enum weir_doubt why)
{
    cause->cause = WEIR_CAUSE_CANNOT_TELL;
    cause->doubt.why = why;
    return true;
}

static bool unattributed(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    cause->share = c->demands->of.unattributed;
    return c->demands->of.unattributed > WEIR_VERDICT_OTHER_MOST && cannot_tell(cause, WEIR_DOUBT_OTHER);
}

/* ---- causes that take cores away ---- */

/* Returns the fraction of the workers' time spent running or ready to run. */
static double runnable(const struct weir_demands *d)
{
    return d->of.cpu + d->of.core_wait + d->of.throttled;
}

static struct weir_core_figures core_figures(const struct weir_verdict_case *c)
{
    const struct weir_report_machine *machine = &c->report->prof.machine;
    const struct weir_demands *d = c->demands;
    return (struct weir_core_figures){
        .core_wait = d->of.core_wait,
        .throttled = d->of.throttled,
        .ready = runnable(d),
        .periods = machine->periods > 0 ? (double)machine->throttled / (double)machine->periods : 0,
        .quota_cores = machine->quota_cores,
        .cores = machine->cores,
        .usable = d->usable,
        .own_cores = d->own_cores,
        .others_cores = machine->others_cores,
        .steal_cores = machine->steal_cores,
    };
}

static bool quota(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    struct weir_core_figures figures = core_figures(c);
    cause->share = figures.throttled;
    cause->quota.periods_share = figures.periods;
    cause->quota.cores = figures.quota_cores;
    return weir_quota_is_used_up(&figures);
}

static bool host(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    struct weir_core_figures figures = core_figures(c);
    cause->share = figures.steal_cores / figures.usable;
    cause->host.steal_cores = figures.steal_cores;
    return weir_host_takes_cores(&figures);
}

static bool neighbours(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    struct weir_core_figures figures = core_figures(c);
    cause->share = figures.core_wait;
    cause->neighbours.others_cores = figures.others_cores;
    cause->neighbours.own_cores = figures.own_cores;
    return weir_others_take_cores(&figures);
}

static bool too_many_workers(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = c->demands;
    cause->share = d->of.core_wait;
    cause->count.workers = d->workers;
    cause->count.cores = d->usable;
    return d->workers > d->usable + 0.5 && d->of.core_wait >= WEIR_VERDICT_CORE_WAIT;
}

/* ---- resources that serve one request at a time ---- */

static bool library(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    cause->share = c->report->fallbacks.busy;
    cause->library.waiting = c->report->fallbacks.waiting;
    return cause->share >= WEIR_VERDICT_BUSY;
}

static bool gpu_decoder(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    cause->share = c->demands->each_s[WEIR_RESOURCE_ENGINES] * c->demands->rate;
    return cause->share >= WEIR_VERDICT_BUSY;
}

static bool bus(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    cause->share = c->demands->each_s[WEIR_RESOURCE_BUS] * c->demands->rate;
    cause->bus.bytes_per_s = c->report->gpu.copy_bytes_per_s;
    return cause->share >= WEIR_VERDICT_BUSY;
}

static bool epochs_apart(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    const struct weir_report_epochs *later = &c->report->later_epochs;
    bool apart = later->n >= 2 && later->s >= later->n * WEIR_VERDICT_EPOCH_LEAST && later->slowest > 0 &&
                 later->fastest >= WEIR_VERDICT_EPOCHS_APART * later->slowest;
    cause->doubt.slowest = later->slowest;
    cause->doubt.fastest = later->fastest;
    return apart && cannot_tell(cause, WEIR_DOUBT_EPOCHS);
}

/* ---- one worker ---- */

/* Returns the fraction of a worker's time spent asleep inside tasks. If the kernel does not report waits for a core,
 * they are included. */
static double lost(const struct weir_report_worker *worker)
{
    double lost_s = worker->blocked_s >= 0 ? worker->blocked_s - worker->wait_s : worker->work_s - worker->cpu_s;
    /* Excludes waits for a core, which are not the worker's fault. */
    double had_s = worker->wall_s - fmax(worker->core_wait_s, 0);
    return had_s > 0 ? fmin(fmax(lost_s, 0) / had_s, 1) : 0;
}

static void name_worker(struct weir_verdict_cause *cause, const char *name)
{
    snprintf(cause->worker.name, sizeof cause->worker.name, "%s", name);
}

/* Applies if one worker loses most of its time and the other workers do not. The limit is higher if a few reads are
 * very slow, because most of these can hit the same worker by chance. */
static bool sleeping_worker(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    const struct weir_report *prof = &c->report->prof;
    double most = -1, others = 0;
    int slow = -1;
    for (int i = 0; i < prof->n_workers && c->demands->workers > 1; i++) {
        double of_this = lost(&prof->workers[i]);
        others += of_this;
        if (of_this <= most)
            continue;
        most = of_this;
        slow = i;
    }
    if (slow < 0 || prof->n_workers < 2)
        return false;
    others = (others - most) / (prof->n_workers - 1);
    cause->share = most;
    cause->worker.others_share = others;
    name_worker(cause, prof->workers[slow].name);
    double times = weir_verdict_is_tail(c->report) ? WEIR_VERDICT_SLEEPER_TAIL : WEIR_VERDICT_SLEEPER_TIMES;
    return most >= WEIR_VERDICT_SLEEPER && most >= times * others;
}

/* Applies if one worker is always busy and completes the batches that training waits for, while the other workers are
 * mostly idle. Its core is then slower, or its tasks are longer. */
static bool busy_worker(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    const struct weir_report *prof = &c->report->prof;
    const struct weir_report_late *late = &c->report->late;
    double others = 0;
    if (prof->n_workers < 2 || c->demands->workers < 2)
        return false;
    for (int i = 0; i < prof->n_workers; i++) {
        const struct weir_report_worker *worker = &prof->workers[i];
        double work = worker->wall_s > 0 ? worker->work_s / worker->wall_s : 0;
        if (strcmp(worker->name, late->worker) == 0)
            cause->share = work;
        else
            others += work;
    }
    cause->worker.others_share = others / (prof->n_workers - 1);
    cause->worker.on_core = true;
    name_worker(cause, late->worker);
    return cause->share >= WEIR_VERDICT_ONE_BUSY && cause->worker.others_share <= WEIR_VERDICT_ONE_OTHERS &&
           late->worker_wait_s >= WEIR_VERDICT_ONE_OF_WAITS * c->report->steps.train_wait_s;
}

/* ---- workers and batches ---- */

/* Whether the workers sleep while they decode. This takes the workers' time but no core. */
static bool decoder_sleeps(const struct weir_demands *d)
{
    return d->of.blocked >= WEIR_VERDICT_BLOCKED && d->blocked_decode >= 0.5;
}

static bool slow_decoding(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    return decoder_sleeps(c->demands) && weir_rule_slow_decoding(c, cause);
}

static bool sleeping_decoder(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    cause->share = c->demands->decode_share;
    cause->compute.own_cores = c->demands->own_cores;
    cause->compute.usable = c->demands->usable;
    return decoder_sleeps(c->demands);
}

bool weir_verdict_workers_refuted(const struct weir_verdict_facts *facts)
{
    return facts->more_workers > 0 && facts->more_workers < WEIR_VERDICT_WORTH;
}

static bool are_cores_full(const struct weir_demands *d)
{
    return d->own_cores >= WEIR_VERDICT_CORES_BUSY * d->usable;
}

/* Whether there are cores that more workers could use, if other processes do not use them. */
static bool is_room(const struct weir_demands *d)
{
    return d->workers == 0 ? d->usable >= 2 : d->usable >= d->workers + 0.75;
}

/* Applies if workers are nearly always busy although cores are idle. */
static bool too_few_workers(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = c->demands;
    double busy = 1 - d->of.idle - d->of.unattributed;
    bool idle = !are_cores_full(d) && d->left - d->own_cores >= WEIR_VERDICT_CORES_IDLE;
    cause->share = d->workers == 0 ? 1 : busy;
    cause->count.workers = d->workers;
    cause->count.cores = d->usable;
    return idle && is_room(d) && !weir_verdict_workers_refuted(c->facts) &&
           (d->workers == 0 || busy >= WEIR_VERDICT_WORKERS_BUSY);
}

/* Applies if workers are nearly always busy and no core is idle for more of them. Long waits for a core are not the
 * workers' fault, and do not count as busy. */
static bool only_workers(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = c->demands;
    double ready = d->of.core_wait + d->of.throttled, taken = ready >= WEIR_VERDICT_CORE_WAIT ? ready : 0;
    cause->share = 1 - d->of.idle - d->of.unattributed - taken;
    cause->count.workers = d->workers;
    cause->count.cores = d->usable;
    return d->workers > 0 && !are_cores_full(d) && !weir_verdict_workers_refuted(c->facts) &&
           cause->share >= WEIR_VERDICT_WORKERS_BUSY;
}

/* Same, if other processes use the cores that more workers could have. */
static bool busy_workers(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    return is_room(c->demands) && only_workers(c, cause);
}

/* Whether a few steps take most of the time. Batches pile up during these steps and run out afterwards. */
static bool are_steps_uneven(const struct weir_loader_report *report)
{
    static const double OF_TRAINING = 0.1, MEAN_OVER_MEDIAN = 4;
    const struct weir_report_row *row = weir_demands_row(report, "20_train_forward_pass", WEIR_SIDE_CONSUMER);
    return row && row->total_s >= OF_TRAINING * report->steps.train_s && row->p50_s > 0 &&
           row->mean_s >= MEAN_OVER_MEDIAN * row->p50_s;
}

/* Applies if workers and training wait for each other. Excludes slow copies or decoding on a GPU, which also make
 * workers idle. */
static bool bursts(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    static const double HALF_BUSY = 0.5, BATCH_S = 0.5e-3; /* a shorter batch takes less time than waking threads */
    const struct weir_demands *d = c->demands;
    const struct weir_report_steps *steps = &c->report->steps;
    double gpu = fmax(d->each_s[WEIR_RESOURCE_BUS], d->each_s[WEIR_RESOURCE_ENGINES]) * d->rate;
    cause->share = d->of.idle;
    cause->bursts.slots = c->report->queue_slots;
    cause->bursts.uneven_steps = are_steps_uneven(c->report);
    return !are_cores_full(d) && d->workers > 0 && d->of.idle >= WEIR_VERDICT_IDLE && c->wait >= WEIR_VERDICT_IDLE &&
           gpu < HALF_BUSY && steps->train_s >= BATCH_S * (double)steps->train_batches;
}

/* ---- use of the cores ---- */

/* Whether the use of the cores limits the run, or explains another cause. */
static bool is_compute_relevant(const struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    bool waits_for_reads = (c->found & (WEIR_CAUSES_STORAGE | WEIR_CAUSE_BIT(COLD))) != 0;
    return are_cores_full(d) || ((c->found & WEIR_CAUSES_TAKERS) && runnable(d) >= 0.5) ||
           (c->found & WEIR_CAUSES_WORKERS) || (waits_for_reads && runnable(d) >= WEIR_VERDICT_RUNNABLE) ||
           (d->workers == 0 && c->found == 0);
}

static bool fill_compute(const struct weir_demands *d, struct weir_verdict_cause *cause, int part)
{
    static const enum weir_cause causes[WEIR_CPU_PARTS] = {
        [WEIR_CPU_DECODE] = WEIR_CAUSE_DECODE,   [WEIR_CPU_INFLATE] = WEIR_CAUSE_INFLATE,
        [WEIR_CPU_CONVERT] = WEIR_CAUSE_CONVERT, [WEIR_CPU_READ] = WEIR_CAUSE_READ_CPU,
        [WEIR_CPU_COPY] = WEIR_CAUSE_OTHER_CPU,  [WEIR_CPU_REST] = WEIR_CAUSE_OTHER_CPU,
    };
    cause->cause = causes[part];
    cause->share = d->cpu[part];
    cause->compute.own_cores = d->own_cores;
    cause->compute.usable = d->usable;
    return true;
}

static int largest_part(const struct weir_demands *d, int except)
{
    int first = -1;
    for (int part = 0; part < WEIR_CPU_PARTS; part++)
        if (part != except && (first < 0 || d->cpu[part] > d->cpu[first]))
            first = part;
    return first;
}

static bool first_compute(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    if (!is_compute_relevant(c))
        return false;
    return c->demands->cpu[0] < 0 ? cannot_tell(cause, WEIR_DOUBT_SAMPLED)
                                  : fill_compute(c->demands, cause, largest_part(c->demands, -1));
}

static bool second_compute(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = c->demands;
    int second = largest_part(d, largest_part(d, -1));
    return is_compute_relevant(c) && d->cpu[second] >= 0.3 && fill_compute(d, cause, second);
}

static bool memory_bandwidth(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    bool cores = are_cores_full(c->demands) || ((c->found & WEIR_CAUSES_TAKERS) && runnable(c->demands) >= 0.5);
    cause->share = c->facts->cpu_growth;
    return cores && cause->share >= WEIR_VERDICT_CPU_GROWTH;
}

static bool no_resource(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    cause->share = c->wait;
    cause->doubt.cores_used = c->demands->own_cores / c->demands->usable;
    cause->doubt.at_work = 1 - c->demands->of.idle - c->demands->of.core_wait - c->demands->of.throttled;
    return cannot_tell(cause, WEIR_DOUBT_NO_RESOURCE);
}

/* ---- the table ---- */

#define ANY       UINT64_MAX
#define SERIAL    WEIR_CAUSES_SERIAL
#define WORKER    (SERIAL | WEIR_CAUSE_BIT(SLOW_WORKER))
#define COLD      (WORKER | WEIR_CAUSE_BIT(COLD))
#define STORED    (COLD | WEIR_CAUSES_STORAGE)
#define EXPLAINED (STORED | WEIR_CAUSE_BIT(DECODE))

static const struct weir_verdict_rule rules[] = {
    {WEIR_CAUSE_CANNOT_TELL, 0, unattributed},
    {WEIR_CAUSE_QUOTA, 0, quota},
    {WEIR_CAUSE_HOST, 0, host},
    {WEIR_CAUSE_NEIGHBOURS, WEIR_CAUSE_BIT(QUOTA), neighbours},
    {WEIR_CAUSE_TOO_MANY_WORKERS, WEIR_CAUSE_BIT(QUOTA), too_many_workers},
    {WEIR_CAUSE_LIBRARY, 0, library},
    {WEIR_CAUSE_GPU_DECODER, 0, gpu_decoder},
    {WEIR_CAUSE_BUS, 0, bus},
    {WEIR_CAUSE_CANNOT_TELL, ANY, epochs_apart},
    {WEIR_CAUSE_SLOW_WORKER, SERIAL, sleeping_worker},
    {WEIR_CAUSE_SLOW_WORKER, WORKER, busy_worker},
    {WEIR_CAUSE_COLD, SERIAL, weir_rule_cold},
    {WEIR_CAUSE_SERVER_LATENCY, COLD, weir_rule_server},
    {WEIR_CAUSE_SLOW_CAMERA, COLD | WEIR_CAUSES_SERVER, weir_rule_slow_camera},
    {WEIR_CAUSE_SLOW_FILE, STORED, weir_rule_slow_file},
    {WEIR_CAUSE_STORAGE_TAIL, STORED, weir_rule_tail},
    {WEIR_CAUSE_STORAGE, STORED, weir_rule_storage},
    {WEIR_CAUSE_SLOW_CAMERA, STORED, slow_decoding},
    {WEIR_CAUSE_DECODE, STORED, sleeping_decoder},
    {WEIR_CAUSE_TOO_FEW_WORKERS, EXPLAINED, too_few_workers},
    {WEIR_CAUSE_BUSY_WORKERS, EXPLAINED | WEIR_CAUSE_BIT(TOO_FEW_WORKERS), busy_workers},
    {WEIR_CAUSE_BURSTS, WORKER, bursts},
    {WEIR_CAUSE_BUSY_WORKERS, ANY, only_workers},
    {WEIR_CAUSE_DECODE, 0, first_compute},
    {WEIR_CAUSE_OTHER_CPU, 0, second_compute},
    {WEIR_CAUSE_MEMORY_BANDWIDTH, 0, memory_bandwidth},
    {WEIR_CAUSE_CANNOT_TELL, ANY, no_resource},
};

const struct weir_verdict_rule *weir_verdict_rule_at(int i)
{
    return i < (int)(sizeof rules / sizeof rules[0]) ? &rules[i] : NULL;
}
