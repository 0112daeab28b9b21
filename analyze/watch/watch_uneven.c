/* Causes that are one of many: a slow worker, a slow file, a large share of the data, a long batch. */
#include "analyze/watch/watch_verdict_priv.h"
#include "base/numbers.h"

#include <math.h>
#include <stdlib.h>

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
    return calm_s(&f->workers[slowest]) >= WEIR_WATCH_SLOW_WORKER * others_s;
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
    if (n == 0 || f->workers[slowest].batches < 3 || !is_slow_itself(f, slowest) ||
        weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_IMBALANCE))
        return;
    qsort(others, (size_t)n, sizeof others[0], weir_compare_double);
    double usual_s = others[n / 2], slow_s = f->workers[slowest].batch_s;
    /* With uneven batches, one worker's mean can be large by chance. */
    double error_s = f->workers[slowest].spread * slow_s / sqrt(f->workers[slowest].batches);
    if (usual_s <= 0 || slow_s < WEIR_WATCH_SLOW_WORKER * usual_s || slow_s - 3 * error_s < usual_s)
        return;
    double times = usual_s / slow_s;
    struct weir_diagnosis_cause *cause = weir_diagnosis_add(
        &c->verdict->found, WEIR_CAUSE_SLOW_WORKER, f->wait_s > 0 ? f->workers[slowest].asked_of_s / f->wait_s : 0,
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
    if (file->count < ITEMS_LEAST || *others_s <= 0 || total_s < WEIR_WATCH_FILE_SHARE * f->paths_s)
        return 0;
    return (total_s - file->max_s) / (file->count - 1) / *others_s;
}

static void find_slow_file(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    const struct weir_watch_slow_file *file = NULL;
    double others_s = 0;
    for (int i = 0; i < f->n_files && i < WEIR_WATCH_FILES && !file; i++)
        if (slower(f, &f->slow_files[i], &others_s) >= WEIR_WATCH_SLOW_FILE)
            file = &f->slow_files[i];
    if (!file)
        return;
    double share = file->mean_s * file->count / f->paths_s;
    double times = 1 - share * (1 - others_s / file->mean_s) * fmin(f->paths_s / c->verdict->sums.busy_s, 1);
    double gain = fmax(weir_watch_gain_times(c, times, times), weir_watch_gain_saved(c, f->wait_order_s));
    struct weir_diagnosis_cause *cause = weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_SLOW_FILE, share, gain,
                                                            "%s takes %.1f ms per item, the others %.1f ms", file->name,
                                                            file->mean_s * 1e3, others_s * 1e3);
    snprintf(cause->who, sizeof cause->who, "%s", file->name);
}

/* An iterable dataset divides its data itself: the worker with the largest share works alone when the others have
 * ended. */
static void find_uneven_shares(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    const struct weir_watch_worker *most = &f->workers[0];
    double batches = 0, busy_s = 0;
    for (int i = 0; i < f->n_workers; i++) {
        batches += f->workers[i].batches;
        busy_s += f->workers[i].busy_s;
        most = f->workers[i].busy_s > most->busy_s ? &f->workers[i] : most;
    }
    if (f->settings.iterable <= 0 || f->n_workers < 2 || batches <= 0 || busy_s <= 0)
        return;
    double rest = busy_s / f->n_workers / most->busy_s;
    if (most->batches / batches * f->n_workers < WEIR_WATCH_SHARE || rest * WEIR_WATCH_SHARE > 1 ||
        most->busy_s < WEIR_JOB_BUSY_WORKERS * (most->busy_s + most->wait_s))
        return;
    struct weir_diagnosis_cause *cause = weir_diagnosis_add(
        &c->verdict->found, WEIR_CAUSE_IMBALANCE, 1 - rest, weir_watch_gain_saved(c, (1 - rest) * c->wait_s),
        "worker %.0f prepares %.0f of %.0f batches, and works alone when the others have no more", most->worker,
        most->batches, batches);
    cause->advice = WEIR_ADVICE_EVEN_SHARES;
    snprintf(cause->who, sizeof cause->who, "worker %.0f", most->worker);
}

static void find_imbalance(struct weir_watch_case *c)
{
    const struct weir_watch_figures *f = c->figures;
    double order = f->wait_s > 0 ? f->wait_order_s / f->wait_s : 0;
    bool one = weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_SLOW_WORKER) ||
               weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_SLOW_FILE) ||
               weir_diagnosis_has(&c->verdict->found, WEIR_CAUSE_IMBALANCE);
    if (c->workers < 2 || one || order < WEIR_WATCH_ORDER || c->verdict->sums.spread < WEIR_WATCH_UNEVEN ||
        f->settings.in_order == 0)
        return;
    weir_diagnosis_add(&c->verdict->found, WEIR_CAUSE_IMBALANCE, order, weir_watch_gain_saved(c, 0.9 * f->wait_order_s),
                       "in %.0f %% of the waits other batches were ready; batches take %.1f ms +- %.1f ms",
                       weir_percent(order), c->verdict->sums.batch_s * 1e3,
                       c->verdict->sums.batch_s * c->verdict->sums.spread * 1e3);
}

void weir_watch_find_uneven(struct weir_watch_case *c)
{
    find_uneven_shares(c);
    find_slow_worker(c);
    find_slow_file(c);
    find_imbalance(c);
}
