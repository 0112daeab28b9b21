/* candidate.h: a configuration under test: a command line of `weir run`, its trials, and their figures. */
#ifndef WEIR_ANALYZE_TRIALS_CANDIDATE_H
#define WEIR_ANALYZE_TRIALS_CANDIDATE_H

#include "analyze/causes/thresholds.h"
#include "analyze/trials/rounds.h"
#include "analyze/trials/trial.h"

/* Values of the options that a grid varies, as command-line arguments or "auto". */
struct weir_candidate_settings {
    char num_workers[12], prefetch[12], batch_size[12], io[16], decoder[32], device[16];
};

struct weir_candidate {
    int format;             /* index in the grid's formats */
    bool cold;              /* files are removed from the page cache before every trial */
    bool limit;             /* reads from memory; not a result, but an upper bound for other candidates */
    int limit_candidate;    /* index in the grid of its upper bound; -1 = none */
    bool default_candidate; /* has the first value of every option that the grid varies */
    struct weir_candidate_settings settings;
    char **argv;               /* owned; ends with NULL; argv[0] is "weir" */
    struct weir_trial *trials; /* owned; in the order of the rounds */
    int n_trials;
    char why[1024]; /* reason why a trial failed, after which no more follow; otherwise empty */
};

/* Runs argv as the candidate's trial in a round. command: everything else about the child. Appends the trial, or sets
 * why if it failed. Returns 0, -EINTR if interrupted, or -ENOMEM. */
int weir_candidate_trial(struct weir_candidate *candidate, int round, const struct weir_child_config *command);
/* Appends a copy of the trial. Returns 0 or -ENOMEM. */
int weir_candidate_add(struct weir_candidate *candidate, const struct weir_trial *trial);
void weir_candidate_free(struct weir_candidate *candidate);

/* Returns a figure of a trial, or a negative number if it is unknown. */
typedef double weir_trial_figure(const struct weir_trial *trial);
weir_trial_figure weir_trial_samples_per_s, weir_trial_images_per_s, weir_trial_cpu_s_per_1000_images,
    weir_trial_bytes_per_image, weir_trial_wait_p99_s, weir_trial_peak_bytes, weir_trial_data_wait, weir_trial_cached,
    weir_trial_others_cores;

/* Computes the interval of a figure over all trials in which it is known. */
void weir_candidate_interval(const struct weir_candidate *candidate, weir_trial_figure *figure,
                             struct weir_interval *interval);
/* Returns the median of a figure, or -1 if it is unknown. */
double weir_candidate_median(const struct weir_candidate *candidate, weir_trial_figure *figure);
/* Computes the interval of the ratio of images/s to the mean of n other candidates. Uses only rounds in which all of
 * them have a trial, because a temporary slowdown of the machine then affects all. */
void weir_candidate_ratio(const struct weir_candidate *candidate, const struct weir_candidate *others, int n,
                          struct weir_interval *ratio);

/* How two candidates compare, judging by the interval of their ratio. */
enum weir_relation {
    WEIR_SLOWER,
    WEIR_SAME,   /* the interval is within 3 % of 1; or it contains 1, its median is within 3 % and its ends within 10 %
                  */
    WEIR_UNSURE, /* the interval contains 1, but is too wide or its median too far from 1 for WEIR_SAME */
    WEIR_FASTER,
    WEIR_UNKNOWN, /* there is no common round */
};
enum weir_relation weir_relation_of(const struct weir_interval *ratio);
/* Returns whether the relation is SAME or UNSURE, which tables call a tie. */
bool weir_relation_is_tie(enum weir_relation relation);
/* Returns the number of candidates without a failure that have fewer trials than trials_min, or whose interval of
 * images/s has not converged. */
int weir_candidates_not_converged(const struct weir_candidate *candidates, int n, int trials_min);

/* Returns the trial whose images/s are nearest to the median, or NULL if there are no trials. Tables show its stages.
 */
const struct weir_trial *weir_candidate_typical(const struct weir_candidate *candidate);

#endif
