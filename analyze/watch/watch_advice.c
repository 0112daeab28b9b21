/* What to change: the advice for the causes, and settings whose predicted gain is worth it. */
#include "analyze/watch/watch_verdict_priv.h"

#include <math.h>
#include <stdlib.h>

static struct weir_watch_advice *find(struct weir_watch_verdict *verdict, enum weir_job_advice advice)
{
    for (int i = 0; i < verdict->n_advices; i++)
        if (verdict->advices[i].advice == advice)
            return &verdict->advices[i];
    return NULL;
}

static struct weir_watch_advice *add(const struct weir_watch_case *c, enum weir_job_advice advice, double ratio)
{
    struct weir_watch_verdict *verdict = c->verdict;
    if (advice == WEIR_JOB_ADVICE_NONE || find(verdict, advice) || verdict->n_advices == WEIR_WATCH_ADVICES)
        return NULL;
    struct weir_watch_advice *to = &verdict->advices[verdict->n_advices++];
    *to = (struct weir_watch_advice){.advice = advice, .ratio = ratio >= WEIR_VERDICT_WORTH ? ratio : 0};
    return to;
}

static void set_number(struct weir_watch_advice *to, const char *name, double value)
{
    if (!to || value <= 0)
        return;
    to->value = value;
    snprintf(to->setting, sizeof to->setting, "%s=%.0f", name, value);
}

static void set_text(struct weir_watch_advice *to, const char *setting)
{
    if (to)
        snprintf(to->setting, sizeof to->setting, "%s", setting);
}

/* ---- settings ---- */

/* More workers help up to the cores, and further if they sleep. */
static void advise_workers(const struct weir_watch_case *c, double cores)
{
    double gain, best = weir_watch_best_workers(c, cores, &gain);
    if (best > c->workers && gain >= WEIR_VERDICT_WORTH)
        set_number(add(c, WEIR_JOB_ADVICE_NUM_WORKERS, gain), "num_workers", best);
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
        set_number(add(c, WEIR_JOB_ADVICE_PREFETCH, best), "prefetch_factor", value);
}

/* Opening the file again for each item costs more than reading from it. */
static void advise_open(const struct weir_watch_case *c)
{
    const struct weir_watch_parts *parts = &c->verdict->parts;
    double share = parts->busy_s > 0 ? fmin(parts->open_s / parts->busy_s, 1) : 0;
    double times = 1 - share * weir_watch_own(c);
    if (parts->opens >= WEIR_WATCH_OPENS * c->figures->items && share >= WEIR_WATCH_OPEN_SHARE)
        add(c, WEIR_JOB_ADVICE_KEEP_OPEN, weir_watch_gain_times(c, times, times));
}

/* What to look at next if no cause is known, or it is not the data. */
static enum weir_job_advice next_step(const struct weir_watch_case *c)
{
    const struct weir_watch_verdict *verdict = c->verdict;
    if (verdict->parts.step_s <= 0 || verdict->bound == WEIR_BOUND_UNKNOWN)
        return WEIR_JOB_ADVICE_NONE;
    return c->figures->settings.any_iterable > 0 && verdict->bound != WEIR_BOUND_NO ? WEIR_JOB_ADVICE_TIME_PARTS
                                                                                    : WEIR_JOB_ADVICE_TRACE;
}

static void advise_cause(const struct weir_watch_case *c, const struct weir_watch_cause *cause)
{
    enum weir_job_advice advice = weir_job_cause_info(cause->cause)->advice;
    struct weir_watch_advice *to;
    switch (cause->cause) {
    case WEIR_JOB_UNSURE: /* this is the watch */
    case WEIR_JOB_NOT_DATA_BOUND:
        add(c, next_step(c), 0);
        return;
    case WEIR_JOB_TOO_FEW_WORKERS:
        to = add(c, advice, cause->gain);
        set_number(to, "num_workers", strtod(cause->who, NULL));
        return;
    case WEIR_JOB_START_UP:
        set_text(add(c, advice, cause->gain), "persistent_workers=True");
        return;
    case WEIR_JOB_PIN_OFF:
        set_text(add(c, advice, cause->gain), "pin_memory=True");
        return;
    case WEIR_JOB_READ_CPU:
        advise_open(c);
        add(c, advice, cause->gain);
        return;
    case WEIR_JOB_IMBALANCE:
        if (cause->who[0]) {
            add(c, WEIR_JOB_ADVICE_EVEN_SHARES, cause->gain);
            return;
        }
        set_text(add(c, advice, cause->gain), "in_order=False");
        return;
    case WEIR_JOB_TOO_MANY_THREADS:
        set_text(add(c, advice, cause->gain), "cv2.setNumThreads(0), torch.set_num_threads(1)");
        return;
    default:
        add(c, advice, cause->gain);
    }
}

static void sort(struct weir_watch_verdict *verdict)
{
    for (int i = 2; i < verdict->n_advices; i++) /* the advice for the first cause stays first */
        for (int k = i; k > 1 && verdict->advices[k - 1].ratio < verdict->advices[k].ratio; k--) {
            struct weir_watch_advice swap = verdict->advices[k];
            verdict->advices[k] = verdict->advices[k - 1];
            verdict->advices[k - 1] = swap;
        }
}

void weir_watch_advise(const struct weir_watch_case *c)
{
    const struct weir_watch_verdict *verdict = c->verdict;
    bool sleeps = verdict->sums.batch_s > 0 && verdict->sums.on_core + verdict->sums.core_wait < 0.5;
    if (c->figures->settings.hdf5_opened > 0) /* first, because the workers share the file's position */
        add(c, WEIR_JOB_ADVICE_OPEN_PER_WORKER, 0);
    for (int i = 0; i < verdict->n_causes; i++)
        advise_cause(c, &verdict->causes[i]);
    if (verdict->bound != WEIR_BOUND_PARTLY && verdict->bound != WEIR_BOUND_STRONGLY)
        return;
    if (c->figures->settings.any_iterable > 0 || verdict->causes[0].cause == WEIR_JOB_LOCK)
        return;
    advise_open(c);
    double cores = fmax(c->report->prof.machine.cores, 1);
    advise_workers(c, fmin(sleeps ? 2 * cores : cores, 64));
    advise_prefetch(c);
    sort(c->verdict);
}
