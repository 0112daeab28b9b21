#include "analyze/tuning/tune_search.h"

#include "analyze/tuning/tune_priv.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

static const double FINALIST = 0.93; /* min rate of a finalist, relative to the fastest, judging by one trial each */
static const double GROWS = 1.10;    /* CPU time per image, relative to one worker, that indicates contention */
static const double EPOCHS_S =
    20; /* max duration of the epoch that fills a cache, as a multiple of a trial's duration */
enum { FINALISTS = 5, BASE_TURNS = 2 };

/* ---- conclusions from the first measurement ---- */

/* Returns whether the cores are busy, with work that engine and prefetch cannot change. */
static bool cores_are_busy(const struct weir_demands *d)
{
    return d->known && d->bound[WEIR_RESOURCE_CORES] > 0 && WEIR_TUNE_WORTH * d->rate >= d->bound[WEIR_RESOURCE_CORES];
}

/* Returns the speed-up if workers spent no time in reads, neither computing nor asleep. */
static double reading_gain(const struct weir_demands *d)
{
    if (!d->known || d->cpu[WEIR_CPU_READ] < 0)
        return INFINITY;
    double busy = d->of.cpu + d->of.blocked, read = d->of.cpu * d->cpu[WEIR_CPU_READ] + d->of.blocked * d->blocked_read;
    return busy > 0 ? busy / fmax(busy - read, 0.01 * busy) : INFINITY;
}

static void tell_bounds(struct weir_tune *tune)
{
    const struct weir_demands *d = &tune->look.demands;
    char text[256] = "";
    for (int i = 0; i < WEIR_RESOURCES && d->known; i++)
        if (d->bound[i] > 0)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%sthe %s %.0f", *text ? ", " : "",
                     weir_resource_text((enum weir_resource)i), d->bound[i]);
    if (*text)
        weir_tune_tell(tune, "limits in images/s: %s", text);
    if (tune->disturbed)
        weir_tune_tell(tune, "other processes use %.2f of %.2f cores, so the result is valid only under this load",
                       tune->look.trial.others_cores, (double)tune->space.cores);
    if (weir_tune_at_limit(tune))
        weir_tune_tell(tune, "no setting can be 3 %% faster, so only cheaper settings are tried");
}

/* ---- steps ---- */

static struct weir_tune_setting first_setting(const struct weir_tune_space *space)
{
    return (struct weir_tune_setting){
        .workers = MAX(space->cores, 1), .engine = WEIR_TUNE_AUTO, .decoder = WEIR_TUNE_AUTO};
}

/* Replaces the first setting's automatic values with the values that the program chose. */
static void name_choices(struct weir_tune *tune)
{
    struct weir_tune_setting *s = &tune->candidates[0].setting;
    if (s->prefetch == 0)
        s->prefetch = MAX((int)tune->look.trial.used.prefetch, 1);
    if (s->engine == WEIR_TUNE_AUTO)
        s->engine = tune->look.engine;
    if (s->decoder == WEIR_TUNE_AUTO)
        s->decoder = tune->look.decoder;
}

/* Measures the first setting. With a memory limit, measures the smallest setting first, to learn how much more fits. */
static int look(struct weir_tune *tune)
{
    struct weir_tune_setting setting = first_setting(&tune->space);
    int i, rc;
    if (tune->space.memory_max > 0) {
        struct weir_tune_setting least = {.workers = 1, .prefetch = 1, .engine = 0, .decoder = WEIR_TUNE_AUTO};
        rc = weir_tune_try(tune, &least, "minimum memory", &i);
        if (rc < 0 || *tune->candidates[0].measured.why)
            return rc;
        name_choices(tune);
        setting = tune->candidates[0].setting;
        for (setting.workers = MAX(tune->space.cores, 1); setting.workers > 1 && !weir_tune_fits(tune, &setting);)
            setting.workers--;
        while (setting.workers > 1 && setting.prefetch < 4) {
            struct weir_tune_setting more = setting;
            more.prefetch *= 2;
            if (!weir_tune_fits(tune, &more))
                break;
            setting = more;
        }
        tune->look.demands.known = false; /* use the demands measured with all cores instead */
    }
    rc = weir_tune_try(tune, &setting, "all cores, automatic settings", &i);
    if (rc == 0 && tune->space.memory_max <= 0 && !*tune->candidates[0].measured.why)
        name_choices(tune);
    return rc;
}

/* Measures one worker, because its rate bounds the gain of each additional worker. */
static int try_one(struct weir_tune *tune)
{
    struct weir_tune_setting one = weir_tune_base(tune);
    int i, rc;
    one.workers = 1;
    rc = weir_tune_try(tune, &one, "upper limit of each worker's gain", &i);
    if (rc == 0 && i >= 0)
        tune->one_rate = weir_tune_rate(tune, i);
    return rc;
}

static int try_decoders(struct weir_tune *tune)
{
    int rc = 0, i;
    struct weir_tune_setting setting = weir_tune_base(tune);
    for (int d = 0; d < tune->space.n_decoders && rc == 0 && !weir_tune_at_limit(tune); d++) {
        if (d == weir_tune_base(tune).decoder)
            continue;
        setting.decoder = d;
        setting.prefetch = 0; /* automatic, because a GPU needs more prefetch than the CPU */
        rc = weir_tune_try(tune, &setting, "another decoder", &i);
        if (rc == 0)
            weir_tune_adopt(tune, i);
    }
    return rc;
}

static int try_depths(struct weir_tune *tune)
{
    static const int reads[] = {16, 256}, requests[] = {128, 512}; /* to a server; automatic begins with 64 */
    struct weir_tune_setting setting = weir_tune_base(tune);
    if (setting.engine < 0 && tune->space.n_engines == 1) /* no other one was tried */
        setting.engine = 0;
    const int *depths = setting.engine >= 0 && tune->space.remote[setting.engine] ? requests : reads;
    int rc = 0, i;
    if (setting.engine < 0 || !tune->space.deep[setting.engine] ||
        weir_tune_base_demands(tune)->of.blocked < WEIR_CLOSE)
        return 0;
    for (size_t d = 0; d < sizeof reads / sizeof reads[0] && rc == 0 && !weir_tune_at_limit(tune); d++) {
        setting.depth = depths[d];
        rc = weir_tune_try(tune, &setting, "reads in flight", &i);
        if (rc == 0)
            weir_tune_adopt(tune, i);
    }
    return rc;
}

static int try_engines(struct weir_tune *tune)
{
    const struct weir_demands *d = weir_tune_base_demands(tune);
    double gain = reading_gain(d);
    struct weir_tune_setting setting = weir_tune_base(tune);
    int rc = 0, i;
    if (weir_tune_at_limit(tune))
        return 0;
    if (gain < WEIR_TUNE_WORTH) {
        weir_tune_tell(tune,
                       "other engines are not tried: even without any reads, the rate would be only %.1f %% higher",
                       100 * (gain - 1));
        return 0;
    }
    for (int e = 0; e < tune->space.n_engines && tune->space.n_engines > 1 && rc == 0; e++) {
        setting.engine = e;
        rc = weir_tune_try(tune, &setting, "another engine", &i);
        if (rc == 0)
            weir_tune_adopt(tune, i);
    }
    return rc < 0 ? rc : try_depths(tune);
}

/* Tries more workers than cores. This helps if workers sleep, because other workers can then use their cores. */
static int try_more_workers(struct weir_tune *tune)
{
    const struct weir_demands *d = weir_tune_base_demands(tune);
    struct weir_tune_setting setting = weir_tune_base(tune);
    int i, rc = 0;
    if (tune->space.workers_max <= tune->space.cores || weir_tune_at_limit(tune))
        return 0;
    if (cores_are_busy(d)) {
        weir_tune_tell(tune,
                       "more workers than cores are not tried: this run uses %.2f of the %.2f cores that it can get",
                       d->own_cores, d->reachable);
        return 0;
    }
    for (int last = 0; rc == 0 && setting.workers < tune->space.workers_max; last = setting.workers) {
        setting.workers = MIN(MAX(setting.workers + 1, setting.workers * 3 / 2), tune->space.workers_max);
        if (setting.workers == last)
            break;
        rc = weir_tune_try(tune, &setting, "more workers than cores", &i);
        if (rc == 0 && !weir_tune_adopt(tune, i))
            break;
    }
    return rc;
}

/* Tries half the workers, which can be faster if workers contend for a lock or for memory bandwidth. */
static int try_half(struct weir_tune *tune)
{
    struct weir_tune_setting setting = weir_tune_base(tune);
    const struct weir_candidate *one = NULL, *all = &tune->candidates[tune->base].measured;
    for (int i = 0; i < tune->n && !one; i++)
        one = tune->candidates[i].setting.workers == 1 && !*tune->candidates[i].measured.why
                  ? &tune->candidates[i].measured
                  : NULL;
    double cpu_one = one ? weir_candidate_median(one, weir_trial_cpu_s_per_1000_images) : 0;
    double cpu_all = weir_candidate_median(all, weir_trial_cpu_s_per_1000_images);
    int rc = 0, i = 0;
    if (weir_tune_at_limit(tune) || cpu_one <= 0 || cpu_all < GROWS * cpu_one)
        return 0;
    while (rc == 0 && setting.workers > 2) {
        setting.workers /= 2;
        if (weir_tune_ceiling(tune, setting.workers) < (1 - WEIR_CLOSE) * weir_tune_rate(tune, weir_tune_fastest(tune)))
            break;
        rc = weir_tune_try(tune, &setting, "CPU time per image grows with the workers", &i);
        if (rc == 0)
            weir_tune_adopt(tune, i);
        if (rc == 0 && !weir_tune_keeps_up(tune, i))
            break;
    }
    return rc;
}

/* Tries more prefetch if workers are idle, because batches can come in bursts. */
static int try_more_prefetch(struct weir_tune *tune)
{
    const struct weir_demands *d = weir_tune_base_demands(tune);
    struct weir_tune_setting setting = weir_tune_base(tune);
    int i, rc = 0;
    if (weir_tune_at_limit(tune))
        return 0;
    if (d->known && 1 / fmax(1 - d->of.idle, 0.01) < WEIR_TUNE_WORTH) {
        weir_tune_tell(tune, "more prefetch is not tried: workers are idle only %.1f %% of their time",
                       100 * d->of.idle);
        return 0;
    }
    while (rc == 0 && setting.prefetch < tune->space.prefetch_max) {
        setting.prefetch = MIN(2 * setting.prefetch, tune->space.prefetch_max);
        rc = weir_tune_try(tune, &setting, "more prefetch", &i);
        if (rc == 0 && !weir_tune_adopt(tune, i))
            break;
    }
    return rc;
}

/* Finds the smallest number of workers that keeps up, by bisection between the number that weir_tune_ceiling requires
 * and that of the fastest setting. */
static int try_fewer_workers(struct weir_tune *tune, struct weir_tune_setting *setting)
{
    double rate = weir_tune_rate(tune, weir_tune_fastest(tune));
    int high = setting->workers, low = 1, i, rc = 0;
    while (low < high && weir_tune_ceiling(tune, low) < (1 - WEIR_CLOSE) * rate)
        low++;
    if (low > 1)
        weir_tune_tell(tune, "fewer than %d workers are not tried: they would give at most %.0f images/s", low,
                       weir_tune_ceiling(tune, low - 1));
    bool least = tune->one_rate > 0; /* start at the low end, because without contention the ceiling is about right */
    while (low < high && rc == 0) {
        struct weir_tune_setting fewer = *setting;
        fewer.workers = least ? low : (low + high) / 2;
        least = false;
        rc = weir_tune_try(tune, &fewer, "fewer workers", &i);
        if (rc == 0 && weir_tune_keeps_up(tune, i))
            high = fewer.workers;
        else
            low = fewer.workers + 1;
    }
    setting->workers = high;
    return rc;
}

static int try_less_prefetch(struct weir_tune *tune, struct weir_tune_setting *setting)
{
    int i, rc = 0;
    while (setting->prefetch > 1 && rc == 0) {
        struct weir_tune_setting less = *setting;
        less.prefetch = less.prefetch / 2;
        rc = weir_tune_try(tune, &less, "less memory", &i);
        if (rc < 0 || !weir_tune_keeps_up(tune, i))
            break;
        *setting = less;
    }
    return rc;
}

static int try_simplest(struct weir_tune *tune, struct weir_tune_setting *setting)
{
    struct weir_tune_setting simple = *setting;
    int i, rc;
    simple.engine = 0;
    simple.depth = 0;
    rc = weir_tune_try(tune, &simple, "the simplest engine", &i);
    if (rc == 0 && weir_tune_keeps_up(tune, i))
        *setting = simple;
    return rc;
}

/* ---- the final rounds ---- */

/* Marks the fastest candidate and the cheapest of the candidates that are not much slower. */
static void mark_finalists(struct weir_tune *tune)
{
    int fastest = weir_tune_fastest(tune);
    double least = (FINALIST - weir_tune_spread(tune)) * weir_tune_rate(tune, fastest);
    for (int i = 0; i < tune->n; i++)
        tune->candidates[i].finalist = i == fastest;
    for (int marked = 1; marked < FINALISTS; marked++) {
        int next = -1;
        for (int i = 0; i < tune->n; i++) {
            const struct weir_tune_candidate *c = &tune->candidates[i];
            bool good = weir_tune_rate(tune, i) >= least;
            if (good && !c->finalist &&
                (next < 0 || weir_tune_compare(&c->setting, &tune->candidates[next].setting) < 0))
                next = i;
        }
        if (next < 0)
            return;
        tune->candidates[next].finalist = true;
    }
}

static void tell_choice(struct weir_tune *tune, int finalists)
{
    char chosen[160], fastest[160], begin[64];
    weir_tune_describe(&tune->space, &tune->candidates[tune->chosen].setting, chosen, sizeof chosen);
    weir_tune_describe(&tune->space, &tune->candidates[tune->fastest].setting, fastest, sizeof fastest);
    snprintf(begin, sizeof begin, "%d finalist%s, %d rounds", finalists, finalists == 1 ? "" : "s", tune->rounds);
    if (weir_tune_is_noisy(tune) && tune->ratio.n > 0)
        weir_tune_tell(tune, "%s: %s has %.3f of the rate of %s, but identical trials differ by %.0f %%", begin, chosen,
                       tune->ratio.median, fastest, 100 * tune->noise);
    else if (weir_tune_is_noisy(tune))
        weir_tune_tell(tune, "%s: %s is the fastest, but identical trials differ by %.0f %%", begin, chosen,
                       100 * tune->noise);
    else if (tune->ratio.n > 0)
        weir_tune_tell(tune, "%s: %s is the cheapest within 3 %% of the fastest (%.3f of the rate of %s)", begin,
                       chosen, tune->ratio.median, fastest);
    else
        weir_tune_tell(tune, "%s: %s is the fastest, and nothing cheaper is within 3 %%", begin, chosen);
}

static int race(struct weir_tune *tune)
{
    int n = 0;
    mark_finalists(tune);
    for (int i = 0; i < tune->n; i++)
        n += tune->candidates[i].finalist;
    int rc = weir_tune_race(tune);
    if (tune->chosen >= 0)
        tell_choice(tune, n);
    return rc;
}

/* Tries a decode cache. The number of workers stays the same, because the cache helps only after the first epoch, which
 * the workers still decode. */
static int try_cache(struct weir_tune *tune)
{
    const struct weir_tune_figures *look = &tune->look;
    struct weir_tune_setting setting = tune->candidates[tune->chosen].setting;
    double rate = weir_tune_rate(tune, tune->chosen);
    double seconds = look->epoch_images > 0 && rate > 0 ? look->epoch_images / rate : INFINITY;
    int i, rc;
    setting.cache_bytes = fmin(look->frames_bytes, tune->space.cache_max);
    if (setting.cache_bytes <= 0 || setting.cache_bytes < 0.1 * look->frames_bytes || weir_tune_at_limit(tune))
        return 0;
    if (seconds > EPOCHS_S * look->trial.measured.seconds) {
        weir_tune_tell(tune, "a decode cache of %s is not tried: the epoch that fills it takes %.0f s",
                       weir_size(setting.cache_bytes).text, seconds);
        return 0;
    }
    rc = weir_tune_try(tune, &setting, "decoded frames stay in memory", &i);
    if (rc < 0 || i < 0 || weir_tune_rate(tune, i) < WEIR_TUNE_WORTH * rate)
        return rc;
    for (int c = 0; c < tune->n; c++)
        tune->candidates[c].finalist = c == i || c == tune->chosen;
    tune->rounds = 0;
    tune->candidates[i].measured.trials[0].round = 0; /* this trial had no rivals */
    for (int c = 0; c < tune->n; c++)                 /* numbering restarts */
        for (int t = 0; t < tune->candidates[c].measured.n_trials; t++)
            tune->candidates[c].measured.trials[t].round *= -1;
    rc = weir_tune_race(tune);
    weir_tune_tell(tune, tune->chosen == i ? "the decode cache is used" : "the decode cache is not worth its memory");
    return rc;
}

static int search(struct weir_tune *tune)
{
    int rc = look(tune);
    if (rc < 0 || weir_tune_fastest(tune) < 0)
        return rc;
    tune->base = weir_tune_fastest(tune);
    tell_bounds(tune);
    rc = weir_tune_trial(tune, tune->base); /* repeat it to measure the spread between trials of the same setting */
    for (int more = 0; rc == 0 && tune->disturbed && more < BASE_TURNS; more++)
        rc = weir_tune_trial(tune, tune->base);
    static int (*const raise[])(struct weir_tune *) = {try_decoders,     try_engines, try_more_prefetch,
                                                       try_more_workers, try_one,     try_half};
    for (size_t i = 0; i < sizeof raise / sizeof raise[0] && rc == 0; i++)
        rc = raise[i](tune);
    struct weir_tune_setting setting = weir_tune_base(tune);
    static int (*const cheapen[])(struct weir_tune *, struct weir_tune_setting *) = {try_fewer_workers,
                                                                                     try_less_prefetch, try_simplest};
    for (size_t i = 0; i < sizeof cheapen / sizeof cheapen[0] && rc == 0; i++)
        rc = cheapen[i](tune, &setting);
    if (rc == 0)
        rc = race(tune);
    return rc < 0 || tune->chosen < 0 ? rc : try_cache(tune);
}

int weir_tune_run(struct weir_tune *tune, struct weir_err *err)
{
    tune->chosen = tune->fastest = -1;
    tune->n = tune->trials = tune->rounds = 0;
    int rc = search(tune);
    tune->end = rc == -EINTR ? WEIR_TUNE_INTERRUPTED : rc == -ETIME ? WEIR_TUNE_TIME : WEIR_TUNE_DONE;
    if (tune->chosen < 0) /* the search ended before the race */
        tune->chosen = tune->fastest = weir_tune_fastest(tune);
    if (tune->chosen >= 0)
        return rc;
    tune->end = rc < 0 ? tune->end : WEIR_TUNE_FAILED;
    if (rc < 0)
        return weir_err_set(err, rc, "the search ended before anything was measured");
    const char *why = tune->n > 0 ? tune->candidates[tune->n - 1].measured.why : "";
    return weir_err_set(err, -ENODATA, "nothing could be measured: %s", *why ? why : "no setting is within the limits");
}

void weir_tune_free(struct weir_tune *tune)
{
    for (int i = 0; i < tune->n; i++)
        weir_candidate_free(&tune->candidates[i].measured);
    tune->n = 0;
}
