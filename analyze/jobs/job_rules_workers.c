/* Rules about worker processes: causes that are one of many (a slow worker, a slow file, a large share of the data, a
 * long batch), what workers wait for, and what they are busy with. */
#include "analyze/jobs/job_verdict_priv.h"
#include "base/numbers.h"

#include <math.h>
#include <stdlib.h>

/* ---- one of many ---- */

/* Returns the time per batch without waits for a core, which others cause. */
static double calm_s(const struct weir_thread_figures *worker)
{
    return worker->batches > 0 ? fmax(worker->batch_s - fmax(worker->delay_s, 0) / worker->batches, 0) : 0;
}

/* Returns whether the slowest worker is slow by itself, and not because others take its core. */
static bool is_slow_itself(const struct weir_dataloader_figures *f, int slowest)
{
    double others_s = 0;
    for (int i = 0; i < f->n_workers; i++)
        others_s += i == slowest ? 0 : calm_s(&f->workers[i]) / (f->n_workers - 1);
    return calm_s(&f->workers[slowest]) >= WEIR_JOB_SLOW_WORKER * others_s;
}

void weir_job_find_slow_worker(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_figures *f = c->figures;
    double others[WEIR_DATALOADER_WORKERS];
    int slowest = 0, n = 0;
    for (int i = 1; i < f->n_workers; i++)
        if (f->workers[i].batch_s > f->workers[slowest].batch_s)
            slowest = i;
    for (int i = 0; i < f->n_workers; i++)
        if (i != slowest && f->workers[i].batches > 0)
            others[n++] = f->workers[i].batch_s;
    const struct weir_thread_figures *slow = &f->workers[slowest];
    if (n == 0 || slow->batches < 3 || !is_slow_itself(f, slowest))
        return;
    qsort(others, (size_t)n, sizeof others[0], weir_compare_double);
    double usual_s = others[n / 2];
    /* With uneven batches, one worker's mean can be large by chance. */
    double error_s = slow->spread * slow->batch_s / sqrt(slow->batches);
    if (usual_s <= 0 || slow->batch_s < WEIR_JOB_SLOW_WORKER * usual_s || slow->batch_s - 3 * error_s < usual_s)
        return;
    double times = usual_s / slow->batch_s;
    struct weir_diagnosis_cause *finding = weir_job_found(
        c, cause, f->wait_s > 0 ? slow->asked_of_s / f->wait_s : 0, weir_job_gain_times(c, times, times),
        "worker %.0f takes %.1f ms per batch, the others %.1f ms; the loop waited %.2f s for it while other batches "
        "were ready",
        slow->id, slow->batch_s * 1e3, usual_s * 1e3, slow->asked_of_s);
    snprintf(finding->who, sizeof finding->who, "worker %.0f", slow->id);
}

/* From outside, batches are not seen: compares the workers' time at work. Waiting for a core counts, since it only
 * makes the difference smaller. */
void weir_job_find_busiest_worker(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_figures *f = c->figures;
    const struct weir_thread_figures *busiest = NULL;
    double busy[WEIR_DATALOADER_WORKERS], most = 0;
    int n = 0;
    for (int i = 0; i < f->n_workers; i++) {
        if (f->workers[i].wall_s < f->loop_s / 2)
            continue;
        busy[n] = f->workers[i].busy_s / f->workers[i].wall_s;
        busiest = busy[n] > most ? &f->workers[i] : busiest;
        most = fmax(most, busy[n++]);
    }
    if (n < 2 || most < WEIR_OUTSIDE_SLOW_BUSY)
        return;
    qsort(busy, (size_t)n, sizeof *busy, weir_compare_double);
    double rest = busy[n - 2 - (n - 2) / 2]; /* the median of the others */
    if (rest > WEIR_OUTSIDE_SLOW_REST)
        return;
    struct weir_diagnosis_cause *finding =
        weir_job_likely(c, cause, most, 0, "process %.0f works %.0f %% of the time, the others %.0f %%", busiest->id,
                        weir_percent(most), weir_percent(rest));
    weir_job_say_wait(c, finding);
}

/* Returns how much longer an item of the file takes than one of the others, or 0 if that may be by chance: the longest
 * item of the file does not count. */
static double slower(const struct weir_dataloader_figures *f, const struct weir_watch_file *file, double *others_s)
{
    enum { ITEMS_LEAST = 4 };
    double total_s = file->mean_s * file->count, rest = f->paths - file->count;
    *others_s = rest > 0 ? (f->paths_s - total_s) / rest : 0;
    if (file->count < ITEMS_LEAST || *others_s <= 0 || total_s < WEIR_JOB_FILE_SHARE * f->paths_s)
        return 0;
    return (total_s - file->max_s) / (file->count - 1) / *others_s;
}

void weir_job_find_slow_item_file(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_figures *f = c->figures;
    const struct weir_watch_file *file = NULL;
    double others_s = 0;
    for (int i = 0; i < f->slowest.n_files && i < WEIR_WATCH_FILES && !file; i++)
        if (slower(f, &f->slowest.files[i], &others_s) >= WEIR_JOB_SLOW_FILE)
            file = &f->slowest.files[i];
    if (!file)
        return;
    double share = file->mean_s * file->count / f->paths_s;
    double times = 1 - share * (1 - others_s / file->mean_s) * fmin(f->paths_s / c->verdict->workers.busy_s, 1);
    double gain = fmax(weir_job_gain_times(c, times, times), weir_job_gain_saved(c, f->wait_order_s));
    struct weir_diagnosis_cause *finding =
        weir_job_found(c, cause, share, gain, "%s takes %.1f ms per item, the others %.1f ms", file->name,
                       file->mean_s * 1e3, others_s * 1e3);
    snprintf(finding->who, sizeof finding->who, "%s", file->name);
}

/* An iterable dataset divides its data itself: the worker with the largest share works alone when the others have
 * ended. */
void weir_job_find_own_shares(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_figures *f = c->figures;
    const struct weir_thread_figures *most = &f->workers[0];
    double batches = 0, busy_s = 0;
    for (int i = 0; i < f->n_workers; i++) {
        batches += f->workers[i].batches;
        busy_s += f->workers[i].busy_s;
        most = f->workers[i].busy_s > most->busy_s ? &f->workers[i] : most;
    }
    if (f->settings.iterable <= 0 || f->n_workers < 2 || batches <= 0 || busy_s <= 0)
        return;
    double rest = busy_s / f->n_workers / most->busy_s;
    if (most->batches / batches * f->n_workers < WEIR_JOB_SHARE || rest * WEIR_JOB_SHARE > 1 ||
        most->busy_s < WEIR_JOB_BUSY_WORKERS * (most->busy_s + most->wait_s))
        return;
    struct weir_diagnosis_cause *finding =
        weir_job_found(c, cause, 1 - rest, weir_job_gain_saved(c, (1 - rest) * c->wait_s),
                       "worker %.0f prepares %.0f of %.0f batches, and works alone when the others have no more",
                       most->id, most->batches, batches);
    finding->advice = WEIR_ADVICE_EVEN_SHARES;
    snprintf(finding->who, sizeof finding->who, "worker %.0f", most->id);
}

void weir_job_find_uneven(const struct weir_job_case *c, enum weir_cause cause)
{
    const struct weir_dataloader_figures *f = c->figures;
    const struct weir_thread_figures *sum = &c->verdict->workers;
    double order = f->wait_s > 0 ? f->wait_order_s / f->wait_s : 0;
    if (c->workers < 2 || order < WEIR_JOB_ORDER || sum->spread < WEIR_JOB_UNEVEN || f->settings.in_order == 0)
        return;
    weir_job_found(c, cause, order, weir_job_gain_saved(c, 0.9 * f->wait_order_s),
                   "in %.0f %% of the waits other batches were ready; batches take %.1f ms +- %.1f ms",
                   weir_percent(order), sum->batch_s * 1e3, sum->batch_s * sum->spread * 1e3);
}

/* ---- what they wait for ---- */

void weir_job_find_blocked(const struct weir_job_case *c, enum weir_cause cause)
{
    bool lock = cause == WEIR_CAUSE_LOCK;
    double share = weir_job_use(c, lock ? WEIR_TASK_LOCK : WEIR_TASK_STORAGE);
    double core_wait = weir_job_use(c, WEIR_TASK_CORE_WAIT);
    double least = WEIR_JOB_ASLEEP * fmax(1 - core_wait, 0.1); /* of the time with cores of its own */
    double asleep = fmax(1 - weir_job_use(c, WEIR_TASK_ON_CORE) - core_wait, 0.01);
    if (share < least || (lock && c->workers <= 1) || 1 - c->busy >= WEIR_JOB_IDLE)
        return;
    struct weir_diagnosis_cause *finding = weir_job_found(
        c, cause, share, lock ? weir_job_gain_lock(c) : weir_job_gain_times(c, 1, 1 - fmin(share / asleep, 1)),
        "%.0f %% of their busy time%s", weir_percent(share), lock ? "; only one of them works at a time" : "");
    if (!lock && c->figures->outside.known)
        weir_diagnosis_say(finding, ", and read %.1f MB/s from it", c->figures->outside.storage_bytes_per_s / 1e6);
    weir_job_sampled(c, finding, share, least);
    weir_job_say_wait(c, finding);
}

/* ---- their number ---- */

/* From outside: what the workers are busy with is not seen. */
static void say_workers(const struct weir_job_case *c, struct weir_diagnosis_cause *finding)
{
    double on_core = weir_job_use(c, WEIR_TASK_ON_CORE), others = c->verdict->threads + c->verdict->for_threads;
    if (!c->figures->outside.known)
        return;
    weir_diagnosis_say(finding, "; at work they are on a core %.0f %% of the time, asleep %.0f %%",
                       weir_percent(on_core - c->verdict->for_threads),
                       weir_percent(1 - on_core + c->verdict->for_threads - weir_job_use(c, WEIR_TASK_CORE_WAIT)));
    if (others >= WEIR_JOB_HELPED)
        weir_diagnosis_say(finding, ", and their other threads use %.1f cores each", others * c->busy);
    weir_job_say_wait(c, finding);
    if (c->idle_cores >= 0)
        weir_diagnosis_say(finding, "; %.1f of %.3g cores are idle", c->idle_cores, c->limit);
}

/* Suggests as many workers as idle cores allow, where the loop's wait is not known. */
static double possible_workers(const struct weir_job_case *c)
{
    double each = weir_job_use(c, WEIR_TASK_ON_CORE) * c->busy + c->verdict->threads;
    double possible = c->workers + floor((fmax(c->idle_cores, 0) + 0.25) / fmax(each, 0.05));
    return fmin(possible, 4 * c->workers);
}

void weir_job_find_too_few(const struct weir_job_case *c, enum weir_cause cause)
{
    double gain = 0, cores = fmax(c->figures->machine.cores, 1);
    bool sleeps = weir_job_sleeps(c);
    bool room = sleeps || c->idle_cores < 0 || c->idle_cores >= WEIR_JOB_FREE;
    double best = c->verdict->found.wait >= 0 ? weir_job_best_workers(c, fmin(sleeps ? 2 * cores : cores, 64), &gain)
                                              : possible_workers(c);
    bool more = gain >= WEIR_JOB_MORE_WORKERS ||
                (c->verdict->found.wait < 0 && c->workers > 0 && (sleeps || c->workers < cores));
    if (best <= c->workers || !room || !more)
        return;
    struct weir_diagnosis_cause *finding =
        c->workers <= 0
            ? weir_job_found(c, cause, c->verdict->found.wait, gain, "num_workers=0: loading and training take turns")
            : weir_job_found(c, cause, c->busy, gain, "%.0f worker%s, busy %.0f %% of the time, on %.0f cores",
                             c->workers, c->workers == 1 ? "" : "s", weir_percent(c->busy), cores);
    finding->workers = best;
    weir_job_outside(c, finding, !sleeps); /* what they wait for may not allow more */
    say_workers(c, finding);
}

void weir_job_find_busy(const struct weir_job_case *c, enum weir_cause cause)
{
    double cores = c->figures->machine.cores, core_wait = weir_job_use(c, WEIR_TASK_CORE_WAIT);
    bool crowd = c->workers > cores && core_wait >= WEIR_VERDICT_CORE_WAIT;
    struct weir_diagnosis_cause *finding =
        crowd ? weir_job_found(c, cause, c->busy, 0,
                               "%.0f workers share %.0f core%s, and wait for one %.0f %% of their busy time",
                               c->workers, cores, cores == 1 ? "" : "s", weir_percent(core_wait))
              : weir_job_found(c, cause, c->busy, 0, "%.0f worker%s, busy %.0f %% of the time, on %.0f cores",
                               c->workers, c->workers == 1 ? "" : "s", weir_percent(c->busy), cores);
    finding->advice = crowd                       ? WEIR_ADVICE_FEWER_WORKERS
                      : c->figures->outside.known ? WEIR_ADVICE_WATCH
                                                  : WEIR_ADVICE_NONE;
    finding->workers = crowd ? cores : 0;
    weir_job_outside(c, finding, true);
    say_workers(c, finding);
}

/* ---- what they are busy with ---- */

/* Returns whether reads compute, as from the page cache, rather than wait, as for a network. */
static bool reads_on_core(const struct weir_job_case *c)
{
    const struct weir_dataloader_stages *stages = &c->figures->stages;
    double ready = weir_job_use(c, WEIR_TASK_ON_CORE) + weir_job_use(c, WEIR_TASK_CORE_WAIT);
    return stages->read_cpu_s >= 0.5 * (ready > 0 ? weir_job_use(c, WEIR_TASK_ON_CORE) / ready : 1) * stages->read_s;
}

/* Returns the time of the cause's stages, and names them. own: room for a text. */
static double part_of(const struct weir_job_case *c, enum weir_cause cause, const char **what, const char **who,
                      char own[160])
{
    const struct weir_dataloader_figures *f = c->figures;
    const struct weir_dataloader_stages *stages = &f->stages;
    *who = "";
    switch (cause) {
    case WEIR_CAUSE_DECODE:
        *what = "decoding";
        return stages->decode_s;
    case WEIR_CAUSE_TRANSFORM:
        *what = "";
        *who = stages->transform;
        return stages->transform_s;
    case WEIR_CAUSE_COLLATE:
        *what = "collating and sending batches";
        return stages->collate_s + stages->pickle_s;
    case WEIR_CAUSE_OWN_CODE:
        snprintf(own, 160, "code in __getitem__ outside timed calls%s%s%s", f->slowest.n_unseen > 0 ? ", or " : "",
                 f->slowest.n_unseen > 0 ? f->slowest.unseen[0].what : "", f->slowest.n_unseen > 0 ? "," : "");
        *what = stages->named[0] ? "the dataset's code, mostly" : own;
        *who = stages->named;
        return stages->own_s + stages->named_s;
    default:
        *what = "reading files";
        return reads_on_core(c) == (cause == WEIR_CAUSE_READ_CPU) ? stages->read_s : 0;
    }
}

/* A stage that takes much of the busy time. Its gain is that of half its time. */
void weir_job_find_part(const struct weir_job_case *c, enum weir_cause cause)
{
    char own[160];
    const char *what, *who;
    double busy_s = c->figures->stages.busy_s, s = part_of(c, cause, &what, &who, own);
    double share = busy_s > 0 ? fmin(s / busy_s, 1) : 0, times = 1 - 0.5 * share * weir_job_own(c);
    if (share < WEIR_JOB_PART)
        return;
    struct weir_diagnosis_cause *finding =
        weir_job_found(c, cause, share, weir_job_gain_times(c, times, times), "%s%s%s takes %.0f %% of their busy time",
                       what, who[0] ? " " : "", who, weir_percent(share));
    snprintf(finding->who, sizeof finding->who, "%s", who);
}
