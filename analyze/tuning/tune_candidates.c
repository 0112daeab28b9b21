#include "analyze/tuning/tune_priv.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

static const double ONE_MARGIN = 1.10;  /* max speed of one of several workers, relative to a single worker */
static const double KEEPS_UP = 0.95;    /* min rate of a base, relative to the fastest, judging by one trial each */
static const double MORE_MARGIN = 1.10; /* factor applied to predicted additional memory */
static const double SPREAD_MOST = 0.25; /* max spread of one setting's trials that comparisons allow for */
enum { DISTURBED_TURNS = 2 };

/* ---- settings ---- */

int weir_tune_compare(const struct weir_tune_setting *a, const struct weir_tune_setting *b)
{
    const double of_a[] = {a->workers, a->prefetch, a->cache_bytes, a->engine, a->decoder, a->depth};
    const double of_b[] = {b->workers, b->prefetch, b->cache_bytes, b->engine, b->decoder, b->depth};
    for (size_t i = 0; i < sizeof of_a / sizeof of_a[0]; i++)
        if (of_a[i] < of_b[i] || of_a[i] > of_b[i])
            return of_a[i] < of_b[i] ? -1 : 1;
    return 0;
}

void weir_tune_describe(const struct weir_tune_space *space, const struct weir_tune_setting *setting, char *text,
                        size_t size)
{
    char prefetch[16] = "auto", cache[40] = "", depth[24] = "";
    if (setting->prefetch > 0)
        snprintf(prefetch, sizeof prefetch, "%d", setting->prefetch);
    if (setting->depth > 0)
        snprintf(depth, sizeof depth, " (depth %d)", setting->depth);
    if (setting->cache_bytes > 0)
        snprintf(cache, sizeof cache, ", decode cache %.0f MiB", ceil(setting->cache_bytes / (1 << 20)));
    snprintf(text, size, "workers %d, prefetch %s, %s%s%s%s%s", setting->workers, prefetch,
             setting->engine >= 0 ? space->engines[setting->engine] : "auto", depth, space->n_decoders > 0 ? ", " : "",
             space->n_decoders == 0  ? ""
             : setting->decoder >= 0 ? space->decoders[setting->decoder]
                                     : "auto",
             cache);
}

/* ---- memory ---- */

/* Predicts the peak memory by extrapolating from the nearest measured setting. Returns 0 if no setting was measured. */
static double predicted_peak(const struct weir_tune *tune, const struct weir_tune_setting *to)
{
    const struct weir_tune_candidate *from = NULL;
    for (int i = 0; i < tune->n; i++)
        if (tune->candidates[i].measured.n_trials > 0 &&
            (!from ||
             abs(tune->candidates[i].setting.workers - to->workers) < abs(from->setting.workers - to->workers)))
            from = &tune->candidates[i];
    if (!from)
        return 0;
    const struct weir_tune_space *space = &tune->space;
    const struct weir_tune_setting *s = &from->setting;
    double peak = weir_candidate_median(&from->measured, weir_trial_peak_bytes);
    int more_ahead = to->prefetch > 0 ? to->prefetch - s->prefetch : 0; /* unknown if prefetch is automatic */
    peak += (to->workers - s->workers) * tune->look.worker_bytes + more_ahead * tune->look.slot_bytes;
    peak += to->cache_bytes - s->cache_bytes;
    if (to->engine >= 0 && space->maps[to->engine] && !(s->engine >= 0 && space->maps[s->engine]))
        peak += space->file_bytes;
    double measured = weir_candidate_median(&from->measured, weir_trial_peak_bytes);
    return peak > measured ? measured + MORE_MARGIN * (peak - measured) : peak;
}

bool weir_tune_fits(const struct weir_tune *tune, const struct weir_tune_setting *setting)
{
    return tune->space.memory_max <= 0 || predicted_peak(tune, setting) <= tune->space.memory_max;
}

/* ---- candidates ---- */

static int find(const struct weir_tune *tune, const struct weir_tune_setting *setting)
{
    for (int i = 0; i < tune->n; i++)
        if (weir_tune_compare(&tune->candidates[i].setting, setting) == 0)
            return i;
    return -1;
}

double weir_tune_spread(const struct weir_tune *tune)
{
    double widest = 0;
    for (int i = 0; i < tune->n; i++) {
        struct weir_interval rate;
        weir_candidate_interval(&tune->candidates[i].measured, weir_trial_images_per_s, &rate);
        if (rate.n > 1 && rate.median > 0)
            widest = fmax(widest, (rate.most - rate.least) / rate.median);
    }
    return fmin(widest, SPREAD_MOST);
}

double weir_tune_ceiling(const struct weir_tune *tune, int workers)
{
    double ceiling = tune->one_rate > 0 ? (ONE_MARGIN + weir_tune_spread(tune)) * workers * tune->one_rate : INFINITY;
    return tune->limit_rate > 0 ? fmin(ceiling, ONE_MARGIN * tune->limit_rate) : ceiling;
}

bool weir_tune_keeps_up(const struct weir_tune *tune, int i)
{
    int fastest = weir_tune_fastest(tune);
    return i >= 0 && fastest >= 0 &&
           weir_tune_rate(tune, i) >= (KEEPS_UP - weir_tune_spread(tune)) * weir_tune_rate(tune, fastest);
}

/* Returns whether other processes disturbed the candidate's last trial. */
static bool was_disturbed(const struct weir_tune *tune, int i)
{
    const struct weir_candidate *candidate = &tune->candidates[i].measured;
    return candidate->n_trials > 0 && !*candidate->why &&
           weir_tune_is_disturbed(tune, &candidate->trials[candidate->n_trials - 1]);
}

int weir_tune_try(struct weir_tune *tune, const struct weir_tune_setting *setting, const char *why, int *index)
{
    char text[160];
    *index = find(tune, setting);
    if (*index >= 0 || tune->n == WEIR_TUNE_CANDIDATES)
        return 0;
    weir_tune_describe(&tune->space, setting, text, sizeof text);
    if (!weir_tune_fits(tune, setting)) {
        weir_tune_tell(tune, "%s: would use about %s, more than --max-memory", text,
                       weir_size(predicted_peak(tune, setting)).text);
        return 0;
    }
    int i = tune->n++;
    tune->candidates[i] = (struct weir_tune_candidate){.setting = *setting};
    int rc = weir_tune_trial(tune, i);
    for (int more = 0; rc == 0 && more < DISTURBED_TURNS && was_disturbed(tune, i) && !weir_tune_keeps_up(tune, i);
         more++)
        rc = weir_tune_trial(tune, i);
    if (rc < 0) {
        tune->n -= tune->candidates[i].measured.n_trials == 0;
        return rc;
    }
    if (setting->prefetch == 0 && i > 0 && tune->candidates[i].measured.n_trials > 0)
        tune->candidates[i].setting.prefetch = MAX((int)tune->candidates[i].measured.trials[0].used.prefetch, 1);
    if (*tune->candidates[i].measured.why)
        weir_tune_tell(tune, "%s: left out: %s", text, tune->candidates[i].measured.why);
    else
        weir_tune_tell(tune, "%s: %.0f images/s (%s)", text, weir_tune_rate(tune, i), why);
    *index = i;
    return 0;
}

struct weir_tune_setting weir_tune_base(const struct weir_tune *tune)
{
    return tune->candidates[tune->base].setting;
}

const struct weir_demands *weir_tune_base_demands(const struct weir_tune *tune)
{
    return &tune->candidates[tune->base].demands;
}

bool weir_tune_adopt(struct weir_tune *tune, int i)
{
    if (i < 0 || weir_tune_rate(tune, i) < WEIR_TUNE_WORTH * weir_tune_rate(tune, tune->base))
        return false;
    tune->base = i;
    return true;
}

bool weir_tune_at_limit(const struct weir_tune *tune)
{
    int fastest = weir_tune_fastest(tune);
    return tune->limit_rate > 0 && fastest >= 0 && WEIR_TUNE_WORTH * weir_tune_rate(tune, fastest) >= tune->limit_rate;
}
