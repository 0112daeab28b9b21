/* whatif.h: result of `weir whatif`: the ladder, and changes with predicted and measured effects. Contains only plain
 * data, so the tables can be printed again from a log. Any thread can use it. */
#ifndef WEIR_ANALYZE_PREDICTION_WHATIF_H
#define WEIR_ANALYZE_PREDICTION_WHATIF_H

#include "analyze/causes/thresholds.h"
#include "base/document.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stdio.h>

enum { WEIR_WHATIF_RUNGS = 8, WEIR_WHATIF_CHANGES = 32, WEIR_WHATIF_TEXT = 128, WEIR_WHATIF_WHY = 512 };

struct weir_whatif_rung {
    char name[WEIR_WHATIF_TEXT];
    char why[WEIR_WHATIF_WHY];    /* reason for omitting it, or empty */
    double images_per_s, ratio;   /* medians over the rounds; ratio is relative to the base run */
    double ratio_low, ratio_high; /* confidence interval of the median ratio */
    double data_wait;             /* 0..1; -1 = unknown */
    int trials;
};

struct weir_whatif_change {
    char name[WEIR_WHATIF_TEXT];
    char flag[WEIR_WHATIF_TEXT];  /* command-line option for the change; can be empty */
    char basis[WEIR_WHATIF_TEXT]; /* basis of the prediction, such as "simulated" */
    double predicted;             /* predicted images/s over those of the base run; 0 = no prediction */
    char limit[32];               /* limiting resource after the change; empty = unknown */
    char why[WEIR_WHATIF_WHY];    /* why it was not predicted or not checked, or empty */
    int trials;                   /* number of trials with --check; 0 = not checked */
    double measured, measured_low, measured_high;
    double noise;  /* ratio of the rates of two identical base runs, less 1 */
    double others; /* fraction of the usable cores that other processes used in these trials; 0 = unknown */
};

struct weir_whatif {
    char data[4096];
    bool cold, checked, interrupted;
    bool step_is_limit; /* by the verdict: the base run hardly waits for data */
    int workers, prefetch, batch_size, cores;
    double images_per_s, data_wait; /* figures of the base run */
    double others_cores;            /* cores that other processes used during the base run; 0 = unknown */
    double simulated, stretch; /* images/s of the simulated base run, and the factor applied to the workers' times */
    double seconds;            /* duration of the command */
    char verdict[4096];        /* lines of the base run's verdict; can be empty */
    int n_rungs, n_changes;
    struct weir_whatif_rung rungs[WEIR_WHATIF_RUNGS];
    struct weir_whatif_change changes[WEIR_WHATIF_CHANGES];
};

/* Members in logs, except the verdict, the lists, and members computed from others. */
extern const struct weir_fields weir_whatif_fields, weir_whatif_rung_fields, weir_whatif_change_fields;

/* Adds an empty rung or change. Returns NULL if there is no room. */
struct weir_whatif_rung *weir_whatif_add_rung(struct weir_whatif *found, const char *name);
struct weir_whatif_change *weir_whatif_add_change(struct weir_whatif *found, const char *name);

/* Whether the change was checked on a machine too noisy to validate a prediction. */
bool weir_whatif_is_noisy(const struct weir_whatif_change *change);
/* Returns the measured ratio where it is reliable, otherwise the predicted one; 0 = unknown. */
double weir_whatif_ratio(const struct weir_whatif_change *change);

/* Describes the result; its members of JSON are those of a log (docs/internals/log-format.md). */
void weir_whatif_describe(struct weir_document *document, const struct weir_whatif *found);

#endif
