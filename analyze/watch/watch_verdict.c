#include "analyze/watch/watch_verdict.h"
#include "analyze/causes/cores.h"
#include "analyze/watch/watch_verdict_priv.h"
#include "base/numbers.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

/* ---- the loop's own process ---- */

static void find_start_up(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    /* Of the run's first epoch, the first batch is not counted, and its workers are created anyway. */
    double first_s = f->first_wait_s - f->run_first_s, all_s = first_s + f->startup_s;
    double share = c->train_s > 0 ? all_s / c->train_s : 0;
    if (c->workers <= 0 || f->first_waits < 2 || share < WEIR_WATCH_START_UP || f->settings.persistent_workers > 0)
        return;
    double saved_s = first_s + f->startup_s * (f->first_waits - 1) / f->first_waits;
    weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_START_UP, share, weir_watch_gain_saved(c, saved_s),
                       "%.2f s per epoch for creating %.0f worker%s and the first batch, %.0f %% of the time",
                       all_s / f->first_waits, c->workers, c->workers == 1 ? "" : "s", weir_percent(share));
}

/* Copies to the GPU take the loop's time, and pinning that of its process. */
static void find_copies(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    const struct weir_watch_parts *parts = &c->verdict->parts;
    double share = c->train_s > 0 ? parts->h2d_s / c->train_s : 0, pin = f->loop_s > 0 ? parts->pin_s / f->loop_s : 0;
    if (share >= WEIR_WATCH_COPIES && f->settings.pin_memory <= 0)
        weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_PIN_OFF, share, weir_watch_gain_saved(c, 0.6 * parts->h2d_s),
                           "copies take %.0f %% of the loop, and pin_memory=False", weir_percent(share));
    else if (share >= WEIR_WATCH_COPIES)
        weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_TRANSFER, share,
                           weir_watch_gain_saved(c, 0.75 * parts->h2d_s),
                           "copies take %.0f %% of the loop, from pinned memory", weir_percent(share));
    else if (pin >= WEIR_WATCH_PIN_BUSY && c->verdict->found.wait >= WEIR_VERDICT_WAIT_LEAST)
        weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_TRANSFER, pin, weir_watch_gain_saved(c, 0.75 * c->wait_s),
                           "the pin thread is busy %.0f %% of the time", weir_percent(pin));
}

static void find_gil(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    const struct weir_report_worker *loop = &c->report->prof.consumer;
    /* Other programs can take the core of a loop, too. */
    double core_wait = loop->wall_s > 0 ? fmax(loop->core_wait_s, 0) / loop->wall_s : 0;
    double due = c->train_s > 0 ? fmax(f->wait_due_s / c->train_s - core_wait, 0) : 0;
    /* With a pin thread, the wait for a batch is a wait for its lock. */
    double waits = f->settings.pin_memory > 0 ? c->verdict->found.wait : 0;
    /* With a GPU, backward() waits on a lock for autograd's thread; a collective on the CPU waits on one for ranks. */
    bool others = f->settings.cuda > 0 || f->settings.world_size > 1;
    double lock = f->loop_shares.seconds > 0 && !others ? f->loop_shares.lock - waits : 0;
    if (c->workers <= 0 || (due < WEIR_WATCH_DUE && lock < WEIR_JOB_LOOP_LOCK) ||
        weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_TRANSFER))
        return;
    double share = fmin(due + fmax(lock, 0), 1);
    weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_GIL, share, weir_watch_gain_saved(c, share * c->train_s),
                       "the loop spent %.0f %% of its time waiting for batches that were ready, and %.0f %% in locks",
                       weir_percent(due), weir_percent(lock));
}

/* ---- machine ---- */

static struct weir_core_figures core_figures(const struct weir_watch_case *c)
{
    const struct weir_watch_sums *sums = &c->verdict->sums;
    const struct weir_report_machine *machine = &c->report->prof.machine;
    bool known = machine->throttling && machine->periods > 0;
    return (struct weir_core_figures){
        .core_wait = sums->core_wait,
        .ready = sums->on_core + sums->core_wait,
        .periods = known ? (double)machine->throttled / (double)machine->periods : 0,
        .quota_cores = machine->quota_cores,
        .cores = machine->cores,
        .usable = machine->cores,
        .others_cores = fmax(machine->others_cores, 0),
        .steal_cores = machine->steal_cores,
    };
}

/* Returns the CPU time of a worker's other threads over that of its loop. */
static double other_threads(const struct weir_watch_case *c)
{
    return c->verdict->sums.threads / fmax(c->verdict->sums.on_core, 0.01);
}

/* Returns whether the workers' other threads use the cores. */
static bool too_many_threads(const struct weir_watch_case *c)
{
    const struct weir_watch_settings *settings = &c->figures->settings;
    double active = other_threads(c), all = c->report->prof.machine.cores;
    double set = fmax(settings->cv2_threads, settings->torch_threads);
    if (c->verdict->sums.for_threads > c->verdict->sums.core_wait)
        return false; /* they work in place of the worker, such as those of a video decoder */
    return active >= 0.25 || (set > 1 && set * c->workers > all) ||
           (c->figures->n_threads > 8 && c->figures->n_threads * c->workers > 4 * all && active >= 0.1);
}

/* Something takes cores away from the workers. */
static void find_core_wait(struct weir_watch_case *c)
{
    const struct weir_watch_sums *sums = &c->verdict->sums;
    const struct weir_report_machine *machine = &c->report->prof.machine;
    struct weir_core_figures figures = core_figures(c);
    double gain =
        weir_watch_gain_times(c, sums->on_core > 0 ? sums->on_core / (sums->on_core + sums->core_wait) : 1, 1);
    bool waits = sums->core_wait >= weir_core_wait_least(&figures);
    bool stalls = waits || machine->throttled_s > WEIR_VERDICT_WAIT_LEAST * c->report->wall_s;
    if (stalls && weir_quota_is_used_up(&figures))
        weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_QUOTA, figures.periods, gain,
                           "the quota of %.3g cores was used up in %.0f %% of its periods", figures.quota_cores,
                           weir_percent(figures.periods));
    else if (too_many_threads(c) && (waits || other_threads(c) >= 0.5))
        weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_TOO_MANY_THREADS, sums->core_wait, gain,
                           "%.0f worker%s with %.0f threads each on %d cores; %.0f %% of the busy time was spent "
                           "waiting for a core",
                           c->workers, c->workers == 1 ? "" : "s", fmax(c->figures->n_threads, 1), machine->cores,
                           weir_percent(sums->core_wait));
    else if (waits && (weir_others_take_cores(&figures) || weir_host_takes_cores(&figures)))
        weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_NEIGHBOURS, sums->core_wait, gain,
                           "they use %.1f of %d cores; the workers wait %.0f %% of their busy time for a core",
                           figures.others_cores + fmax(machine->steal_cores, 0), machine->cores,
                           weir_percent(sums->core_wait));
}

static void find_sleep(struct weir_watch_case *c)
{
    const struct weir_watch_shares *shares = &c->verdict->sums.shares;
    /* Of the time that a worker would take with cores of its own. */
    double calm = fmax(1 - c->verdict->sums.core_wait, 0.1);
    if (shares->lock >= WEIR_JOB_ASLEEP * calm && c->workers > 1)
        weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_LOCK, shares->lock, weir_watch_gain_lock(c),
                           "%.0f %% of their busy time; only one of them works at a time", weir_percent(shares->lock));
    if (shares->storage >= WEIR_JOB_ASLEEP * calm)
        weir_diagnosis_add(
            &c->verdict->found, WEIR_CAUSE_STORAGE, shares->storage,
            weir_watch_gain_times(
                c, 1,
                1 - fmin(shares->storage / fmax(1 - c->verdict->sums.on_core - c->verdict->sums.core_wait, 0.01), 1)),
            "%.0f %% of their busy time", weir_percent(shares->storage));
}

/* ---- the stages of busy workers ---- */

double weir_watch_own(const struct weir_watch_case *c)
{
    const struct weir_watch_sums *sums = &c->verdict->sums;
    return fmax(1 - sums->core_wait - sums->shares.lock - sums->shares.storage, 0);
}

/* Adds a stage that takes much of the busy time. Its gain is that of half its time. */
static void add_part(struct weir_watch_case *c, enum weir_cause cause, double s, const char *who, const char *what)
{
    double busy_s = c->verdict->parts.busy_s, share = busy_s > 0 ? fmin(s / busy_s, 1) : 0;
    if (share < WEIR_WATCH_PART)
        return;
    double times = 1 - 0.5 * share * weir_watch_own(c);
    struct weir_diagnosis_cause *to = weir_diagnosis_add(
        &c->verdict->found, cause, share, weir_watch_gain_times(c, times, times),
        "%s%s%s takes %.0f %% of their busy time", what, who[0] ? " " : "", who, weir_percent(share));
    snprintf(to->who, sizeof to->who, "%s", who);
}

/* Returns whether reads compute, as from the page cache, rather than wait, as for a network. */
static bool reads_on_core(const struct weir_watch_case *c)
{
    const struct weir_watch_sums *sums = &c->verdict->sums;
    double ready = sums->on_core + sums->core_wait, part = ready > 0 ? sums->on_core / ready : 1;
    return c->verdict->parts.read_cpu_s >= 0.5 * part * c->verdict->parts.read_s;
}

static void find_parts(struct weir_watch_case *c)
{
    const struct weir_watch_parts *parts = &c->verdict->parts;
    const struct weir_watch_figures *f = c->figures;
    char own[160];
    snprintf(own, sizeof own, "code in __getitem__ outside timed calls%s%s%s", f->n_unseen > 0 ? ", or " : "",
             f->n_unseen > 0 ? f->unseen[0].what : "", f->n_unseen > 0 ? "," : "");
    add_part(c, WEIR_CAUSE_DECODE, parts->decode_s, "", "decoding");
    add_part(c, WEIR_CAUSE_TRANSFORM, parts->transform_s, parts->transform, "");
    add_part(c, WEIR_CAUSE_COLLATE, parts->collate_s + parts->pickle_s, "", "collating and sending batches");
    if (!weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_STORAGE) &&
        !weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_LOCK))
        add_part(c, reads_on_core(c) ? WEIR_CAUSE_READ_CPU : WEIR_CAUSE_STORAGE, parts->read_s, "", "reading files");
    add_part(c, WEIR_CAUSE_OWN_CODE, parts->own_s + parts->named_s, parts->named,
             parts->named[0] ? "the dataset's code, mostly" : own);
}

static void find_too_few(struct weir_watch_case *c)
{
    double gain, most = fmax(c->report->prof.machine.cores, 1);
    bool sleeps = c->verdict->sums.on_core + c->verdict->sums.core_wait < 0.5;
    if (weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_LOCK))
        return; /* they would wait for it too */
    most = fmax(sleeps ? 2 * most : most, 1);
    double best = weir_watch_best_workers(c, fmin(most, 64), &gain);
    if (best <= c->workers || gain < WEIR_WATCH_MORE_WORKERS)
        return;
    struct weir_diagnosis_cause *cause =
        c->workers <= 0
            ? weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_TOO_FEW_WORKERS, c->verdict->found.wait, gain,
                                 "num_workers=0: loading and training take turns")
            : weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_TOO_FEW_WORKERS, c->busy, gain,
                                 "%.0f worker%s, busy %.0f %% of the time, on %d cores", c->workers,
                                 c->workers == 1 ? "" : "s", weir_percent(c->busy), c->report->prof.machine.cores);
    cause->workers = best;
}

/* ---- order ---- */

/* What makes stages slow precedes them, and a number of workers below that of the cores precedes what they do. */
static int class_of(const struct weir_watch_case *c, const struct weir_diagnosis_cause *cause)
{
    switch (cause->cause) {
    case WEIR_CAUSE_CONSUMER:
        return -1;
    case WEIR_CAUSE_QUOTA:
    case WEIR_CAUSE_NEIGHBOURS:
    case WEIR_CAUSE_TOO_MANY_THREADS:
    case WEIR_CAUSE_SLOW_WORKER:
    case WEIR_CAUSE_SLOW_FILE:
    case WEIR_CAUSE_LOCK:
        return cause->gain >= WEIR_VERDICT_WORTH || cause->gain <= 0 ? 0 : 2;
    case WEIR_CAUSE_TOO_FEW_WORKERS:
        return c->workers < c->cores - 0.5 ? 1 : 3;
    default:
        return 2;
    }
}

static double rank(const void *user, const struct weir_diagnosis_cause *cause)
{
    static const double MOST = 1e6; /* larger than any gain */
    return fmin(cause->gain, MOST) - 2 * MOST * class_of(user, cause);
}

/* ---- the verdict ---- */

static void find_unsure(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    if (f->settings.any_iterable > 0)
        weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_CANNOT_TELL, c->verdict->found.wait, 0,
                           "weir.watch sees only the waits of a loader that is not a DataLoader");
    else
        weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_CANNOT_TELL, c->busy, 0,
                           "the workers were busy %.0f %% of the time, %.1f batches were ready at a request",
                           weir_percent(c->busy), f->ready_mean);
}

static void find_not_bound(struct weir_watch_case *c)
{
    double step = c->train_s > 0 ? c->verdict->parts.step_s / c->train_s : 0;
    weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_CONSUMER, 1 - c->verdict->found.wait, 0,
                       "the step takes %.0f %% of the time, %.1f ms per batch", weir_percent(step),
                       c->figures->batches > 0 ? c->verdict->parts.step_s / c->figures->batches * 1e3 : 0);
}

/* Training hardly waits, and no cause is worth much: the step itself is the limit. */
static bool is_hardly_bound(const struct weir_watch_case *c)
{
    double most = 0;
    for (int i = 0; i < c->verdict->found.n_causes; i++)
        most = fmax(most, c->verdict->found.causes[i].gain);
    return c->verdict->found.bound == WEIR_BOUND_PARTLY && most < WEIR_VERDICT_WORTH;
}

static void find_worker_causes(struct weir_watch_case *c)
{
    find_core_wait(c);
    find_sleep(c);
    weir_watch_find_uneven(c);
    if (c->busy >= WEIR_JOB_BUSY_WORKERS || weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_LOCK) ||
        c->workers <= 0) {
        find_too_few(c);
        find_parts(c);
    }
}

static bool is_too_short(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    double slots = fmax(c->workers * c->prefetch, 1);
    uint64_t batches = (uint64_t)fmin(fmax(f->batches, 0), 1e15);
    if (weir_verdict_suffices(batches, c->train_s, (int)fmin(slots, 1e6)))
        return false;
    weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_CANNOT_TELL, 0, 0,
                       "%.0f batch%s in %.1f s %s too few for a verdict", f->batches, f->batches == 1 ? "" : "es",
                       c->train_s, f->batches == 1 ? "is" : "are");
    return true;
}

static void measure_headroom(struct weir_watch_verdict *verdict, const struct weir_watch_figures *f)
{
    if (f->window_batches < 4 || f->rest_batches < 4 || f->window_s <= 0 || f->rest_s <= 0)
        return;
    double window_s = f->window_s / f->window_batches, rest_s = f->rest_s / f->rest_batches;
    double window_part = f->window_sd_s / sqrt(f->window_batches) / window_s;
    double rest_part = f->rest_sd_s / sqrt(f->rest_batches) / rest_s;
    verdict->headroom = rest_s / window_s;
    verdict->headroom_error = verdict->headroom * sqrt(window_part * window_part + rest_part * rest_part);
}

static bool measure_replay(struct weir_watch_verdict *verdict, const struct weir_watch_figures *f)
{
    if (f->settings.headroom != WEIR_WATCH_REPLAYS || f->window_batches < 4 || f->window_s <= 0)
        return false;
    verdict->replayed = f->window_batches / f->window_s;
    verdict->replayed_error = verdict->replayed * f->window_sd_s * sqrt(f->window_batches) / f->window_s;
    snprintf(verdict->found.lead, sizeof verdict->found.lead,
             "Without any loading, training makes %.1f steps/s +- %.1f: this run replayed the first batch of each "
             "epoch. A real run cannot be faster.\n",
             verdict->replayed, verdict->replayed_error);
    return true;
}

static void make_case(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    const struct weir_report_machine *machine = &c->report->prof.machine;
    struct weir_watch_verdict *verdict = c->verdict;
    c->workers = fmin(fmax(f->settings.num_workers, 0), 1e4); /* a log can contain anything */
    c->prefetch = f->settings.prefetch_factor > 0 ? fmin(f->settings.prefetch_factor, 1e3) : 2;
    double limit = machine->quota_cores > 0 ? fmin(machine->quota_cores, machine->cores) : machine->cores;
    c->cores = fmax(limit - fmax(machine->others_cores, 0), fmin(limit, 1));
    c->cores = c->cores > 0 ? c->cores : 1;
    c->train_s = f->loop_s - f->run_first_s + f->startup_s;
    c->wait_s = fmax(f->wait_s - f->run_first_s + f->startup_s, 0);
    double known_s = verdict->sums.busy_s + verdict->sums.wait_s;
    c->busy = known_s > 0 ? verdict->sums.busy_s / known_s : c->workers <= 0 ? 1 : 0;
    verdict->found.wait = c->train_s > 0 ? fmin(c->wait_s / c->train_s, 1) : -1;
    verdict->most = weir_watch_gain_saved(c, c->wait_s);
}

void weir_watch_verdict_make(struct weir_watch_verdict *verdict, const struct weir_watch_figures *figures,
                             const struct weir_loader_report *report)
{
    struct weir_watch_case c = {.figures = figures, .report = report, .verdict = verdict};
    *verdict = (struct weir_watch_verdict){.found = {.subject = WEIR_SUBJECT_JOB, .wait = -1}};
    weir_watch_sum(&verdict->sums, figures);
    weir_watch_parts_make(&verdict->parts, report);
    weir_watch_sum_threads(&verdict->sums, figures, &verdict->parts);
    make_case(&c);
    if (measure_replay(verdict, figures))
        return;
    if (is_too_short(&c)) {
        weir_watch_advise(&c);
        return;
    }
    verdict->found.bound = weir_data_bound(verdict->found.wait);
    measure_headroom(verdict, figures);
    weir_watch_model_make(&c);
    find_copies(&c);
    find_gil(&c);
    if (verdict->found.bound == WEIR_BOUND_NO) {
        if (verdict->found.n_causes == 0)
            find_not_bound(&c);
    } else {
        find_start_up(&c);
        if (figures->settings.any_iterable <= 0)
            find_worker_causes(&c);
        if (is_hardly_bound(&c))
            find_not_bound(&c);
        if (verdict->found.n_causes == 0)
            find_unsure(&c);
    }
    weir_diagnosis_sort(&verdict->found, WEIR_WATCH_CAUSES_SHOWN, rank, &c);
    weir_watch_advise(&c);
}
