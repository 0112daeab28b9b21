/* What to change: the advice for the causes, and settings whose predicted gain is worth it. */
#include "analyze/watch/watch_verdict_priv.h"

#include <math.h>

/* ---- settings ---- */

/* More workers help up to the cores, and further if they sleep. */
static void advise_workers(const struct weir_watch_case *c, double cores)
{
    double gain, best = weir_watch_best_workers(c, cores, &gain);
    if (best > c->workers && gain >= WEIR_VERDICT_WORTH)
        weir_advice_set(weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_MORE_WORKERS, gain), "num_workers",
                        c->figures->settings.num_workers, best);
}

static void advise_prefetch(const struct weir_watch_case *c)
{
    double best = 1, value = 0;
    for (double times = 2; times <= 4 && c->workers > 0; times *= 2) {
        double gain = weir_watch_gain_workers(c, c->workers, c->prefetch * times);
        if (gain > best * (1 + WEIR_CLOSE)) {
            best = gain;
            value = c->prefetch * times;
        }
    }
    if (best >= WEIR_VERDICT_WORTH)
        weir_advice_set(weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_MORE_BATCHES, best), "prefetch_factor",
                        c->figures->settings.prefetch_factor, value);
}

/* Opening the file again for each item costs more than reading from it. */
static void advise_open(const struct weir_watch_case *c)
{
    const struct weir_watch_parts *parts = &c->verdict->parts;
    double share = parts->busy_s > 0 ? fmin(parts->open_s / parts->busy_s, 1) : 0;
    double times = 1 - share * weir_watch_own(c);
    if (parts->opens >= WEIR_WATCH_OPENS * c->figures->items && share >= WEIR_WATCH_OPEN_SHARE)
        weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_KEEP_OPEN, weir_watch_gain_times(c, times, times));
}

/* What to look at next if no cause is known, or it is not the data. */
static enum weir_advice_kind next_step(const struct weir_watch_case *c)
{
    const struct weir_watch_verdict *verdict = c->verdict;
    if (verdict->parts.step_s <= 0 || verdict->found.bound == WEIR_BOUND_UNKNOWN)
        return WEIR_ADVICE_NONE;
    return c->figures->settings.any_iterable > 0 && verdict->found.bound != WEIR_BOUND_NO ? WEIR_ADVICE_TIME_PARTS
                                                                                          : WEIR_ADVICE_TRACE;
}

static void advise_cause(const struct weir_watch_case *c, const struct weir_diagnosis_cause *cause)
{
    bool is_data = cause->cause != WEIR_CAUSE_CANNOT_TELL && cause->cause != WEIR_CAUSE_CONSUMER;
    if (cause->cause == WEIR_CAUSE_READ_CPU)
        advise_open(c);
    struct weir_advice *to =
        weir_diagnosis_advise(&c->verdict->found, is_data ? cause->advice : next_step(c), cause->gain);
    weir_advice_set(to, "num_workers", c->figures->settings.num_workers, cause->workers);
}

static void sort(struct weir_watch_verdict *verdict)
{
    for (int i = 2; i < verdict->found.n_advices; i++) /* the advice for the first cause stays first */
        for (int k = i; k > 1 && verdict->found.advices[k - 1].ratio < verdict->found.advices[k].ratio; k--) {
            struct weir_advice swap = verdict->found.advices[k];
            verdict->found.advices[k] = verdict->found.advices[k - 1];
            verdict->found.advices[k - 1] = swap;
        }
}

void weir_watch_advise(const struct weir_watch_case *c)
{
    const struct weir_watch_verdict *verdict = c->verdict;
    bool sleeps = verdict->sums.batch_s > 0 && verdict->sums.on_core + verdict->sums.core_wait < 0.5;
    if (c->figures->settings.hdf5_opened > 0) /* first, because the workers share the file's position */
        weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_OPEN_PER_WORKER, 0);
    for (int i = 0; i < verdict->found.n_causes; i++)
        advise_cause(c, &verdict->found.causes[i]);
    if (verdict->found.bound != WEIR_BOUND_PARTLY && verdict->found.bound != WEIR_BOUND_STRONGLY)
        return;
    if (c->figures->settings.any_iterable > 0 || verdict->found.causes[0].cause == WEIR_CAUSE_LOCK)
        return;
    advise_open(c);
    double cores = fmax(c->report->prof.machine.cores, 1);
    advise_workers(c, fmin(sleeps ? 2 * cores : cores, 64));
    advise_prefetch(c);
    sort(c->verdict);
}
