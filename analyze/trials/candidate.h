/* candidate.h: a cell of a grid: one command line of `weir run`, the turns that were measured with it, and what they
 * say. */
#ifndef WEIR_ANALYZE_TRIALS_CANDIDATE_H
#define WEIR_ANALYZE_TRIALS_CANDIDATE_H

#include "analyze/trials/interval.h"
#include "analyze/trials/trial.h"

#include <stdbool.h>
#include <stddef.h>

/* The values of the grid's options in a cell, as they are typed; "auto" where the program chooses. */
struct weir_candidate_settings {
    char num_workers[12], prefetch[12], batch_size[12], io[16], decoder[32], device[16];
};

struct weir_candidate {
    int format;             /* of the grid */
    bool cold;              /* every turn begins without the files in the page cache */
    bool limit;             /* bytes come from memory: what other cells are compared with, and none of the results */
    int limit_candidate;    /* number of that cell in the grid; -1 = there is none */
    bool default_candidate; /* of its format and cache: the first of the grid's settings */
    struct weir_candidate_settings settings;
    char **argv;               /* owned; ends with NULL; argv[0] is "weir" */
    struct weir_trial *trials; /* owned; in the order of rounds */
    int n_trials;
    char why[1024]; /* not empty: a turn failed, and there are no more */
};

/* Copies the turn. 0 or -ENOMEM. */
int weir_candidate_add(struct weir_candidate *candidate, const struct weir_trial *trial);
void weir_candidate_free(struct weir_candidate *candidate);

/* A figure of a turn. */
typedef double weir_trial_figure(const struct weir_trial *trial);
weir_trial_figure weir_trial_samples_per_s, weir_trial_images_per_s, weir_trial_cpu_s_per_1000_images,
    weir_trial_bytes_per_image, weir_trial_wait_p99_s, weir_trial_peak_bytes, weir_trial_data_wait, weir_trial_cached,
    weir_trial_others_cores;

/* Of a figure over all turns; turns in which it is not known (negative) are left out. */
void weir_candidate_interval(const struct weir_candidate *candidate, weir_trial_figure *figure,
                             struct weir_interval *interval);
/* The median; -1 when it is not known. */
double weir_candidate_median(const struct weir_candidate *candidate, weir_trial_figure *figure);
/* images/s of cell over those of other, round by round: only rounds in which both had a turn count, so that what slows
 * the machine down for a while slows down both. */
void weir_candidate_ratio(const struct weir_candidate *candidate, const struct weir_candidate *other,
                          struct weir_interval *ratio);

/* What two cells are to each other, by the interval of their ratio. */
enum weir_relation {
    WEIR_SLOWER,
    WEIR_SAME,   /* all of the interval is within 3 % of 1; or its median is, 1 is in it, and it ends within 10 % */
    WEIR_UNSURE, /* 1 is in the interval, which is wider, or whose median is further away: noise */
    WEIR_FASTER,
    WEIR_UNKNOWN, /* no round has both */
};
enum weir_relation weir_relation_of(const struct weir_interval *ratio);
/* SAME or UNSURE: what tables call a tie. */
bool weir_relation_is_tie(enum weir_relation relation);
/* What a tie is, and an interval that is narrow enough. */
#define WEIR_CLOSE 0.03

/* The turn whose images/s are nearest to the median; NULL without turns. Its stages are those that are shown. */
const struct weir_trial *weir_candidate_typical(const struct weir_candidate *candidate);

#endif
