/* The experiment: measures the base run and probes, then runs trials in rounds, first of the ladder and then of changes
 * alongside the base run. */
#include "analyze/trials/candidate.h"
#include "analyze/trials/whatif_priv.h"
#include "base/text.h"
#include "weir/base.h"
#include "weir/decoder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* GROUP: number of changes measured alongside a pair of identical base candidates. GROUP_SLOW is used if processes
 * start slowly. */
enum { GROUP = 3, GROUP_SLOW = 6, CANDIDATES = GROUP_SLOW + 2, TRIAL_PATIENCE_S = 120, TRIALS_LEAST = 3 };

static const double LEAST_TRIAL_S = 0.3; /* min duration of the measurement in a trial if processes start slowly */

/* ---- trials ---- */

struct pace {
    int rounds;
    double seconds; /* duration of the measurement in a trial */
    uint64_t end_ns;
};

struct trials {
    struct whatif *w;
    struct weir_candidate *candidates;
    const struct whatif_plan *const *plans;
    double patience_s; /* time limit of a trial */
};

static int trial(void *user, int number, int round, int position)
{
    const struct trials *trials = user;
    const struct weir_whatif_config *config = trials->w->config;
    const struct whatif_plan *plan = trials->plans[number];
    const struct weir_child_config command = {
        .program = config->program, .seconds = trials->patience_s, .interrupted = config->interrupted};
    double cached;
    (void)position;
    if (!plan->run.loader.cold && plan->data == config->data)
        weir_copy_warm(config->files, &cached, NULL); /* files that cannot be read stay cold */
    whatif_set_cpus(plan->cpus);
    int rc = weir_candidate_trial(&trials->candidates[number], round, &command);
    whatif_set_cpus(0);
    if (rc == 0)
        whatif_count_trial(trials->w);
    return rc;
}

static bool takes_part(const void *user, int number)
{
    return !*((const struct trials *)user)->candidates[number].why;
}

static int make_candidate(struct weir_candidate *candidate, const struct whatif_plan *plan, double seconds)
{
    struct weir_words words = {0};
    weir_run_words(&words, &plan->run, plan->data);
    weir_words_add_measured(&words, seconds);
    *candidate = (struct weir_candidate){.limit_candidate = -1, .argv = words.argv};
    return words.failed ? -ENOMEM : 0;
}

static int run_rounds(struct whatif *w, struct weir_candidate *candidates, const struct whatif_plan *const *plans,
                      int n, const struct pace *how)
{
    struct trials trials = {w, candidates, plans, TRIAL_PATIENCE_S + 10 * how->seconds};
    const struct weir_rounds_config config = {.n = n,
                                              .rounds_max = how->rounds,
                                              .end_ns = how->end_ns,
                                              .interrupted = w->config->interrupted,
                                              .trial = trial,
                                              .takes_part = takes_part,
                                              .user = &trials};
    for (int i = 0; i < n; i++)
        if (make_candidate(&candidates[i], plans[i], how->seconds) < 0)
            return -ENOMEM;
    int rc = weir_rounds_run(&config);
    return *w->config->interrupted ? -EINTR : rc == -ETIME ? 0 : rc;
}

/* ---- the ladder ---- */

struct ladder {
    const char *names[WEIR_WHATIF_RUNGS];
    struct whatif_plan plans[WEIR_WHATIF_RUNGS];
    char why[WEIR_WHATIF_RUNGS][WEIR_WHATIF_WHY]; /* reason for omitting the rung, or empty */
    int n;
};

static struct whatif_plan *add_rung(struct ladder *ladder, const struct whatif *w, const char *name, char **why)
{
    ladder->names[ladder->n] = name;
    ladder->plans[ladder->n] = w->base;
    *why = ladder->why[ladder->n];
    return &ladder->plans[ladder->n++];
}

static void rung_no_io(struct ladder *ladder, const struct whatif *w)
{
    char *why;
    struct whatif_plan *plan = add_rung(ladder, w, "no I/O", &why);
    double bytes = (double)w->config->source.bytes, memory = (double)w->now.setup.memory_free_bytes;
    plan->run.loader.io = "null";
    plan->run.loader.io_depth = 0;
    plan->run.loader.cold = plan->run.loader.direct = false;
    if (bytes > 4e9 || bytes > memory / 4)
        snprintf(why, WEIR_WHATIF_WHY, "%s of files are too large to keep in memory", weir_size(bytes).text);
}

/* Produces the batches that are normally uploaded: interleaved bytes in the host's memory. */
static void rung_no_copy(struct ladder *ladder, const struct whatif *w)
{
    char *why;
    struct whatif_plan *plan = add_rung(ladder, w, "no copy to the GPU", &why);
    plan->run.loader.device = "cpu";
    plan->run.loader.format.dtype = WEIR_DTYPE_U8;
    plan->run.loader.format.layout = WEIR_LAYOUT_NHWC;
    plan->run.mean = plan->run.std = NULL;
    plan->run.sync_steps = false;
    if (w->now.setup.device < 0)
        snprintf(why, WEIR_WHATIF_WHY, "batches stay on the CPU");
    else if (weir_decoder_on_gpu(w->now.setup.decoder))
        snprintf(why, WEIR_WHATIF_WHY, "the GPU decodes, so images are never in the host's memory");
}

static void rung_cached(struct ladder *ladder, const struct whatif *w)
{
    char *why;
    double bytes;
    struct whatif_plan *plan = add_rung(ladder, w, "everything cached", &why);
    whatif_cache_plan(w, 1, plan, &bytes, why, WEIR_WHATIF_WHY);
}

static void rungs(struct ladder *ladder, const struct whatif *w)
{
    char *why;
    add_rung(ladder, w, "as it is", &why);
    struct whatif_plan *plan = add_rung(ladder, w, "page cache warm", &why);
    plan->run.loader.cold = false;
    if (!w->config->run.loader.cold)
        snprintf(why, WEIR_WHATIF_WHY, "the first row already has a warm page cache");
    rung_no_io(ladder, w);
    plan = add_rung(ladder, w, "no decoding", &why);
    plan->run.loader.decoder = "null";
    rung_no_copy(ladder, w);
    rung_cached(ladder, w);
}

static void keep_rung(struct weir_whatif_rung *rung, const struct weir_candidate *candidate,
                      const struct weir_candidate *first)
{
    struct weir_interval ratio;
    weir_candidate_ratio(candidate, first, 1, &ratio);
    rung->trials = candidate->n_trials;
    rung->images_per_s = weir_candidate_median(candidate, weir_trial_images_per_s);
    rung->data_wait = weir_candidate_median(candidate, weir_trial_data_wait);
    rung->ratio = ratio.median;
    rung->ratio_low = ratio.low;
    rung->ratio_high = ratio.high;
    if (candidate->n_trials == 0 || ratio.n == 0)
        snprintf(rung->why, sizeof rung->why, "%s",
                 *candidate->why ? whatif_error_of(candidate->why) : "no time was left");
}

static int ladder(struct whatif *w)
{
    static const double MOST_S = 60, OF_TIME = 0.25, TRIAL_S = 0.5;
    struct ladder *ladder = calloc(1, sizeof *ladder);
    struct weir_candidate candidates[WEIR_WHATIF_RUNGS] = {{.format = 0}};
    const struct whatif_plan *plans[WEIR_WHATIF_RUNGS];
    struct weir_whatif_rung *rung[WEIR_WHATIF_RUNGS];
    int n = 0;
    if (!ladder)
        return -ENOMEM;
    rungs(ladder, w);
    for (int i = 0; i < ladder->n; i++) {
        struct weir_whatif_rung *added = weir_whatif_add_rung(w->found, ladder->names[i]);
        snprintf(added->why, sizeof added->why, "%s", ladder->why[i]);
        if (*added->why)
            continue;
        rung[n] = added;
        plans[n++] = &ladder->plans[i];
    }
    double left_s = fmin(MOST_S, OF_TIME * whatif_seconds_left(w)), trial_s = left_s / n / (w->slow_start ? 3 : 5);
    struct pace trials = {.rounds = w->slow_start ? 3 : 5};
    trials.seconds = fmin(fmax((trial_s - w->now.start_s) / 1.2, 0.05), TRIAL_S);
    trials.end_ns = weir_clock_monotonic_ns() + (uint64_t)(fmax(left_s, 1) * 1e9);
    whatif_progress(w, "measuring the ladder");
    int rc = run_rounds(w, candidates, plans, n, &trials);
    for (int i = 0; i < n; i++)
        keep_rung(rung[i], &candidates[i], &candidates[0]);
    for (int i = 0; i < n; i++)
        weir_candidate_free(&candidates[i]);
    free(ladder);
    return rc;
}

/* ---- the check ---- */

/* Returns the cores that other processes used in trials of these candidates: the highest of the medians. */
static double others_of(const struct weir_candidate *candidate, const struct weir_candidate *pair)
{
    return fmax(weir_candidate_median(candidate, weir_trial_others_cores),
                fmax(weir_candidate_median(&pair[0], weir_trial_others_cores),
                     weir_candidate_median(&pair[1], weir_trial_others_cores)));
}

/* pair: the identical base candidates. cores: number of usable cores. */
static void keep_change(struct weir_whatif_change *change, const struct weir_candidate *candidate,
                        const struct weir_candidate *pair, int cores)
{
    struct weir_interval ratio, noise;
    weir_candidate_ratio(candidate, pair, 2, &ratio);
    weir_candidate_ratio(&pair[1], &pair[0], 1, &noise);
    if (ratio.n < TRIALS_LEAST) { /* too few rounds for a median */
        snprintf(change->why, sizeof change->why, "not checked: %s",
                 *candidate->why ? whatif_error_of(candidate->why) : "time ran out");
        return;
    }
    change->trials = ratio.n;
    change->measured = ratio.median;
    change->measured_low = ratio.low;
    change->measured_high = ratio.high;
    change->noise = noise.n > 0 ? noise.median - 1 : 0;
    change->others = fmax(others_of(candidate, pair), 0) / fmax(cores, 1);
}

/* Measures a group of changes alongside two copies of the base run. */
static int check_group(struct whatif *w, struct weir_whatif_change **changes, int n, double seconds)
{
    static const double TRIAL_S = 0.7;
    struct weir_candidate candidates[CANDIDATES] = {{.format = 0}};
    const struct whatif_plan *plans[CANDIDATES] = {&w->base, &w->base};
    for (int i = 0; i < n; i++)
        plans[2 + i] = &w->plans[changes[i] - w->found->changes];
    struct pace trials = {.rounds = 5};
    double trial_s = seconds / trials.rounds / (n + 2);
    if (w->slow_start || trial_s < w->now.start_s + 0.3) {
        trials.rounds = 3;
        trial_s = seconds / trials.rounds / (n + 2);
    }
    trials.seconds = fmin(fmax((trial_s - w->now.start_s) / 1.2, w->slow_start ? LEAST_TRIAL_S : 0.05), TRIAL_S);
    trials.end_ns = w->end_ns;
    int rc = run_rounds(w, candidates, plans, n + 2, &trials);
    for (int i = 0; i < n && rc != -ENOMEM; i++)
        keep_change(changes[i], &candidates[2 + i], candidates, w->found->cores);
    for (int i = 0; i < n + 2; i++)
        weir_candidate_free(&candidates[i]);
    return rc;
}

/* Returns how many of n changes can be measured in three rounds in the remaining time. */
static int with_time(const struct whatif *w, int n)
{
    double trials = whatif_seconds_left(w) / (w->now.start_s + LEAST_TRIAL_S) / TRIALS_LEAST;
    int fitting = (int)fmin(trials, 1e6) - 2 * (n / GROUP_SLOW + 1);
    return !w->slow_start || fitting >= n ? n : fitting > 0 ? fitting : 0;
}

static int check(struct whatif *w)
{
    static const double PAIR_S = 10;
    struct weir_whatif_change *changes[WEIR_WHATIF_CHANGES];
    int all = 0, rc = 0;
    for (int i = 0; i < w->found->n_changes; i++)
        if (w->plans[i].can_check && w->found->changes[i].predicted > 0)
            changes[all++] = &w->found->changes[i];
    int n = with_time(w, all);
    for (int i = n; i < all; i++)
        snprintf(changes[i]->why, sizeof changes[i]->why,
                 "not checked: processes take %.1f s to start, so --max-minutes %.3g is not enough", w->now.start_s,
                 w->config->max_minutes);
    w->found->checked = true;
    int group = w->slow_start ? GROUP_SLOW : GROUP;
    for (int i = 0; i < n && rc == 0; i += group) {
        int some = n - i < group ? n - i : group;
        char text[64];
        snprintf(text, sizeof text, "checking changes %d to %d of %d", i + 1, i + some, n);
        whatif_progress(w, text);
        double pair_s = fmax(PAIR_S, 4 * w->now.start_s);
        rc = check_group(w, changes + i, some, some * fmin(pair_s, whatif_seconds_left(w) / (n - i)));
    }
    return rc;
}

/* ---- the experiment ---- */

static int experiment(struct whatif *w, struct weir_err *err)
{
    int rc = whatif_measure_now(w, err);
    if (rc == 0)
        rc = ladder(w);
    if (rc == 0)
        rc = whatif_predict(w);
    if (rc == 0 && w->config->check)
        rc = check(w);
    if (rc == -ENOMEM)
        weir_err_set(err, rc, "out of memory");
    w->found->interrupted = rc == -EINTR;
    w->found->seconds = whatif_seconds(w);
    return rc == -EINTR && w->now.known ? 0 : rc;
}

int weir_whatif_run(struct weir_whatif *found, const struct weir_whatif_config *config, struct weir_err *err)
{
    struct whatif *w = calloc(1, sizeof *w);
    memset(found, 0, sizeof *found);
    if (!w)
        return weir_err_set(err, -ENOMEM, "out of memory");
    w->config = config;
    w->found = found;
    w->begin_ns = weir_clock_monotonic_ns();
    w->end_ns = w->begin_ns + (uint64_t)(config->max_minutes * 60e9);
    w->base = (struct whatif_plan){.run = config->run, .data = config->data};
    int rc = experiment(w, err);
    if (rc == 0)
        whatif_judge(w);
    weir_log_record_clear(&w->first);
    whatif_remove_copies(w);
    free(w);
    return rc;
}
