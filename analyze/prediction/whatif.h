/* whatif.h: what `weir whatif` found: the ladder, and changes with what was predicted and what was measured of each.
 * Plain data, so that a log's line gives the same tables again. Any thread. */
#ifndef WEIR_ANALYZE_PREDICTION_WHATIF_H
#define WEIR_ANALYZE_PREDICTION_WHATIF_H

#include "weir/base.h"

#include <stdbool.h>
#include <stdio.h>

enum { WEIR_WHATIF_RUNGS = 8, WEIR_WHATIF_CHANGES = 32, WEIR_WHATIF_TEXT = 128, WEIR_WHATIF_WHY = 512 };

/* Two identical runs that differ by more are too noisy to judge a prediction by. */
#define WEIR_WHATIF_NOISY 0.05

struct weir_whatif_rung {
    char name[WEIR_WHATIF_TEXT];
    char why[WEIR_WHATIF_WHY];    /* not empty: it was left out, and why */
    double images_per_s, ratio;   /* medians; ratio: of the run as it is, round by round */
    double ratio_low, ratio_high; /* the interval of its median */
    double data_wait;             /* 0..1; -1 = not known */
    int trials;
};

struct weir_whatif_change {
    char name[WEIR_WHATIF_TEXT];
    char flag[WEIR_WHATIF_TEXT];  /* to type; may be empty */
    char basis[WEIR_WHATIF_TEXT]; /* what the prediction is made of */
    double predicted;             /* images/s over those of the run as it is; 0 = no prediction */
    char limit[32];               /* the resource that is the limit then; empty = not known */
    char why[WEIR_WHATIF_WHY];    /* not empty: why it was not predicted, or not checked */
    int trials;                   /* of --check; 0 = it was not */
    double measured, measured_low, measured_high;
    double noise; /* of the two identical runs beside it: images/s of one over the other's, less 1 */
};

struct weir_whatif {
    char data[4096];
    bool cold, checked, interrupted;
    int workers, prefetch, batch_size, cores;
    double images_per_s, data_wait; /* of the run that predictions start from */
    double simulated, stretch;      /* images/s of its simulation, and what the workers' times were multiplied by */
    double seconds;                 /* that all of it took */
    char verdict[4096];             /* of that run, lines; may be empty */
    int n_rungs, n_changes;
    struct weir_whatif_rung rungs[WEIR_WHATIF_RUNGS];
    struct weir_whatif_change changes[WEIR_WHATIF_CHANGES];
};

/* Predicted over measured, less 1; 0 when one of them is not known. */
double weir_whatif_error(const struct weir_whatif_change *change);
bool weir_whatif_is_checked(const struct weir_whatif_change *change);
bool weir_whatif_is_noisy(const struct weir_whatif_change *change);

/* Of the magnitudes of the errors of checked changes that are not noisy. */
struct weir_whatif_errors {
    int pairs, noisy;
    double median, p90; /* 0 without pairs */
};
void weir_whatif_errors(const struct weir_whatif *found, struct weir_whatif_errors *errors);

/* Adds an empty one; NULL when there is no room. */
struct weir_whatif_rung *weir_whatif_add_rung(struct weir_whatif *found, const char *name);
struct weir_whatif_change *weir_whatif_add_change(struct weir_whatif *found, const char *name);

void weir_whatif_print(FILE *out, const struct weir_whatif *found);
/* Its members into the object that is open in json: docs/log-format.md. */
void weir_whatif_json(struct weir_json *json, const struct weir_whatif *found);

#endif
