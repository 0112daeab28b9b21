#include "analyze/watch/watch_verdict.h"
#include "analyze/watch/watch_verdict_priv.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Fractions of training time, of the workers' busy time, or of the loop's time; and factors. */
static const double SMALL = 0.05, START_UP = 0.05, DUE = 0.05, LOOP_LOCK = 0.15;
static const double CORE_WAIT = 0.15, LOCK = 0.25, STORAGE = 0.25, PART = 0.25, SATURATED = 0.7;
static const double SLOW_TIMES = 1.5, FILE_TIMES = 3, FILE_SHARE = 0.1, ORDER = 0.3, UNEVEN = 0.6;
static const double COPIES = 0.1, PIN_BUSY = 0.5, WORTH = 1.05;

static double percent(double fraction)
{
    return 100 * fmin(fmax(fraction, 0), 1);
}

struct weir_watch_cause *weir_watch_cause_add(struct weir_watch_case *c, enum weir_job_cause cause, double share,
                                              double gain, const char *format, ...)
{
    struct weir_watch_verdict *verdict = c->verdict;
    struct weir_watch_cause *to = verdict->n_causes < WEIR_WATCH_CAUSES ? &verdict->causes[verdict->n_causes++] : NULL;
    for (int i = 0; i < WEIR_WATCH_CAUSES && !to; i++) /* replaces one with less gain */
        if (verdict->causes[i].gain < gain)
            to = &verdict->causes[i];
    if (!to)
        return &c->dropped;
    *to = (struct weir_watch_cause){.cause = cause, .share = share, .gain = gain};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to->evidence, sizeof to->evidence, format, arguments);
    va_end(arguments);
    return to;
}

static bool has(const struct weir_watch_case *c, enum weir_job_cause cause)
{
    for (int i = 0; i < c->verdict->n_causes; i++)
        if (c->verdict->causes[i].cause == cause)
            return true;
    return false;
}

/* ---- the loop's own process ---- */

static void find_start_up(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    double first_s = f->first_wait_s - f->run_first_s, all_s = first_s + f->startup_s;
    double share = c->train_s > 0 ? all_s / c->train_s : 0;
    if (c->workers <= 0 || f->first_waits < 2 || share < START_UP || f->settings.persistent_workers > 0)
        return;
    /* The first epoch keeps its start. */
    double saved_s = all_s * (f->first_waits - 1) / f->first_waits;
    weir_watch_cause_add(c, WEIR_JOB_START_UP, share, weir_watch_gain_saved(c, saved_s),
                         "%.2f s per epoch for creating %.0f workers and their first batch, %.0f %% of the time",
                         all_s / f->first_waits, c->workers, percent(share));
}

/* Copies to the GPU take the loop's time, and pinning that of its process. */
static void find_copies(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    const struct weir_watch_parts *parts = &c->verdict->parts;
    double share = c->train_s > 0 ? parts->h2d_s / c->train_s : 0, pin = f->loop_s > 0 ? parts->pin_s / f->loop_s : 0;
    if (share >= COPIES && f->settings.pin_memory <= 0)
        weir_watch_cause_add(c, WEIR_JOB_PIN_OFF, share, weir_watch_gain_saved(c, 0.6 * parts->h2d_s),
                             "copies take %.0f %% of the loop, and pin_memory=False", percent(share));
    else if (share >= COPIES)
        weir_watch_cause_add(c, WEIR_JOB_TRANSFER, share, weir_watch_gain_saved(c, 0.75 * parts->h2d_s),
                             "copies take %.0f %% of the loop, from pinned memory", percent(share));
    else if (pin >= PIN_BUSY && c->verdict->wait >= SMALL)
        weir_watch_cause_add(c, WEIR_JOB_TRANSFER, pin, weir_watch_gain_saved(c, 0.75 * c->wait_s),
                             "the pin thread is busy %.0f %% of the time", percent(pin));
}

static void find_gil(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    const struct weir_report_worker *loop = &c->report->prof.consumer;
    /* Other programs can take the core of a loop, too. */
    double core_wait = loop->wall_s > 0 ? fmax(loop->core_wait_s, 0) / loop->wall_s : 0;
    double due = c->train_s > 0 ? fmax(f->wait_due_s / c->train_s - core_wait, 0) : 0;
    /* With a pin thread, the wait for a batch is a wait for its lock. */
    double waits = f->settings.pin_memory > 0 ? c->verdict->wait : 0;
    /* With a GPU, backward() waits on a lock for autograd's thread. */
    double lock = f->loop_shares.seconds > 0 && f->settings.cuda <= 0 ? f->loop_shares.lock - waits : 0;
    if (c->workers <= 0 || (due < DUE && lock < LOOP_LOCK) || has(c, WEIR_JOB_TRANSFER))
        return;
    double share = fmin(due + fmax(lock, 0), 1);
    weir_watch_cause_add(c, WEIR_JOB_GIL, share, weir_watch_gain_saved(c, share * c->train_s),
                         "%.0f %% of the loop's time went by although the batch was ready, and %.0f %% in locks",
                         percent(due), percent(lock));
}

/* ---- machine ---- */

static double throttled_share(const struct weir_loader_report *report)
{
    const struct weir_report_machine *machine = &report->prof.machine;
    return machine->throttling && machine->periods > 0 ? (double)machine->throttled / (double)machine->periods : 0;
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
    return active >= 0.25 || (set > 1 && set * c->workers > all) ||
           (c->figures->n_threads > 8 && c->figures->n_threads * c->workers > 4 * all && active >= 0.1);
}

/* Something takes cores away from the workers. */
static void find_core_wait(struct weir_watch_case *c)
{
    const struct weir_watch_sums *sums = &c->verdict->sums;
    const struct weir_report_machine *machine = &c->report->prof.machine;
    double others = machine->cores > 0 ? machine->others_cores / machine->cores : 0;
    double gain =
        weir_watch_gain_times(c, sums->on_core > 0 ? sums->on_core / (sums->on_core + sums->core_wait) : 1, 1);
    bool waits = sums->core_wait >= CORE_WAIT, throttled = throttled_share(c->report) >= WEIR_VERDICT_THROTTLED;
    if (throttled && (waits || machine->throttled_s > SMALL * c->report->wall_s))
        weir_watch_cause_add(c, WEIR_JOB_QUOTA, throttled_share(c->report), gain,
                             "the quota of %.3g cores was used up in %.0f %% of its periods", machine->quota_cores,
                             percent(throttled_share(c->report)));
    else if (too_many_threads(c) && (waits || other_threads(c) >= 0.5))
        weir_watch_cause_add(c, WEIR_JOB_TOO_MANY_THREADS, sums->core_wait, gain,
                             "%.0f workers with %.0f threads each on %d cores; %.0f %% of their busy time was spent "
                             "waiting for a core",
                             c->workers, fmax(c->figures->n_threads, 1), machine->cores, percent(sums->core_wait));
    else if (waits && (others >= WEIR_VERDICT_OTHERS || machine->steal_cores >= WEIR_VERDICT_STEAL * machine->cores))
        weir_watch_cause_add(c, WEIR_JOB_NEIGHBOURS, sums->core_wait, gain,
                             "they use %.1f of %d cores; the workers wait %.0f %% of their busy time for a core",
                             machine->others_cores + fmax(machine->steal_cores, 0), machine->cores,
                             percent(sums->core_wait));
}

static void find_sleep(struct weir_watch_case *c)
{
    const struct weir_watch_shares *shares = &c->verdict->sums.shares;
    /* Of the time that a worker would take with cores of its own. */
    double calm = fmax(1 - c->verdict->sums.core_wait, 0.1);
    if (shares->lock >= LOCK * calm && c->workers > 1)
        weir_watch_cause_add(c, WEIR_JOB_LOCK, shares->lock, weir_watch_gain_lock(c),
                             "%.0f %% of their busy time; only one of them works at a time", percent(shares->lock));
    if (shares->storage >= STORAGE * calm)
        weir_watch_cause_add(
            c, WEIR_JOB_STORAGE, shares->storage,
            weir_watch_gain_times(
                c, 1,
                1 - fmin(shares->storage / fmax(1 - c->verdict->sums.on_core - c->verdict->sums.core_wait, 0.01), 1)),
            "%.0f %% of their busy time", percent(shares->storage));
}

/* ---- one of many ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the time per batch without waits for a core, which others cause. */
static double calm_s(const struct weir_watch_worker *worker)
{
    return worker->batches > 0 ? fmax(worker->batch_s - fmax(worker->delay_s, 0) / worker->batches, 0) : 0;
}

/* Returns whether the slowest worker is slow by itself, and not because others take its core. */
static bool is_slow_itself(const struct weir_watch_figures *f, int slowest)
{
    double others_s = 0;
    for (int i = 0; i < f->n_workers; i++)
        others_s += i == slowest ? 0 : calm_s(&f->workers[i]) / (f->n_workers - 1);
    return calm_s(&f->workers[slowest]) >= SLOW_TIMES * others_s;
}

static void find_slow_worker(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    double others[WEIR_WATCH_WORKERS];
    int slowest = 0, n = 0;
    for (int i = 1; i < f->n_workers; i++)
        if (f->workers[i].batch_s > f->workers[slowest].batch_s)
            slowest = i;
    for (int i = 0; i < f->n_workers; i++)
        if (i != slowest && f->workers[i].batches > 0)
            others[n++] = f->workers[i].batch_s;
    if (n == 0 || f->workers[slowest].batches < 3 || !is_slow_itself(f, slowest))
        return;
    qsort(others, (size_t)n, sizeof others[0], by_value);
    double usual_s = others[n / 2], slow_s = f->workers[slowest].batch_s;
    /* With uneven batches, one worker's mean can be large by chance. */
    double error_s = f->workers[slowest].spread * slow_s / sqrt(f->workers[slowest].batches);
    if (usual_s <= 0 || slow_s < SLOW_TIMES * usual_s || slow_s - 3 * error_s < usual_s)
        return;
    double times = usual_s / slow_s;
    struct weir_watch_cause *cause = weir_watch_cause_add(
        c, WEIR_JOB_SLOW_WORKER, f->wait_s > 0 ? f->workers[slowest].asked_of_s / f->wait_s : 0,
        weir_watch_gain_times(c, times, times),
        "worker %.0f takes %.1f ms per batch, the others %.1f ms; the loop waited %.2f s for it while other batches "
        "were ready",
        f->workers[slowest].worker, slow_s * 1e3, usual_s * 1e3, f->workers[slowest].asked_of_s);
    snprintf(cause->who, sizeof cause->who, "worker %.0f", f->workers[slowest].worker);
}

/* Returns how much longer an item of the file takes than one of the others, or 0 if that may be by chance: the longest
 * item of the file does not count. */
static double slower(const struct weir_watch_figures *f, const struct weir_watch_slow_file *file, double *others_s)
{
    enum { ITEMS_LEAST = 4 };
    double total_s = file->mean_s * file->count, rest = f->paths - file->count;
    *others_s = rest > 0 ? (f->paths_s - total_s) / rest : 0;
    if (file->count < ITEMS_LEAST || *others_s <= 0 || total_s < FILE_SHARE * f->paths_s)
        return 0;
    return (total_s - file->max_s) / (file->count - 1) / *others_s;
}

static void find_slow_file(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    const struct weir_watch_slow_file *file = NULL;
    double others_s = 0;
    for (int i = 0; i < f->n_files && i < WEIR_WATCH_FILES && !file; i++)
        if (slower(f, &f->slow_files[i], &others_s) >= FILE_TIMES)
            file = &f->slow_files[i];
    if (!file)
        return;
    double share = file->mean_s * file->count / f->paths_s;
    double times = 1 - share * (1 - others_s / file->mean_s) * fmin(f->paths_s / c->verdict->sums.busy_s, 1);
    double gain = fmax(weir_watch_gain_times(c, times, times), weir_watch_gain_saved(c, f->wait_order_s));
    struct weir_watch_cause *cause =
        weir_watch_cause_add(c, WEIR_JOB_SLOW_FILE, share, gain, "%s takes %.1f ms per item, the others %.1f ms",
                             file->name, file->mean_s * 1e3, others_s * 1e3);
    snprintf(cause->who, sizeof cause->who, "%s", file->name);
}

static void find_imbalance(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    double order = f->wait_s > 0 ? f->wait_order_s / f->wait_s : 0;
    bool one = has(c, WEIR_JOB_SLOW_WORKER) || has(c, WEIR_JOB_SLOW_FILE);
    if (c->workers < 2 || one || order < ORDER || c->verdict->sums.spread < UNEVEN || f->settings.in_order == 0)
        return;
    weir_watch_cause_add(c, WEIR_JOB_IMBALANCE, order, weir_watch_gain_saved(c, 0.9 * f->wait_order_s),
                         "in %.0f %% of the waits other batches were ready; batches take %.1f ms +- %.1f ms",
                         percent(order), c->verdict->sums.batch_s * 1e3,
                         c->verdict->sums.batch_s * c->verdict->sums.spread * 1e3);
}

/* ---- the stages of busy workers ---- */

/* Adds a stage that takes much of the busy time. Its gain is that of half its time. */
static void add_part(struct weir_watch_case *c, enum weir_job_cause cause, double s, const char *who, const char *what)
{
    const struct weir_watch_sums *sums = &c->verdict->sums;
    double busy_s = c->verdict->parts.busy_s, share = busy_s > 0 ? fmin(s / busy_s, 1) : 0;
    if (share < PART)
        return;
    /* The part of its time that is its own, and not a lock's, the storage's or other programs'. */
    double own = fmax(1 - sums->core_wait - sums->shares.lock - sums->shares.storage, 0);
    double times = 1 - 0.5 * share * own;
    struct weir_watch_cause *to =
        weir_watch_cause_add(c, cause, share, weir_watch_gain_times(c, times, times),
                             "%s%s%s takes %.0f %% of their busy time", what, who[0] ? " " : "", who, percent(share));
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
    add_part(c, WEIR_JOB_DECODE, parts->decode_s, "", "decoding");
    add_part(c, WEIR_JOB_TRANSFORM, parts->transform_s, parts->transform, "");
    add_part(c, WEIR_JOB_COLLATE, parts->collate_s + parts->pickle_s, "", "collating and sending batches");
    if (!has(c, WEIR_JOB_STORAGE) && !has(c, WEIR_JOB_LOCK))
        add_part(c, reads_on_core(c) ? WEIR_JOB_READ_CPU : WEIR_JOB_STORAGE, parts->read_s, "", "reading files");
    add_part(c, WEIR_JOB_OWN_CODE, parts->own_s + parts->named_s, parts->named,
             parts->named[0] ? "the dataset's code, mostly" : "the code of __getitem__ outside the known calls");
}

static void find_too_few(struct weir_watch_case *c)
{
    double gain, most = fmax(c->report->prof.machine.cores, 1);
    bool sleeps = c->verdict->sums.on_core + c->verdict->sums.core_wait < 0.5;
    if (has(c, WEIR_JOB_LOCK))
        return; /* they would wait for it too */
    most = fmax(sleeps ? 2 * most : most, 1);
    double best = weir_watch_best_workers(c, fmin(most, 64), &gain);
    if (best <= c->workers || gain < 1.1)
        return;
    struct weir_watch_cause *cause =
        c->workers <= 0
            ? weir_watch_cause_add(c, WEIR_JOB_TOO_FEW_WORKERS, c->verdict->wait, gain,
                                   "num_workers=0: loading and training take turns")
            : weir_watch_cause_add(c, WEIR_JOB_TOO_FEW_WORKERS, c->busy, gain,
                                   "%.0f worker%s, busy %.0f %% of the time, on %d cores", c->workers,
                                   c->workers == 1 ? "" : "s", percent(c->busy), c->report->prof.machine.cores);
    snprintf(cause->who, sizeof cause->who, "%.0f", best);
}

/* ---- order ---- */

/* What makes stages slow precedes them, and a number of workers below that of the cores precedes what they do. */
static int class_of(const struct weir_watch_case *c, const struct weir_watch_cause *cause)
{
    switch (cause->cause) {
    case WEIR_JOB_NOT_DATA_BOUND:
        return -1;
    case WEIR_JOB_QUOTA:
    case WEIR_JOB_NEIGHBOURS:
    case WEIR_JOB_TOO_MANY_THREADS:
    case WEIR_JOB_SLOW_WORKER:
    case WEIR_JOB_SLOW_FILE:
    case WEIR_JOB_LOCK:
        return cause->gain >= WORTH || cause->gain <= 0 ? 0 : 2;
    case WEIR_JOB_TOO_FEW_WORKERS:
        return c->workers < c->cores - 0.5 ? 1 : 3;
    default:
        return 2;
    }
}

static void sort_causes(const struct weir_watch_case *c)
{
    struct weir_watch_cause *causes = c->verdict->causes;
    for (int i = 1; i < c->verdict->n_causes; i++)
        for (int k = i; k > 0; k--) {
            int above = class_of(c, &causes[k - 1]), below = class_of(c, &causes[k]);
            if (above < below || (above == below && causes[k - 1].gain >= causes[k].gain))
                break;
            struct weir_watch_cause swap = causes[k];
            causes[k] = causes[k - 1];
            causes[k - 1] = swap;
        }
}

/* ---- the verdict ---- */

static void find_unsure(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    if (f->settings.any_iterable > 0)
        weir_watch_cause_add(c, WEIR_JOB_UNSURE, c->verdict->wait, 0,
                             "weir.watch sees only the waits of a loader that is not a DataLoader");
    else
        weir_watch_cause_add(c, WEIR_JOB_UNSURE, c->busy, 0,
                             "the workers were busy %.0f %% of the time, %.1f batches were ready at a request",
                             percent(c->busy), f->ready_mean);
}

static void find_not_bound(struct weir_watch_case *c)
{
    double step = c->train_s > 0 ? c->verdict->parts.step_s / c->train_s : 0;
    weir_watch_cause_add(c, WEIR_JOB_NOT_DATA_BOUND, 1 - c->verdict->wait, 0,
                         "the step takes %.0f %% of the time, %.1f ms per batch", percent(step),
                         c->figures->batches > 0 ? c->verdict->parts.step_s / c->figures->batches * 1e3 : 0);
}

/* Training hardly waits, and no cause is worth much: the step itself is the limit. */
static bool is_hardly_bound(const struct weir_watch_case *c)
{
    double most = 0;
    for (int i = 0; i < c->verdict->n_causes; i++)
        most = fmax(most, c->verdict->causes[i].gain);
    return c->verdict->bound == WEIR_BOUND_PARTLY && most < WORTH;
}

static void find_worker_causes(struct weir_watch_case *c)
{
    find_core_wait(c);
    find_sleep(c);
    find_slow_worker(c);
    find_slow_file(c);
    find_imbalance(c);
    if (c->busy >= SATURATED || has(c, WEIR_JOB_LOCK) || c->workers <= 0) {
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
    weir_watch_cause_add(c, WEIR_JOB_UNSURE, 0, 0, "%.0f batches in %.1f s are too few for a verdict", f->batches,
                         c->train_s);
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
    verdict->wait = c->train_s > 0 ? fmin(c->wait_s / c->train_s, 1) : -1;
    verdict->most = weir_watch_gain_saved(c, c->wait_s);
}

void weir_watch_verdict_make(struct weir_watch_verdict *verdict, const struct weir_watch_figures *figures,
                             const struct weir_loader_report *report)
{
    struct weir_watch_case c = {.figures = figures, .report = report, .verdict = verdict};
    *verdict = (struct weir_watch_verdict){.wait = -1};
    weir_watch_sum(&verdict->sums, figures);
    weir_watch_parts_make(&verdict->parts, report);
    weir_watch_sum_threads(&verdict->sums, figures, &verdict->parts);
    make_case(&c);
    if (is_too_short(&c))
        return;
    verdict->bound = weir_data_bound(verdict->wait);
    measure_headroom(verdict, figures);
    weir_watch_model_make(&c);
    find_copies(&c);
    find_gil(&c);
    if (verdict->bound == WEIR_BOUND_NO) {
        if (verdict->n_causes == 0)
            find_not_bound(&c);
    } else {
        find_start_up(&c);
        if (figures->settings.any_iterable <= 0)
            find_worker_causes(&c);
        if (is_hardly_bound(&c))
            find_not_bound(&c);
        if (verdict->n_causes == 0)
            find_unsure(&c);
    }
    sort_causes(&c);
    if (verdict->n_causes > WEIR_WATCH_CAUSES_SHOWN)
        verdict->n_causes = WEIR_WATCH_CAUSES_SHOWN;
    weir_watch_advise(&c);
}
