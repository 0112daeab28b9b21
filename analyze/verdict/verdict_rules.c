/* The rules: what a report must show for each cause, and its sentence. verdict.c evaluates them in the order of the
 * table at the end. Sentences are always in English; `--lang zh` applies only to the table and the epoch line. */
#include "analyze/causes/cores.h"
#include "analyze/verdict/verdict_priv.h"
#include "base/numbers.h"
#include "prof/report/report_fields.h"

#include <math.h>
#include <string.h>

/* Returns the cause for a text that begins with "cannot tell, because ". */
static struct weir_diagnosis_cause *doubt(struct weir_verdict_case *c, double share)
{
    struct weir_diagnosis_cause *cause = weir_verdict_add(c, WEIR_CAUSE_CANNOT_TELL, share, NULL);
    c->doubts_all = true;
    weir_diagnosis_say(cause, "cannot tell, because ");
    return cause;
}

static void unattributed(struct weir_verdict_case *c)
{
    double share = c->demands->of.unattributed;
    if (share > WEIR_VERDICT_OTHER_MOST)
        weir_diagnosis_say(doubt(c, share), "%.0f %% of the workers' time is in no stage", weir_percent(share));
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

static struct weir_change all_cores(const struct weir_demands *d)
{
    struct weir_change change = WEIR_NO_CHANGE;
    change.cores = d->usable;
    return change;
}

/* Predicted for twice the quota, or all cores of the machine if they are fewer. */
static void quota(struct weir_verdict_case *c)
{
    struct weir_core_figures f = core_figures(c);
    struct weir_change twice = WEIR_NO_CHANGE;
    int online = c->report->prof.machine.online;
    if (!weir_quota_is_used_up(&f))
        return;
    twice.cores = fmin(fmax(2 * c->demands->usable, 1), online > 0 ? online : 1);
    weir_diagnosis_say(weir_verdict_add(c, WEIR_CAUSE_QUOTA, f.throttled, &twice),
                       "the CPU quota of %.3g cores is the limit: it was used up in %.0f %% of its periods, and the "
                       "workers were throttled %.0f %% of their time",
                       f.quota_cores, weir_percent(f.periods), weir_percent(f.throttled));
}

/* Stolen time is part of the threads' CPU time. */
static void host(struct weir_verdict_case *c)
{
    static const double STOLEN_MOST = 0.9;
    const struct weir_demands *d = c->demands;
    struct weir_core_figures f = core_figures(c);
    if (!weir_host_takes_cores(&f))
        return;
    double stolen = fmin(f.steal_cores / fmax(d->own_cores + fmax(f.others_cores, 0), 1e-9), STOLEN_MOST);
    struct weir_change calm = weir_change_cheaper(d, stolen * weir_demands_worker_cpu_s(d), 0);
    weir_diagnosis_say(weir_verdict_add(c, WEIR_CAUSE_HOST, f.steal_cores / f.usable, &calm),
                       "the host takes CPU time: the hypervisor gave %.2f of the %.3g cores to other guests (steal)",
                       f.steal_cores, f.usable);
}

static void neighbours(struct weir_verdict_case *c)
{
    struct weir_core_figures f = core_figures(c);
    struct weir_change all = all_cores(c->demands);
    bool workers = c->demands->workers > 0;
    if (!weir_others_take_cores(&f))
        return;
    struct weir_diagnosis_cause *cause = weir_verdict_add(c, WEIR_CAUSE_NEIGHBOURS, f.core_wait, &all);
    weir_diagnosis_say(cause, "other processes take CPU time: %s for a core %.0f %% of %s time",
                       workers ? "the workers wait" : "loading waits", weir_percent(f.core_wait),
                       workers ? "their" : "its");
    if (f.others_cores < 0)
        weir_diagnosis_say(cause, ", so this run gets only %.2f cores", f.own_cores);
    else
        weir_diagnosis_say(cause, "; of %d cores, they use %.2f and this run uses %.2f", f.cores, f.others_cores,
                           f.own_cores);
}

static void too_many_workers(struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    struct weir_change all = all_cores(d);
    if (d->workers > d->usable + 0.5 && d->of.core_wait >= WEIR_VERDICT_CORE_WAIT)
        weir_diagnosis_say(weir_verdict_add(c, WEIR_CAUSE_TOO_MANY_WORKERS, d->of.core_wait, &all),
                           "too many workers for the cores: %d workers share %.3g cores and wait for a core %.0f %% of "
                           "their time",
                           d->workers, d->usable, weir_percent(d->of.core_wait));
}

/* ---- resources that serve one request at a time ---- */

static void library(struct weir_verdict_case *c)
{
    double busy = c->report->fallbacks.busy;
    struct weir_change without = weir_change_cheaper(c->demands, 0, weir_demands_asleep_s(c->demands));
    without.library_s = 0;
    if (busy >= WEIR_VERDICT_BUSY)
        weir_diagnosis_say(weir_verdict_add(c, WEIR_CAUSE_LIBRARY, busy, &without),
                           "the HDF5 library is the limit: frames that only it can read go through one helper process, "
                           "which is busy %.0f %% of the time; %.1f workers wait for it on average",
                           weir_percent(busy), c->report->fallbacks.waiting);
}

/* Adds the cause if the resource is busy. Without it, the lowest of the other bounds applies. Returns NULL otherwise.
 */
static struct weir_diagnosis_cause *find_busy(struct weir_verdict_case *c, enum weir_cause cause,
                                              enum weir_resource resource)
{
    const struct weir_demands *d = c->demands;
    double next = INFINITY, busy = d->each_s[resource] * d->rate;
    if (busy < WEIR_VERDICT_BUSY)
        return NULL;
    for (int i = 0; i < WEIR_RESOURCES; i++)
        if (i != (int)resource && d->bound[i] > 0)
            next = fmin(next, d->bound[i]);
    struct weir_diagnosis_cause *to = weir_verdict_add(c, cause, busy, NULL);
    to->gain = isfinite(next) && d->rate > 0 ? next / d->rate : 0;
    return to;
}

static void gpu_decoder(struct weir_verdict_case *c)
{
    struct weir_diagnosis_cause *cause = find_busy(c, WEIR_CAUSE_GPU_DECODER, WEIR_RESOURCE_ENGINES);
    if (cause)
        weir_diagnosis_say(cause, "the GPU's JPEG engines are the limit: they are busy %.0f %% of the time",
                           weir_percent(cause->share));
}

static void bus(struct weir_verdict_case *c)
{
    struct weir_diagnosis_cause *cause = find_busy(c, WEIR_CAUSE_BUS, WEIR_RESOURCE_BUS);
    if (cause)
        weir_diagnosis_say(cause, "copies to the GPU are the limit: the bus is busy %.0f %% of the time, at %.2f GB/s",
                           weir_percent(cause->share), fmax(c->report->gpu.copy_bytes_per_s, 0) / 1e9);
}

static void epochs_apart(struct weir_verdict_case *c)
{
    const struct weir_report_epochs *later = &c->report->later_epochs;
    if (later->n >= 2 && later->s >= later->n * WEIR_VERDICT_EPOCH_LEAST && later->slowest > 0 &&
        later->fastest >= WEIR_VERDICT_EPOCHS_APART * later->slowest)
        weir_diagnosis_say(doubt(c, 0), "epochs differ too much, from %.0f to %.0f images/s", later->slowest,
                           later->fastest);
}

/* ---- one worker ---- */

/* Returns the gain if no thread waits for another, so that the rate is the lowest bound. */
static double balanced(const struct weir_demands *d)
{
    return d->rate > 0 ? d->bound_rate / d->rate : 0;
}

/* Returns the fraction of a worker's time spent asleep inside tasks. If the kernel does not report waits for a core,
 * they are included. */
static double lost(const struct weir_report_worker *worker)
{
    double lost_s = worker->blocked_s >= 0 ? worker->blocked_s - worker->wait_s : worker->work_s - worker->cpu_s;
    /* Excludes waits for a core, which are not the worker's fault. */
    double had_s = worker->wall_s - fmax(worker->core_wait_s, 0);
    return had_s > 0 ? fmin(fmax(lost_s, 0) / had_s, 1) : 0;
}

static struct weir_diagnosis_cause *slow_worker(struct weir_verdict_case *c, const char *name, double share)
{
    struct weir_diagnosis_cause *cause = weir_verdict_add(c, WEIR_CAUSE_SLOW_WORKER, share, NULL);
    cause->gain = balanced(c->demands);
    snprintf(cause->who, sizeof cause->who, "%s", name);
    return cause;
}

/* One worker loses most of its time and the other workers do not. The limit is higher if a few reads are very slow,
 * because most of these can hit the same worker by chance. */
static void sleeping_worker(struct weir_verdict_case *c)
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
        return;
    others = (others - most) / (prof->n_workers - 1);
    double times = weir_verdict_is_tail(c->report) ? WEIR_VERDICT_SLEEPER_TAIL : WEIR_VERDICT_SLEEPER_TIMES;
    const char *name = prof->workers[slow].name;
    if (most >= WEIR_VERDICT_SLEEPER && most >= times * others)
        weir_diagnosis_say(slow_worker(c, name, most),
                           "worker %s is slow: it spends %.0f %% of its time inside tasks without using a core, "
                           "compared with %.0f %% for the others",
                           name, weir_percent(most), weir_percent(others));
}

/* One worker is always busy and completes the batches that training waits for, while the other workers are mostly idle.
 * Its core is then slower, or its tasks are longer. */
static void busy_worker(struct weir_verdict_case *c)
{
    const struct weir_report *prof = &c->report->prof;
    const struct weir_report_late *late = &c->report->late;
    double share = 0, others = 0;
    if (prof->n_workers < 2 || c->demands->workers < 2)
        return;
    for (int i = 0; i < prof->n_workers; i++) {
        const struct weir_report_worker *worker = &prof->workers[i];
        double work = worker->wall_s > 0 ? worker->work_s / worker->wall_s : 0;
        *(strcmp(worker->name, late->worker) == 0 ? &share : &others) += work;
    }
    others /= prof->n_workers - 1;
    if (share >= WEIR_VERDICT_ONE_BUSY && others <= WEIR_VERDICT_ONE_OTHERS &&
        late->worker_wait_s >= WEIR_VERDICT_ONE_OF_WAITS * c->report->steps.train_wait_s)
        weir_diagnosis_say(slow_worker(c, late->worker, share),
                           "worker %s is slow: it is busy %.0f %% of its time, compared with %.0f %% for the others, "
                           "and training waits for it",
                           late->worker, weir_percent(share), weir_percent(others));
}

/* ---- workers and batches ---- */

static bool are_cores_full(const struct weir_demands *d)
{
    return d->own_cores >= WEIR_VERDICT_CORES_BUSY * d->usable;
}

/* Whether there are cores that more workers could use, if other processes do not use them. */
static bool is_room(const struct weir_demands *d)
{
    return d->workers == 0 ? d->usable >= 2 : d->usable >= d->workers + 0.75;
}

/* Workers are nearly always busy although cores are idle. */
static void too_few_workers(struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    double busy = d->workers == 0 ? 1 : 1 - d->of.idle - d->of.unattributed;
    bool idle = !are_cores_full(d) && d->left - d->own_cores >= WEIR_VERDICT_CORES_IDLE;
    if (!idle || !is_room(d) || weir_verdict_workers_refuted(&c->verdict->facts) || busy < WEIR_VERDICT_WORKERS_BUSY)
        return;
    struct weir_change more = weir_change_more_workers(d);
    struct weir_diagnosis_cause *cause = weir_verdict_add(c, WEIR_CAUSE_TOO_FEW_WORKERS, busy, &more);
    if (d->workers == 0)
        weir_diagnosis_say(cause,
                           "there are no workers: loading and the training step alternate on one thread, while %.3g "
                           "cores are usable",
                           d->usable);
    else
        weir_diagnosis_say(cause,
                           "too few workers: %d, busy %.0f %% of the time, but this run uses only %.2f of %.3g usable "
                           "cores",
                           d->workers, weir_percent(busy), d->own_cores, d->usable);
    weir_verdict_say_others(c, cause);
}

/* Workers are nearly always busy and no core is idle for more of them. Long waits for a core are not the workers'
 * fault, and do not count as busy. */
static void only_workers(struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    const struct weir_report_machine *machine = &c->report->prof.machine;
    double ready = d->of.core_wait + d->of.throttled, taken = ready >= WEIR_VERDICT_CORE_WAIT ? ready : 0;
    double busy = 1 - d->of.idle - d->of.unattributed - taken;
    if (d->workers == 0 || are_cores_full(d) || weir_verdict_workers_refuted(&c->verdict->facts) ||
        busy < WEIR_VERDICT_WORKERS_BUSY)
        return;
    struct weir_change free_cores = weir_change_free_cores(d);
    struct weir_diagnosis_cause *cause = weir_verdict_add(c, WEIR_CAUSE_BUSY_WORKERS, busy, &free_cores);
    if (d->workers == 1)
        weir_diagnosis_say(cause, "the one worker is the limit: it is busy");
    else
        weir_diagnosis_say(cause, "the %d workers are the limit: they are busy", d->workers);
    weir_diagnosis_say(cause, " %.0f %% of the time", weir_percent(busy));
    if (machine->others_cores >= WEIR_VERDICT_OTHERS * d->usable) /* in place of more workers */
        weir_diagnosis_say(cause,
                           ", and other processes use the other core%s (of %d cores, they use %.2f and this run uses "
                           "%.2f)",
                           machine->cores - d->workers >= 2 ? "s" : "", machine->cores, machine->others_cores,
                           d->own_cores);
}

/* The same, if other processes use the cores that more workers could have. */
static void busy_workers(struct weir_verdict_case *c)
{
    if (is_room(c->demands))
        only_workers(c);
}

/* Whether a few steps take most of the time. Batches pile up during these steps and run out afterwards. */
static bool are_steps_uneven(const struct weir_loader_report *report)
{
    static const double OF_TRAINING = 0.1, MEAN_OVER_MEDIAN = 4;
    const struct weir_report_row *row = weir_demands_row(report, "20_train_forward_pass", WEIR_SIDE_CONSUMER);
    return row && row->total_s >= OF_TRAINING * report->steps.train_s && row->p50_s > 0 &&
           row->mean_s >= MEAN_OVER_MEDIAN * row->p50_s;
}

/* Workers and training wait for each other. Excludes slow copies or decoding on a GPU, which also make workers idle.
 * Idle workers explain another cause if they mostly wait for cores. */
static void bursts(struct weir_verdict_case *c)
{
    static const double HALF_BUSY = 0.5, BATCH_S = 0.5e-3; /* a shorter batch takes less time than waking threads */
    const struct weir_demands *d = c->demands;
    const struct weir_report_steps *steps = &c->report->steps;
    double gpu = fmax(d->each_s[WEIR_RESOURCE_BUS], d->each_s[WEIR_RESOURCE_ENGINES]) * d->rate;
    bool uneven = are_steps_uneven(c->report);
    if (are_cores_full(d) || d->workers == 0 || d->of.idle < WEIR_VERDICT_IDLE ||
        c->verdict->found.wait < WEIR_VERDICT_IDLE || gpu >= HALF_BUSY ||
        steps->train_s < BATCH_S * (double)steps->train_batches)
        return;
    struct weir_diagnosis_cause *cause = weir_verdict_add(c, WEIR_CAUSE_BURSTS, d->of.idle, NULL);
    cause->gain = balanced(d);
    if (d->of.idle < runnable(d) && !uneven)
        c->explanations |= WEIR_CAUSE_BIT(BURSTS);
    weir_diagnosis_say(
        cause,
        "too few batches are prefetched (--prefetch %d): the workers are idle %.0f %% of their time, but "
        "training still waits%s",
        c->report->queue_slots > 2 ? c->report->queue_slots - 1 : 1, weir_percent(d->of.idle),
        uneven ? ", because a few steps take far longer than the others" : "");
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

/* Whether the workers sleep while they decode. This takes the workers' time but no core. */
static bool decoder_sleeps(const struct weir_demands *d)
{
    return d->of.blocked >= WEIR_VERDICT_BLOCKED && d->blocked_decode >= 0.5;
}

static const struct {
    enum weir_cause cause;
    const char *name;
} parts[WEIR_CPU_PARTS] = {
    [WEIR_CPU_DECODE] = {WEIR_CAUSE_DECODE, "decoding"},
    [WEIR_CPU_INFLATE] = {WEIR_CAUSE_INFLATE, "unpacking compressed chunks (inflate)"},
    [WEIR_CPU_CONVERT] = {WEIR_CAUSE_CONVERT, "conversion to floats"},
    [WEIR_CPU_READ] = {WEIR_CAUSE_READ_CPU, "copying from the page cache"},
    [WEIR_CPU_COPY] = {WEIR_CAUSE_OTHER_CPU, "copying frames and completing batches"},
    [WEIR_CPU_REST] = {WEIR_CAUSE_OTHER_CPU, "copying frames and completing batches"},
};

/* Names a camera whose images are far slower to decode than those of the other cameras, if there is one. */
static void say_heavy_camera(const struct weir_verdict_case *c, struct weir_diagnosis_cause *cause)
{
    const struct weir_report_sources *sources = &c->report->sources;
    double share, others_s;
    char a[24], b[24];
    int camera = weir_verdict_heavy_camera(sources, &share, &others_s);
    if (camera >= 0)
        weir_diagnosis_say(cause, "; %.0f %% of it is for camera %s (%s per image, %s for the other cameras)",
                           weir_percent(share), sources->cameras[camera].name,
                           weir_report_time(a, sources->cameras[camera].decode.p50_s), weir_report_time(b, others_s));
}

/* Adds what the cores are used for. Without it, its CPU time is saved, and the sleep of a decoder. */
static void add_compute(struct weir_verdict_case *c, int part, double share)
{
    const struct weir_demands *d = c->demands;
    bool decode = parts[part].cause == WEIR_CAUSE_DECODE, asleep = decode && decoder_sleeps(d);
    bool encoded = decode && c->report->setup.encoded;
    const char *kind = encoded ? weir_frame_kind_title(c->report->setup.kind) : "", *space = encoded ? " " : "";
    struct weir_change without = weir_change_cheaper(d, fmax(share, 0) * weir_demands_worker_cpu_s(d),
                                                     asleep ? d->blocked_decode * weir_demands_asleep_s(d) : 0);
    struct weir_diagnosis_cause *cause = weir_verdict_add(c, parts[part].cause, share, &without);
    c->explanations |= UINT64_C(1) << parts[part].cause;
    if (asleep)
        weir_diagnosis_say(cause,
                           "%s%s%s is the limit: the workers spend %.0f %% of their time in it without using a core",
                           kind, space, parts[part].name, weir_percent(d->of.blocked));
    else
        weir_diagnosis_say(cause, "%s%s%s takes %.0f %% of %s CPU time", kind, space, parts[part].name,
                           weir_percent(share), d->workers > 0 ? "the workers'" : "loading's");
    if (decode && !asleep)
        say_heavy_camera(c, cause);
}

void weir_verdict_say_cores(struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    struct weir_diagnosis_cause *first = &c->verdict->found.causes[0];
    char text[sizeof first->text];
    if (!(UINT64_C(1) << first->cause & WEIR_CAUSES_COMPUTE) || !are_cores_full(d) ||
        (first->cause == WEIR_CAUSE_DECODE && decoder_sleeps(d)))
        return;
    snprintf(text, sizeof text, "%s", first->text);
    first->text[0] = '\0';
    weir_diagnosis_say(first, "the CPU cores are the limit: this run keeps %.2f of %.3g usable cores busy, and %s",
                       d->own_cores, d->usable, text);
}

static void slow_decoding(struct weir_verdict_case *c)
{
    if (decoder_sleeps(c->demands))
        weir_rule_slow_decoding(c);
}

static void sleeping_decoder(struct weir_verdict_case *c)
{
    if (decoder_sleeps(c->demands))
        add_compute(c, WEIR_CPU_DECODE, c->demands->decode_share);
}

static int largest_part(const struct weir_demands *d, int except)
{
    int first = -1;
    for (int part = 0; part < WEIR_CPU_PARTS; part++)
        if (part != except && (first < 0 || d->cpu[part] > d->cpu[first]))
            first = part;
    return first;
}

static void first_compute(struct weir_verdict_case *c)
{
    int first = largest_part(c->demands, -1);
    if (!is_compute_relevant(c))
        return;
    if (c->demands->cpu[0] >= 0) {
        add_compute(c, first, c->demands->cpu[first]);
        return;
    }
    weir_diagnosis_say(
        weir_verdict_add(c, WEIR_CAUSE_CANNOT_TELL, 0, NULL),
        "cannot tell, because CPU time was only sampled, with too few samples to attribute it to stages");
}

static void second_compute(struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    int second = largest_part(d, largest_part(d, -1));
    if (is_compute_relevant(c) && d->cpu[second] >= 0.3)
        add_compute(c, second, d->cpu[second]);
}

static void memory_bandwidth(struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    double growth = c->verdict->facts.cpu_growth;
    bool cores = are_cores_full(d) || ((c->found & WEIR_CAUSES_TAKERS) && runnable(d) >= 0.5);
    struct weir_change without = weir_change_cheaper(d, (1 - 1 / fmax(growth, 1)) * weir_demands_worker_cpu_s(d), 0);
    if (!cores || growth < WEIR_VERDICT_CPU_GROWTH)
        return;
    c->explanations |= WEIR_CAUSE_BIT(MEMORY_BANDWIDTH);
    weir_diagnosis_say(
        weir_verdict_add(c, WEIR_CAUSE_MEMORY_BANDWIDTH, growth, &without),
        "the CPU time per image is %.2f times that with one worker: memory bandwidth, hyper-threading or "
        "a lower clock frequency; only hardware counters can tell these apart",
        growth);
}

static void no_resource(struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    struct weir_diagnosis_cause *cause = doubt(c, c->verdict->found.wait);
    weir_diagnosis_say(cause,
                       "no resource is near its limit: this run uses %.0f %% of the usable cores, and the workers are "
                       "busy %.0f %% of their time",
                       weir_percent(d->own_cores / d->usable),
                       weir_percent(1 - d->of.idle - d->of.core_wait - d->of.throttled));
    weir_verdict_say_others(c, cause);
}

/* ---- the table ---- */

#define ANY       UINT64_MAX
#define SERIAL    WEIR_CAUSES_SERIAL
#define WORKER    (SERIAL | WEIR_CAUSE_BIT(SLOW_WORKER))
#define COLD      (WORKER | WEIR_CAUSE_BIT(COLD))
#define STORED    (COLD | WEIR_CAUSES_STORAGE)
#define EXPLAINED (STORED | WEIR_CAUSE_BIT(DECODE))

static const struct weir_verdict_rule rules[] = {
    {0, unattributed},
    {0, quota},
    {0, host},
    {WEIR_CAUSE_BIT(QUOTA), neighbours},
    {WEIR_CAUSE_BIT(QUOTA), too_many_workers},
    {0, library},
    {0, gpu_decoder},
    {0, bus},
    {ANY, epochs_apart},
    {SERIAL, sleeping_worker},
    {WORKER, busy_worker},
    {SERIAL, weir_rule_cold},
    {COLD, weir_rule_server},
    {COLD | WEIR_CAUSES_SERVER, weir_rule_slow_camera},
    {STORED, weir_rule_slow_file},
    {STORED, weir_rule_tail},
    {STORED, weir_rule_storage},
    {STORED, slow_decoding},
    {STORED, sleeping_decoder},
    {EXPLAINED, too_few_workers},
    {EXPLAINED | WEIR_CAUSE_BIT(TOO_FEW_WORKERS), busy_workers},
    {WORKER, bursts},
    {ANY, only_workers},
    {0, first_compute},
    {0, second_compute},
    {0, memory_bandwidth},
    {ANY, no_resource},
};

const struct weir_verdict_rule *weir_verdict_rule_at(int i)
{
    return i < (int)(sizeof rules / sizeof rules[0]) ? &rules[i] : NULL;
}
