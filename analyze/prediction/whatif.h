/* whatif.h: result of `weir whatif`: the ladder, and changes with predicted and measured effects. Plain data, so that a
 * log reproduces the tables. Any thread. */
#ifndef WEIR_ANALYZE_PREDICTION_WHATIF_H
#define WEIR_ANALYZE_PREDICTION_WHATIF_H

#include "base/fields.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stdio.h>

enum { WEIR_WHATIF_RUNGS = 8, WEIR_WHATIF_CHANGES = 32, WEIR_WHATIF_TEXT = 128, WEIR_WHATIF_WHY = 512 };

/* Larger differences between two identical runs make them too noisy to validate a prediction. */
#define WEIR_WHATIF_NOISY 0.05

struct weir_whatif_rung {
    char name[WEIR_WHATIF_TEXT];
    char why[WEIR_WHATIF_WHY];    /* not empty: the reason why it was left out */
    double images_per_s, ratio;   /* medians; ratio: to the base run, per round */
    double ratio_low, ratio_high; /* interval of its median */
    double data_wait;             /* 0..1; -1 = not known */
    int trials;
};

struct weir_whatif_change {
    char name[WEIR_WHATIF_TEXT];
    char flag[WEIR_WHATIF_TEXT];  /* option to use; may be empty */
    char basis[WEIR_WHATIF_TEXT]; /* basis of the prediction */
    double predicted;             /* images/s over those of the base run; 0 = no prediction */
    char limit[32];               /* limiting resource after the change; empty = not known */
    char why[WEIR_WHATIF_WHY];    /* not empty: the reason why it was not predicted or checked */
    int trials;                   /* of --check; 0 = not checked */
    double measured, measured_low, measured_high;
    double noise; /* of the two identical base runs: ratio of their images/s, less 1 */
};

struct weir_whatif {
    char data[4096];
    bool cold, checked, interrupted;
    int workers, prefetch, batch_size, cores;
    double images_per_s, data_wait; /* of the base run */
    double simulated, stretch;      /* images/s of its simulation, and the factor of the workers' times */
    double seconds;                 /* duration of the command */
    char verdict[4096];             /* of the base run, lines; may be empty */
    int n_rungs, n_changes;
    struct weir_whatif_rung rungs[WEIR_WHATIF_RUNGS];
    struct weir_whatif_change changes[WEIR_WHATIF_CHANGES];
};

/* Members in logs, apart from the verdict, the lists, and those made from others. */
extern const struct weir_fields weir_whatif_fields, weir_whatif_rung_fields, weir_whatif_change_fields;

/* Adds an empty one; NULL: no room. */
struct weir_whatif_rung *weir_whatif_add_rung(struct weir_whatif *found, const char *name);
struct weir_whatif_change *weir_whatif_add_change(struct weir_whatif *found, const char *name);

void weir_whatif_print(FILE *out, const struct weir_whatif *found);
/* Writes its members to the open object: docs/log-format.md. */
void weir_whatif_json(struct weir_json *json, const struct weir_whatif *found);

#endif
