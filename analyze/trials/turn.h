/* turn.h: what one measured run of `weir run --seconds F --json` printed, as numbers. */
#ifndef WEIR_ANALYZE_TRIALS_TURN_H
#define WEIR_ANALYZE_TRIALS_TURN_H

#include "weir/base.h"

#include <stddef.h>
#include <stdint.h>

enum { WEIR_TURN_STAGES = 32 };

struct weir_turn_stage {
    char name[64];
    char kind[12], side[12]; /* "work", "wait", ...; "worker", "consumer", "helper", "gpu" */
    double count, total_s, self_s, mean_s, p99_s;
    double share; /* of the workers' work, 0..1; -1 = does not apply */
};

struct weir_turn {
    int round;      /* of the rotation, from 0 */
    double seconds; /* measured */
    double samples, images, samples_per_s, images_per_s;
    double data_wait;         /* of these seconds, 0..1: the consumer waited */
    double wait_p99_s;        /* the 99th percentile of what a request for a batch took; -1 = there was none */
    double cpu_s;             /* of the process and its HDF5 helper processes */
    double read_bytes;        /* by the io engine and through the HDF5 library */
    double peak_bytes;        /* largest resident memory of the process */
    char reads[8];            /* "cold", "warm", "partly", "direct"; "" = not known */
    double cached;            /* of the files in the page cache when it began, 0..1; -1 = not known */
    char io[16], decoder[32]; /* what was used */
    double workers, prefetch; /* the same */
    double workers_wall_s;    /* all workers' time in the seconds */
    double others_cores;      /* cores that other processes had meanwhile; -1 = not known */
    int n_stages;             /* in the order of the output */
    struct weir_turn_stage stages[WEIR_TURN_STAGES];
};

/* Fills turn from JSON lines. Any bytes may come: -EBADMSG when a line is no JSON or a figure is missing or no number
 * that it can be; lines and members that are not known are passed over. */
int weir_turn_parse(struct weir_turn *turn, const char *text, size_t length, struct weir_err *err);

/* The stage that bounded the turn and its part of the time of all workers, 0..1; NULL when it is not known.
 * docs/bench.md has the rule. */
const struct weir_turn_stage *weir_turn_bound(const struct weir_turn *turn, double *part);

#endif
