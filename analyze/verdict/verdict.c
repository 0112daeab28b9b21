/* The causes, in order. What takes cores away comes first, because it stretches everything else; then the resource that
 * is nearest to its limit. */
#include "analyze/verdict/verdict.h"
#include "analyze/verdict/verdict_priv.h"

#include <math.h>
#include <string.h>

struct weir_found *weir_verdict_add(struct weir_verdict *verdict, enum weir_cause cause, double share)
{
    bool is_room = !weir_verdict_has(verdict, cause) && verdict->n_causes < WEIR_VERDICT_CAUSES;
    struct weir_found *found = is_room ? &verdict->causes[verdict->n_causes++] : &verdict->no_cause_;
    *found = (struct weir_found){.cause = cause, .share = share};
    return found;
}

bool weir_verdict_has(const struct weir_verdict *verdict, enum weir_cause cause)
{
    for (int i = 0; i < verdict->n_causes; i++)
        if (verdict->causes[i].cause == cause)
            return true;
    return false;
}

static void doubt(struct weir_verdict *verdict, enum weir_doubt why, double share, double a, double b)
{
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_CANNOT_TELL, share);
    found->doubt = why;
    found->a = a;
    found->b = b;
}

/* ---- the consumer ---- */

/* Without the wait for the run's first batch, in which nothing can be ahead yet. A host that waits while the GPU still
 * computes holds nothing up. */
static double data_wait(const struct weir_loader_report *report)
{
    const struct weir_report_steps *steps = &report->steps;
    double first_s = fmin(steps->first_wait_s, steps->train_wait_s);
    double train_s = steps->train_s - first_s;
    double wait = train_s > 0 ? fmin(fmax(steps->train_wait_s - first_s, 0) / train_s, 1) : 0;
    return report->gpu.used ? fmin(wait, fmax(1 - report->gpu.busy, 0)) : wait;
}

static double step_row(const struct weir_loader_report *report, const char *name)
{
    const struct weir_report_row *row =
        weir_demands_row(report, name, report->gpu.used ? WEIR_SIDE_GPU : WEIR_SIDE_CONSUMER);
    return row ? row->total_s : 0;
}

static void fill_shares(struct weir_step_shares *shares, const struct weir_loader_report *report)
{
    double train_s = report->steps.train_s;
    if (train_s <= 0 || !report->timing)
        return;
    shares->known = true;
    shares->wait = fmin(report->steps.train_wait_s / train_s, 1);
    const char *forward = report->steps.validation ? "10_val_forward_pass" : "20_train_forward_pass";
    shares->forward = step_row(report, forward) / train_s;
    if (!report->steps.validation) {
        shares->backward = step_row(report, "21_backward") / train_s;
        shares->optimiser = step_row(report, "22_optimizer_step") / train_s;
    }
    shares->backward_over_forward = shares->forward > 0 ? shares->backward / shares->forward : 0;
    double sum = shares->wait + shares->forward + shares->backward + shares->optimiser;
    if (sum > 1) { /* host and stream at the same time */
        shares->wait /= sum;
        shares->forward /= sum;
        shares->backward /= sum;
        shares->optimiser /= sum;
    }
    shares->other = fmax(1 - sum, 0);
}

/* Of its time it could compute, but others had the cores, or a quota was used up. */
static double waits_for_core(const struct weir_report_worker *thread)
{
    bool known = thread->wall_s > 0 && thread->core_wait_s >= 0 && thread->throttled_s >= 0;
    return known ? (thread->core_wait_s + thread->throttled_s) / thread->wall_s : 0;
}

/* A GPU's events say whether it was busy; without them the consumer's own CPU time says only whether it had a core, or
 * was ready for one. */
static void find_consumer(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    static const double BUSY = 0.8;
    const struct weir_report_worker *consumer = &report->prof.consumer;
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_CONSUMER, 1 - verdict->wait);
    double cpu = consumer->wall_s > 0 ? consumer->cpu_s / consumer->wall_s : 0;
    double core_wait = report->gpu.used ? 0 : waits_for_core(consumer);
    found->a = report->gpu.used ? report->gpu.busy : cpu;
    found->core_wait = core_wait >= WEIR_VERDICT_CORE_WAIT ? core_wait : 0;
    if (report->gpu.used ? report->gpu.busy >= BUSY : cpu + core_wait >= BUSY)
        found->consumer = WEIR_CONSUMER_COMPUTING;
    else if (weir_verdict_idle(found, report))
        return;
    else if (report->gpu.used)
        found->consumer = report->gpu.sync_steps ? WEIR_CONSUMER_SYNC_BOUND : WEIR_CONSUMER_LAUNCH_BOUND;
    else
        found->consumer = WEIR_CONSUMER_UNKNOWN;
}

/* ---- who takes the cores ---- */

static void find_quota(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_report_machine *machine = &report->prof.machine;
    double periods = machine->periods > 0 ? (double)machine->throttled / (double)machine->periods : 0;
    bool throttled = fmax(verdict->demands.of.throttled, periods) >= WEIR_VERDICT_THROTTLED;
    bool used_up = verdict->demands.own_cores >= WEIR_VERDICT_CORES_BUSY * machine->quota_cores;
    if (machine->quota_cores <= 0 || !(throttled || (used_up && machine->quota_cores < machine->cores)))
        return;
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_QUOTA, verdict->demands.of.throttled);
    found->a = periods;
    found->b = machine->quota_cores;
}

static void find_host(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_worker_time *of = &verdict->demands.of;
    double steal = report->prof.machine.steal_cores, runnable = of->cpu + of->core_wait + of->throttled;
    if (steal >= WEIR_VERDICT_STEAL * verdict->demands.usable && runnable >= WEIR_VERDICT_RUNNABLE)
        weir_verdict_add(verdict, WEIR_CAUSE_HOST, steal / verdict->demands.usable)->a = steal;
}

/* Who waits for cores that this process does not use itself waits for others; who waits for cores that it uses up has
 * more workers than cores. */
static void find_waits_for_cores(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    double others = report->prof.machine.others_cores / d->usable;
    bool many_others = others >= WEIR_VERDICT_OTHERS_MANY;
    double least = many_others ? WEIR_VERDICT_CORE_WAIT / 2 : WEIR_VERDICT_CORE_WAIT;
    bool own_busy = d->own_cores >= WEIR_VERDICT_CORES_BUSY * d->usable;
    if (d->of.core_wait < least)
        return;
    if (!own_busy && (others >= WEIR_VERDICT_OTHERS || report->prof.machine.others_cores < 0)) {
        struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_NEIGHBOURS, d->of.core_wait);
        found->a = report->prof.machine.others_cores;
        found->b = d->own_cores;
    }
    if (d->workers > d->usable + 0.5 && d->of.core_wait >= WEIR_VERDICT_CORE_WAIT) {
        struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_TOO_MANY_WORKERS, d->of.core_wait);
        found->a = d->workers;
        found->b = d->usable;
    }
}

/* ---- what the cores are used for ---- */

static void find_compute(struct weir_verdict *verdict)
{
    static const enum weir_cause causes[WEIR_CPU_PARTS] = {
        [WEIR_CPU_DECODE] = WEIR_CAUSE_DECODE,   [WEIR_CPU_INFLATE] = WEIR_CAUSE_INFLATE,
        [WEIR_CPU_CONVERT] = WEIR_CAUSE_CONVERT, [WEIR_CPU_READ] = WEIR_CAUSE_READ_CPU,
        [WEIR_CPU_COPY] = WEIR_CAUSE_OTHER_CPU,  [WEIR_CPU_REST] = WEIR_CAUSE_OTHER_CPU,
    };
    const struct weir_demands *d = &verdict->demands;
    int first = 0, second = -1;
    if (d->cpu[0] < 0) {
        doubt(verdict, WEIR_DOUBT_SAMPLED, 0, d->of.cpu, 0);
        return;
    }
    for (int part = 1; part < WEIR_CPU_PARTS; part++)
        if (d->cpu[part] > d->cpu[first])
            first = part;
    for (int part = 0; part < WEIR_CPU_PARTS; part++)
        if (part != first && d->cpu[part] >= 0.3 && (second < 0 || d->cpu[part] > d->cpu[second]))
            second = part;
    for (int i = 0; i < 2; i++) {
        int part = i == 0 ? first : second;
        if (part < 0)
            continue;
        struct weir_found *found = weir_verdict_add(verdict, causes[part], d->cpu[part]);
        found->a = d->own_cores;
        found->b = d->usable;
    }
}

static void find_memory_bandwidth(struct weir_verdict *verdict, const struct weir_verdict_facts *facts)
{
    if (facts && facts->cpu_growth >= WEIR_VERDICT_CPU_GROWTH)
        weir_verdict_add(verdict, WEIR_CAUSE_MEMORY_BANDWIDTH, facts->cpu_growth);
}

/* ---- resources that serve one at a time ---- */

static bool find_serial(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_demands *d = &verdict->demands;
    double busy[] = {report->fallbacks.busy, d->each_s[WEIR_RESOURCE_ENGINES] * d->rate,
                     d->each_s[WEIR_RESOURCE_BUS] * d->rate};
    static const enum weir_cause causes[] = {WEIR_CAUSE_LIBRARY, WEIR_CAUSE_GPU_DECODER, WEIR_CAUSE_BUS};
    bool any = false;
    for (int i = 0; i < 3; i++) {
        if (busy[i] < WEIR_VERDICT_SERIAL_BUSY)
            continue;
        struct weir_found *found = weir_verdict_add(verdict, causes[i], busy[i]);
        found->a = i == 0 ? report->fallbacks.waiting : i == 2 ? report->gpu.copy_bytes_per_s : 0;
        any = true;
    }
    return any;
}

/* Of a worker's time, that in which it was at work and asleep; where the kernel does not say who waits for cores, off
 * them for whatever reason. */
static double lost(const struct weir_report_worker *worker)
{
    double lost_s = worker->blocked_s >= 0 ? worker->blocked_s - worker->wait_s : worker->work_s - worker->cpu_s;
    double had_s = worker->wall_s - fmax(worker->core_wait_s, 0); /* others' cores are nobody's fault here */
    return had_s > 0 ? fmin(fmax(lost_s, 0) / had_s, 1) : 0;
}

/* One worker that is always at work, and whose tasks complete the batches that are waited for, while the others have
 * little to do: its core is slower, or its tasks are longer. */
static bool find_busy_worker(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    static const double BUSY = 0.8, OTHERS = 0.5, OF_WAITS = 0.6;
    const struct weir_report *prof = &report->prof;
    const struct weir_report_late *late = &report->late;
    double of_this = 0, others = 0;
    for (int i = 0; i < prof->n_workers; i++) {
        const struct weir_report_worker *worker = &prof->workers[i];
        double work = worker->wall_s > 0 ? worker->work_s / worker->wall_s : 0;
        if (strcmp(worker->name, late->worker) == 0)
            of_this = work;
        else
            others += work;
    }
    others /= prof->n_workers - 1;
    if (of_this < BUSY || others > OTHERS || late->worker_wait_s < OF_WAITS * report->steps.train_wait_s)
        return false;
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_SLOW_WORKER, of_this);
    found->a = others;
    found->on_core = true;
    memcpy(found->name, late->worker, sizeof late->worker);
    return true;
}

/* One worker that loses most of its time while the others do not. The few slow reads of a tail may by chance be one
 * worker's mostly. */
static bool find_slow_worker(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    static const double LOSES = 0.5, TIMES = 3, TIMES_OF_TAIL = 10;
    const struct weir_report *prof = &report->prof;
    double most = -1, others = 0;
    int slow = -1;
    for (int i = 0; i < prof->n_workers && verdict->demands.workers > 1; i++) {
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
    if (most < LOSES || most < (weir_verdict_is_tail(report) ? TIMES_OF_TAIL : TIMES) * others)
        return find_busy_worker(verdict, report);
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_SLOW_WORKER, most);
    found->a = others;
    memcpy(found->name, prof->workers[slow].name, sizeof prof->workers[slow].name);
    return true;
}

/* Few steps take most of the time of all: batches pile up during them and run out behind them. */
static bool are_steps_uneven(const struct weir_loader_report *report)
{
    static const double OF_TRAINING = 0.1, MEAN_OVER_MEDIAN = 4;
    const struct weir_report_row *row = weir_demands_row(report, "20_train_forward_pass", WEIR_SIDE_CONSUMER);
    return row && row->total_s >= OF_TRAINING * report->steps.train_s && row->p50_s > 0 &&
           row->mean_s >= MEAN_OVER_MEDIAN * row->p50_s;
}

/* Where a GPU's copies or decoders are behind, workers have nothing to do either. */
static void find_bursts(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    static const double HALF_BUSY = 0.5, BATCH_S = 0.5e-3; /* a shorter batch takes less than waking threads for it */
    const struct weir_demands *d = &verdict->demands;
    const struct weir_report_steps *steps = &report->steps;
    if (steps->train_s < BATCH_S * (double)steps->train_batches)
        return;
    double gpu = fmax(d->each_s[WEIR_RESOURCE_BUS], d->each_s[WEIR_RESOURCE_ENGINES]) * d->rate;
    if (d->workers == 0 || d->of.idle < WEIR_VERDICT_IDLE || verdict->wait < WEIR_VERDICT_IDLE || gpu >= HALF_BUSY)
        return;
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_BURSTS, d->of.idle);
    found->a = report->queue_slots;
    found->b = are_steps_uneven(report);
}

/* Workers that are nearly always at work while cores are free. */
static void find_too_few(struct weir_verdict *verdict)
{
    const struct weir_demands *d = &verdict->demands;
    double busy = 1 - d->of.idle - d->of.other;
    bool room = d->own_cores < WEIR_VERDICT_CORES_BUSY * d->usable && d->usable >= d->workers + 0.75;
    if (d->workers == 0 ? d->usable < 2 : !room || busy < WEIR_VERDICT_WORKERS_BUSY)
        return;
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_TOO_FEW_WORKERS, d->workers == 0 ? 1 : busy);
    found->a = d->workers;
    found->b = d->usable;
}

/* A decoder that waits for something takes no cores, and its workers' time all the same. */
static void find_asleep_decoder(struct weir_verdict *verdict, const struct weir_loader_report *report, bool explained)
{
    const struct weir_demands *d = &verdict->demands;
    if (explained || d->of.blocked < WEIR_VERDICT_BLOCKED || d->blocked_decode < 0.5)
        return;
    if (weir_verdict_slow_decoding(verdict, report))
        return;
    struct weir_found *found = weir_verdict_add(verdict, WEIR_CAUSE_DECODE, d->decode_share);
    found->a = d->own_cores;
    found->b = d->usable;
}

/* ---- the order ---- */

static bool later_epochs_apart(const struct weir_loader_report *report)
{
    const struct weir_report_epochs *later = &report->later_epochs;
    return later->n >= 2 && later->s >= later->n * WEIR_VERDICT_EPOCH_LEAST && later->slowest > 0 &&
           later->fastest >= WEIR_VERDICT_EPOCHS_APART * later->slowest;
}

/* What advice is made of was measured in every run that is not too short. */
_Static_assert(WEIR_VERDICT_BATCHES_LONG >= WEIR_REPORT_BATCHES_LEAST &&
                   WEIR_VERDICT_BATCHES_LEAST >= WEIR_REPORT_BATCHES_LEAST,
               "a verdict without figures");

/* Batches that lay ready at the beginning are few among so many. */
static bool is_too_short(const struct weir_loader_report *report)
{
    const struct weir_report_steps *steps = &report->steps;
    bool is_long = steps->train_batches >= WEIR_VERDICT_BATCHES_LONG && steps->train_s >= WEIR_VERDICT_SECONDS_LONG &&
                   steps->train_batches >= 2 * (uint64_t)report->queue_slots;
    return steps->train_s < WEIR_VERDICT_SECONDS_LEAST ||
           (steps->train_batches < WEIR_VERDICT_BATCHES_LEAST && !is_long);
}

/* Nothing else is said then. */
static bool is_hopeless(struct weir_verdict *verdict, const struct weir_loader_report *report)
{
    const struct weir_report_steps *steps = &report->steps;
    if (!report->timing)
        doubt(verdict, WEIR_DOUBT_NO_TIMING, 0, 0, 0);
    else if (!verdict->demands.known)
        doubt(verdict, WEIR_DOUBT_NO_FIGURES, 0, 0, 0);
    else if (is_too_short(report))
        doubt(verdict, WEIR_DOUBT_TOO_SHORT, 0, (double)steps->train_batches, steps->train_s);
    return verdict->n_causes > 0;
}

/* What takes cores away stands in verdict already; serial: so does a resource that serves one at a time. */
static void find_own(struct weir_verdict *verdict, const struct weir_loader_report *report,
                     const struct weir_verdict_facts *facts, bool serial, bool external)
{
    static const double IDLE_MUCH = 1; /* of the time in which workers are ready to run */
    const struct weir_demands *d = &verdict->demands;
    int n_before = verdict->n_causes;
    double runnable = d->of.cpu + d->of.core_wait + d->of.throttled;
    bool slow_worker = !serial && find_slow_worker(verdict, report);
    bool cold = !serial && weir_verdict_cold(verdict, report);
    bool storage = !serial && !slow_worker && !cold && weir_verdict_storage(verdict, report);
    find_asleep_decoder(verdict, report, serial || slow_worker || cold || storage);
    bool full = d->own_cores >= WEIR_VERDICT_CORES_BUSY * d->usable;
    bool cores = full || (external && runnable >= 0.5);
    if (verdict->n_causes == n_before && !serial)
        find_too_few(verdict);
    bool bursts = !full && !slow_worker && !serial;
    if (bursts && (!external || d->of.idle >= IDLE_MUCH * runnable || are_steps_uneven(report)))
        find_bursts(verdict, report);
    bool too_few = weir_verdict_has(verdict, WEIR_CAUSE_TOO_FEW_WORKERS);
    if (cores || too_few || (runnable >= WEIR_VERDICT_RUNNABLE && (storage || cold)) ||
        (d->workers == 0 && verdict->n_causes == 0))
        find_compute(verdict);
    if (bursts)
        find_bursts(verdict, report);
    if (cores)
        find_memory_bandwidth(verdict, facts);
}

static void find_causes(struct weir_verdict *verdict, const struct weir_loader_report *report,
                        const struct weir_verdict_facts *facts)
{
    const struct weir_demands *d = &verdict->demands;
    if (d->of.other > WEIR_VERDICT_OTHER_MOST)
        doubt(verdict, WEIR_DOUBT_OTHER, d->of.other, 0, 0);
    find_quota(verdict, report);
    find_host(verdict, report);
    if (!weir_verdict_has(verdict, WEIR_CAUSE_QUOTA))
        find_waits_for_cores(verdict, report);
    bool external = verdict->n_causes > 0, serial = find_serial(verdict, report);
    if (verdict->n_causes == 0 && later_epochs_apart(report))
        doubt(verdict, WEIR_DOUBT_EPOCHS, 0, report->later_epochs.slowest, report->later_epochs.fastest);
    find_own(verdict, report, facts, serial, external);
    if (verdict->n_causes == 0)
        doubt(verdict, WEIR_DOUBT_NO_RESOURCE, verdict->wait, d->own_cores / d->usable, 1 - d->of.idle);
}

enum weir_data_bound weir_data_bound(double wait)
{
    return wait < WEIR_VERDICT_WAIT_LEAST    ? WEIR_BOUND_NO
           : wait < WEIR_VERDICT_WAIT_STRONG ? WEIR_BOUND_PARTLY
                                             : WEIR_BOUND_STRONGLY;
}

void weir_verdict_make(struct weir_verdict *verdict, const struct weir_loader_report *report,
                       const struct weir_verdict_facts *facts)
{
    *verdict = (struct weir_verdict){.wait = -1};
    weir_demands_make(&verdict->demands, report);
    fill_shares(&verdict->shares, report);
    verdict->decode_rule = verdict->demands.decode_share > WEIR_VERDICT_DECODE_RULE;
    if (is_hopeless(verdict, report)) {
        weir_verdict_advise(verdict, report);
        return;
    }
    verdict->wait = data_wait(report);
    verdict->bound = weir_data_bound(verdict->wait);
    if (verdict->bound == WEIR_BOUND_NO)
        find_consumer(verdict, report);
    else
        find_causes(verdict, report, facts);
    weir_verdict_advise(verdict, report);
}
