/* candidate.h: a configuration under test: one command line of `weir run`, its trials, and figures of these. */
#ifndef WEIR_ANALYZE_TRIALS_CANDIDATE_H
#define WEIR_ANALYZE_TRIALS_CANDIDATE_H

#include "analyze/trials/interval.h"
#include "analyze/trials/trial.h"

#include <stdbool.h>
#include <stddef.h>

/* Values of the grid's options, as typed or "auto". */
struct weir_candidate_settings {
    char num_workers[12], prefetch[12], batch_size[12], io[16], decoder[32], device[16];
};

struct weir_candidate {
    int format;             /* index in the grid */
    bool cold;              /* every trial begins without the files in the page cache */
    bool limit;             /* bytes come from memory: an upper bound for other candidates, not a result */
    int limit_candidate;    /* index of that bound in the grid; -1 = none */
    bool default_candidate; /* the first of the grid's settings for its format and cache */
    struct weir_candidate_settings settings;
    char **argv;               /* owned; ends with NULL; argv[0] is "weir" */
    struct weir_trial *trials; /* owned; in the order of rounds */
    int n_trials;
    char why[1024]; /* not empty: a trial failed, and no more follow */
};

/* Appends a copy of the trial. 0 or -ENOMEM. */
int weir_candidate_add(struct weir_candidate *candidate, const struct weir_trial *trial);
void weir_candidate_free(struct weir_candidate *candidate);

/* A figure of a trial; negative: not known. */
typedef double weir_trial_figure(const struct weir_trial *trial);
weir_trial_figure weir_trial_samples_per_s, weir_trial_images_per_s, weir_trial_cpu_s_per_1000_images,
    weir_trial_bytes_per_image, weir_trial_wait_p99_s, weir_trial_peak_bytes, weir_trial_data_wait, weir_trial_cached,
    weir_trial_others_cores;

/* Computes the interval of a figure over all trials in which it is known. */
void weir_candidate_interval(const struct weir_candidate *candidate, weir_trial_figure *figure,
                             struct weir_interval *interval);
/* Returns the median; -1 when it is not known. */
double weir_candidate_median(const struct weir_candidate *candidate, weir_trial_figure *figure);
/* Computes the interval of the ratio of images/s, from rounds in which both have a trial, so that a temporary slowdown
 * of the machine affects both. */
void weir_candidate_ratio(const struct weir_candidate *candidate, const struct weir_candidate *other,
                          struct weir_interval *ratio);

/* Relation of two candidates, by the interval of their ratio. */
enum weir_relation {
    WEIR_SLOWER,
    WEIR_SAME, /* the interval is within 3 % of 1; or it contains 1, its median is within 3 %, and its ends within 10 %
                */
    WEIR_UNSURE, /* the interval contains 1 and is wider, or its median is further away: noise */
    WEIR_FASTER,
    WEIR_UNKNOWN, /* no common round */
};
enum weir_relation weir_relation_of(const struct weir_interval *ratio);
/* SAME or UNSURE, which tables call a tie. */
bool weir_relation_is_tie(enum weir_relation relation);
/* Relative difference that counts as a tie, and width of a converged interval. */
#define WEIR_CLOSE 0.03

/* The trial whose images/s are nearest to the median; NULL without trials. Tables show its stages. */
const struct weir_trial *weir_candidate_typical(const struct weir_candidate *candidate);

#endif
