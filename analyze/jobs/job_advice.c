/* What to change: the advice for the causes, and settings whose predicted gain is worth it. */
#include "analyze/jobs/job_verdict_priv.h"

#include <math.h>

/* ---- settings ---- */

/* More workers help up to the cores, and further if they sleep. */
static void advise_workers(const struct weir_job_case *c, double cores)
{
    double gain, best = weir_job_best_workers(c, cores, &gain);
    if (best > c->workers && gain >= WEIR_VERDICT_WORTH)
        weir_advice_set(weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_MORE_WORKERS, gain), "num_workers",
                        c->figures->settings.num_workers, best);
}

static void advise_prefetch(const struct weir_job_case *c)
{
    double best = 1, value = 0;
    for (double times = 2; times <= 4 && c->workers > 0; times *= 2) {
        double gain = weir_job_gain_workers(c, c->workers, c->prefetch * times);
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
static void advise_open(const struct weir_job_case *c)
{
    const struct weir_dataloader_stages *parts = &c->figures->stages;
    double share = parts->busy_s > 0 ? fmin(parts->open_s / parts->busy_s, 1) : 0;
    double times = 1 - share * weir_job_own(c);
    if (parts->opens >= WEIR_JOB_OPENS * c->figures->items && share >= WEIR_JOB_OPEN_SHARE)
        weir_diagnosis_advise(&c->verdict->found, WEIR_ADVICE_KEEP_OPEN, weir_job_gain_times(c, times, times));
}

/* What to look at next if no cause is known, or it is not the data. */
static enum weir_advice_kind next_step(const struct weir_job_case *c, const struct weir_diagnosis_cause *cause)
{
    if (c->figures->outside.known)
        return cause->advice;
    if (c->figures->stages.step_s <= 0 || c->bound == WEIR_BOUND_UNKNOWN)
        return WEIR_ADVICE_NONE;
    return c->figures->settings.any_iterable > 0 && c->bound != WEIR_BOUND_NO ? WEIR_ADVICE_TIME_PARTS
                                                                              : WEIR_ADVICE_TRACE;
}

/* Returns whether the advice, which is in PyTorch's words, also applies to Weir's loader. */
static bool applies_to_weir(enum weir_advice_kind advice)
{
    return advice == WEIR_ADVICE_NONE || advice == WEIR_ADVICE_MORE_WORKERS || advice == WEIR_ADVICE_FEWER_WORKERS ||
           advice == WEIR_ADVICE_FASTER_STORAGE || advice == WEIR_ADVICE_QUOTA || advice == WEIR_ADVICE_FREE_CORES;
}

static void advise_cause(const struct weir_job_case *c, const struct weir_diagnosis_cause *cause)
{
    bool is_data = cause->cause != WEIR_CAUSE_CANNOT_TELL && cause->cause != WEIR_CAUSE_CONSUMER;
    enum weir_advice_kind kind = is_data ? cause->advice : next_step(c, cause);
    if (cause->cause == WEIR_CAUSE_READ_CPU)
        advise_open(c);
    if (c->figures->outside.weir && !applies_to_weir(kind))
        kind = WEIR_ADVICE_OWN_REPORT;
    weir_advice_set(weir_diagnosis_advise(&c->verdict->found, kind, cause->gain), "num_workers",
                    c->figures->settings.num_workers, cause->workers);
}

static void sort(struct weir_diagnosis *found)
{
    for (int i = 2; i < found->n_advices; i++) /* the advice for the first cause stays first */
        for (int k = i; k > 1 && found->advices[k - 1].ratio < found->advices[k].ratio; k--) {
            struct weir_advice swap = found->advices[k];
            found->advices[k] = found->advices[k - 1];
            found->advices[k - 1] = swap;
        }
}

void weir_job_advise(const struct weir_job_case *c)
{
    struct weir_diagnosis *found = &c->verdict->found;
    double cores = fmax(c->figures->machine.cores, 1);
    if (c->figures->settings.hdf5_opened > 0) /* first, because the workers share the file's position */
        weir_diagnosis_advise(found, WEIR_ADVICE_OPEN_PER_WORKER, 0);
    for (int i = 0; i < found->n_causes; i++)
        advise_cause(c, &found->causes[i]);
    if (c->figures->outside.known || (c->bound != WEIR_BOUND_PARTLY && c->bound != WEIR_BOUND_STRONGLY))
        return;
    if (c->figures->settings.any_iterable > 0 || found->causes[0].cause == WEIR_CAUSE_LOCK)
        return;
    advise_open(c);
    bool sleeps = c->verdict->workers.batch_s > 0 && weir_job_sleeps(c);
    advise_workers(c, fmin(sleeps ? 2 * cores : cores, 64));
    advise_prefetch(c);
    sort(found);
}
