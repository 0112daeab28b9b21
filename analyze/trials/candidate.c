#include "analyze/trials/candidate.h"
#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double WIDE = 0.10; /* max distance of an interval's ends from 1 that proves equality */

int weir_candidate_trial(struct weir_candidate *candidate, int round, const struct weir_child_config *command)
{
    struct weir_child_config own = *command;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_trial trial;
    own.argv = candidate->argv;
    int rc = weir_trial_run(&trial, NULL, &own, &err);
    trial.round = round;
    if (rc == 0)
        return weir_candidate_add(candidate, &trial);
    if (rc == -EINTR)
        return rc;
    snprintf(candidate->why, sizeof candidate->why, "%s", err.text);
    return 0;
}

int weir_candidate_add(struct weir_candidate *candidate, const struct weir_trial *trial)
{
    if (!weir_grow(&candidate->trials, (size_t)candidate->n_trials, sizeof *candidate->trials))
        return -ENOMEM;
    candidate->trials[candidate->n_trials++] = *trial;
    return 0;
}

void weir_candidate_free(struct weir_candidate *candidate)
{
    for (char **arg = candidate->argv; arg && *arg; arg++)
        free(*arg);
    free(candidate->argv);
    free(candidate->trials);
    memset(candidate, 0, sizeof *candidate);
}

/* ---- figures ---- */

double weir_trial_samples_per_s(const struct weir_trial *trial)
{
    return trial->measured.samples_per_s;
}

double weir_trial_images_per_s(const struct weir_trial *trial)
{
    return trial->measured.images_per_s;
}

double weir_trial_cpu_s_per_1000_images(const struct weir_trial *trial)
{
    return trial->measured.images > 0 ? 1000 * trial->cpu_s / (double)trial->measured.images : -1;
}

double weir_trial_bytes_per_image(const struct weir_trial *trial)
{
    return trial->measured.images > 0 ? trial->read_bytes / (double)trial->measured.images : -1;
}

double weir_trial_wait_p99_s(const struct weir_trial *trial)
{
    return trial->wait_p99_s;
}

double weir_trial_peak_bytes(const struct weir_trial *trial)
{
    return (double)trial->measured.peak_rss_bytes;
}

double weir_trial_data_wait(const struct weir_trial *trial)
{
    return trial->measured.data_wait_fraction;
}

double weir_trial_cached(const struct weir_trial *trial)
{
    return trial->measured.cached_fraction;
}

double weir_trial_others_cores(const struct weir_trial *trial)
{
    return trial->others_cores;
}

void weir_candidate_interval(const struct weir_candidate *candidate, weir_trial_figure *figure,
                             struct weir_interval *interval)
{
    double values[WEIR_INTERVAL_MAX];
    int n = 0;
    for (int i = 0; i < candidate->n_trials && n < WEIR_INTERVAL_MAX; i++) {
        double value = figure(&candidate->trials[i]);
        if (value >= 0)
            values[n++] = value;
    }
    weir_interval_of(values, n, interval);
}

double weir_candidate_median(const struct weir_candidate *candidate, weir_trial_figure *figure)
{
    struct weir_interval interval;
    weir_candidate_interval(candidate, figure, &interval);
    return interval.n > 0 ? interval.median : -1;
}

/* Returns the mean images/s of the candidates in a round; 0 = not all of them have a trial in it. */
static double rate_in_round(const struct weir_candidate *candidates, int n, int round)
{
    double sum = 0;
    for (int c = 0; c < n; c++) {
        int i = 0;
        while (i < candidates[c].n_trials && candidates[c].trials[i].round != round)
            i++;
        if (i == candidates[c].n_trials || round < 1)
            return 0;
        sum += candidates[c].trials[i].measured.images_per_s;
    }
    return sum / n;
}

void weir_candidate_ratio(const struct weir_candidate *candidate, const struct weir_candidate *others, int n,
                          struct weir_interval *ratio)
{
    double values[WEIR_INTERVAL_MAX];
    int count = 0;
    for (int i = 0; i < candidate->n_trials && count < WEIR_INTERVAL_MAX; i++) {
        double rate = rate_in_round(others, n, candidate->trials[i].round);
        if (rate > 0)
            values[count++] = candidate->trials[i].measured.images_per_s / rate;
    }
    weir_interval_of(values, count, ratio);
}

enum weir_relation weir_relation_of(const struct weir_interval *ratio)
{
    if (ratio->n == 0)
        return WEIR_UNKNOWN;
    bool holds_one = ratio->low <= 1 && ratio->high >= 1;
    double furthest = fmax(ratio->high - 1, 1 - ratio->low);
    if (furthest <= WEIR_CLOSE || (holds_one && fabs(ratio->median - 1) <= WEIR_CLOSE && furthest <= WIDE))
        return WEIR_SAME;
    if (holds_one)
        return WEIR_UNSURE;
    return ratio->median > 1 ? WEIR_FASTER : WEIR_SLOWER;
}

bool weir_relation_is_tie(enum weir_relation relation)
{
    return relation == WEIR_SAME || relation == WEIR_UNSURE;
}

int weir_candidates_not_converged(const struct weir_candidate *candidates, int n, int trials_min)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        struct weir_interval rate;
        weir_candidate_interval(&candidates[i], weir_trial_images_per_s, &rate);
        count +=
            !*candidates[i].why && (candidates[i].n_trials < trials_min || !weir_interval_converged(&rate, WEIR_CLOSE));
    }
    return count;
}

const struct weir_trial *weir_candidate_typical(const struct weir_candidate *candidate)
{
    const struct weir_trial *best = NULL;
    double median = weir_candidate_median(candidate, weir_trial_images_per_s);
    for (int i = 0; i < candidate->n_trials; i++)
        if (!best ||
            fabs(candidate->trials[i].measured.images_per_s - median) < fabs(best->measured.images_per_s - median))
            best = &candidate->trials[i];
    return best;
}
