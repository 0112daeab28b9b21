#include "analyze/tuning/tune_priv.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const double CPU_SLACK = 0.03;    /* allowed excess over --max-cpu for wake-ups of the consumer's thread, */
static const double CORE_SLACK = 0.1;    /* but at least this many cores */
static const double FAR = 0.85;          /* a ratio below this in undisturbed rounds is not noise */
static const double ERROR_LEAST = 0.025; /* min error of the ratio of two trials */
static const double NOISY = 0.10;        /* noise in which a difference of 3 % cannot be seen */
enum { NOISE_ROUNDS = 2 };               /* rounds of a candidate without rivals */

void weir_tune_tell(struct weir_tune *tune, const char *format, ...)
{
    char line[1024];
    va_list args;
    if (!tune->say)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    tune->say(tune->user, line);
}

/* Updates the rate that no setting of workers, prefetch and engine can exceed. Keeps the highest such bound, because
 * disturbances only lower bounds. */
static void note_limit(struct weir_tune *tune, const struct weir_demands *d)
{
    static const enum weir_resource fixed[] = {WEIR_RESOURCE_CONSUMER, WEIR_RESOURCE_LIBRARY, WEIR_RESOURCE_BUS};
    double least = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (d->bound[fixed[i]] > 0 && (least <= 0 || d->bound[fixed[i]] < least))
            least = d->bound[fixed[i]];
    tune->limit_rate = fmax(tune->limit_rate, fmax(least, least > 0 ? d->rate : 0));
}

bool weir_tune_is_disturbed(const struct weir_tune *tune, const struct weir_trial *trial)
{
    return trial->others_cores >= WEIR_VERDICT_OTHERS * tune->space.cores;
}

int weir_tune_trial(struct weir_tune *tune, int candidate)
{
    struct weir_tune_candidate *c = &tune->candidates[candidate];
    struct weir_err why = WEIR_ERR_NONE;
    struct weir_tune_figures figures = {.engine = WEIR_TUNE_AUTO, .decoder = WEIR_TUNE_AUTO};
    int rc = tune->measure(tune->user, &c->setting, &figures, &why);
    if (rc == -EINTR || rc == -ETIME || rc == -ENOMEM)
        return rc;
    tune->trials++;
    if (rc < 0) {
        snprintf(c->measured.why, sizeof c->measured.why, "%s", why.text);
        return 0;
    }
    double cores = figures.trial.measured.seconds > 0 ? figures.trial.cpu_s / figures.trial.measured.seconds : 0;
    if (tune->space.memory_max > 0 && (double)figures.trial.measured.peak_rss_bytes > tune->space.memory_max)
        snprintf(c->measured.why, sizeof c->measured.why, "it used %s, more than --max-memory",
                 weir_size((double)figures.trial.measured.peak_rss_bytes).text);
    else if (tune->space.cpu_max > 0 && cores > tune->space.cpu_max + fmax(CPU_SLACK * tune->space.cpu_max, CORE_SLACK))
        snprintf(c->measured.why, sizeof c->measured.why, "it used %.2f cores, more than --max-cpu", cores);
    figures.trial.round = tune->rounds;
    c->demands = figures.demands;
    if (!tune->look.demands.known && !*c->measured.why)
        tune->look = figures;
    tune->disturbed = tune->disturbed || weir_tune_is_disturbed(tune, &figures.trial);
    if (figures.demands.known && c->setting.cache_bytes <= 0)
        note_limit(tune, &figures.demands);
    return weir_candidate_add(&c->measured, &figures.trial);
}

/* Returns images/s of a trial in rounds, and -1 for others. */
static double in_rounds(const struct weir_trial *trial)
{
    return trial->round != 0 ? trial->measured.images_per_s : -1;
}

void weir_tune_interval(const struct weir_tune *tune, int candidate, struct weir_interval *rate)
{
    const struct weir_candidate *measured = &tune->candidates[candidate].measured;
    weir_candidate_interval(measured, in_rounds, rate);
    if (rate->n == 0)
        weir_candidate_interval(measured, weir_trial_images_per_s, rate);
}

double weir_tune_rate(const struct weir_tune *tune, int candidate)
{
    struct weir_interval rate;
    if (*tune->candidates[candidate].measured.why)
        return 0;
    weir_tune_interval(tune, candidate, &rate);
    return tune->disturbed && tune->rounds == 0 ? rate.most : rate.median;
}

int weir_tune_fastest(const struct weir_tune *tune)
{
    int fastest = -1;
    for (int i = 0; i < tune->n; i++)
        if (weir_tune_rate(tune, i) > (fastest < 0 ? 0 : weir_tune_rate(tune, fastest)))
            fastest = i;
    return fastest;
}

/* ---- rounds ---- */

static int more_rounds(const struct weir_tune *tune)
{
    return tune->disturbed ? WEIR_TUNE_ROUNDS_MORE : 0;
}

static int rounds_least(const struct weir_tune *tune)
{
    return WEIR_TUNE_ROUNDS_MIN + more_rounds(tune);
}

static bool takes_part(const void *user, int i)
{
    const struct weir_tune *tune = user;
    return tune->candidates[i].finalist && !*tune->candidates[i].measured.why;
}

/* Computes the ratio of two candidates. Trials before the rounds do not count, and those of the rounds before the
 * decode cache was tried, whose numbers are negative. */
static void compare(const struct weir_tune *tune, int candidate, int to, struct weir_interval *ratio)
{
    weir_candidate_ratio(&tune->candidates[candidate].measured, &tune->candidates[to].measured, 1, ratio);
}

/* Returns whether the candidate won more than half of its rounds with the other one. */
static bool is_ahead(const struct weir_tune *tune, int candidate, int of)
{
    struct weir_interval ratio;
    compare(tune, candidate, of, &ratio);
    return ratio.n > 0 ? ratio.median > 1 : weir_tune_rate(tune, candidate) > weir_tune_rate(tune, of);
}

/* Returns the fastest finalist, judging by ratios of trials in the same round. */
static int leader(const struct weir_tune *tune)
{
    int best = -1;
    for (int i = 0; i < tune->n; i++)
        if (takes_part(tune, i) && (best < 0 || is_ahead(tune, i, best)))
            best = i;
    return best;
}

enum standing { OUT, OPEN, WITHIN };

/* WITHIN: the ratio minus its error is at most 3 % below the leader. OUT: the ratio plus its error is further below.
 * The error has a minimum, because three trials can agree by chance. */
static enum standing standing_of(const struct weir_tune *tune, int candidate, int to)
{
    struct weir_interval ratio;
    if (candidate == to)
        return WITHIN;
    compare(tune, candidate, to, &ratio);
    if (ratio.n < rounds_least(tune))
        return ratio.n > tune->disturbed && ratio.most < FAR ? OUT : OPEN;
    double error = fmax(ratio.error, ERROR_LEAST / sqrt(ratio.n));
    if (ratio.median - error >= 1 - WEIR_CLOSE)
        return WITHIN;
    return ratio.median + error < 1 - WEIR_CLOSE ? OUT : OPEN;
}

static int cheapest(const struct weir_tune *tune, int to, enum standing least)
{
    int best = -1;
    for (int i = 0; i < tune->n; i++)
        if (takes_part(tune, i) && standing_of(tune, i, to) >= least &&
            (best < 0 || weir_tune_compare(&tune->candidates[i].setting, &tune->candidates[best].setting) < 0))
            best = i;
    return best;
}

/* Drops candidates that are clearly slower than the leader, or more expensive than a candidate known to be good enough.
 * Returns the number of remaining candidates, which include the leader. */
static int drop(struct weir_tune *tune, int to)
{
    int good = cheapest(tune, to, WITHIN), left = 0;
    for (int i = 0; i < tune->n; i++) {
        struct weir_tune_candidate *c = &tune->candidates[i];
        if (!takes_part(tune, i) || i == to || i == good) {
            left += takes_part(tune, i);
            continue;
        }
        bool dear =
            tune->rounds >= rounds_least(tune) && weir_tune_compare(&c->setting, &tune->candidates[good].setting) > 0;
        c->finalist = !dear && standing_of(tune, i, to) != OUT;
        left += c->finalist;
    }
    return left;
}

/* Returns (max - min) / median of the candidate's rates. */
static double noise_of(const struct weir_tune *tune, int candidate)
{
    struct weir_interval rate;
    weir_tune_interval(tune, candidate, &rate);
    return rate.n > 1 && rate.median > 0 ? (rate.most - rate.least) / rate.median : 0;
}

bool weir_tune_is_noisy(const struct weir_tune *tune)
{
    return tune->noise > NOISY;
}

static void choose(struct weir_tune *tune)
{
    int to = leader(tune);
    if (to < 0)
        return;
    tune->fastest = to;
    tune->chosen = cheapest(tune, to, WITHIN);
    compare(tune, tune->chosen, to, &tune->ratio);
    if (tune->chosen == to)
        tune->ratio.n = 0;
    tune->noise = fmax(noise_of(tune, to), noise_of(tune, tune->chosen));
}

static int trial(void *user, int candidate, int round, int position)
{
    struct weir_tune *tune = user;
    (void)position;
    tune->rounds = round;
    return weir_tune_trial(tune, candidate);
}

/* Drops finalists. Returns whether a single one has had enough rounds, or the cheapest one left is known to be good
 * enough. */
static bool is_decided(void *user, int round)
{
    struct weir_tune *tune = user;
    int left = leader(tune) < 0 ? 0 : drop(tune, leader(tune));
    if (left == 0 || round >= (left > 1 ? WEIR_TUNE_ROUNDS_MAX + more_rounds(tune) : NOISE_ROUNDS))
        return true;
    int to = leader(tune);
    return round >= rounds_least(tune) && cheapest(tune, to, OPEN) == cheapest(tune, to, WITHIN);
}

int weir_tune_race(struct weir_tune *tune)
{
    const struct weir_rounds_config config = {.n = tune->n,
                                              .rounds_max = WEIR_TUNE_ROUNDS_MAX + WEIR_TUNE_ROUNDS_MORE,
                                              .trial = trial,
                                              .takes_part = takes_part,
                                              .is_decided = is_decided,
                                              .user = tune};
    int rc = weir_rounds_run(&config);
    choose(tune);
    return rc;
}
