/* compared.h: what weir compare knows of a file: measurements of the whole, of the data wait and of stages, and the
 * verdict, settings and machine. Logs, results of --json, traces and training logs are all reduced to it. */
#ifndef WEIR_ANALYZE_COMPARE_COMPARED_H
#define WEIR_ANALYZE_COMPARE_COMPARED_H

#include "analyze/compare/delta.h"
#include "analyze/verdict/verdict.h"
#include "weir/base.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    WEIR_COMPARED_STAGES = 256,
    WEIR_COMPARED_NAME = 128,
    WEIR_COMPARED_SETTINGS = 256,
    WEIR_COMPARED_SETTING = 64,
    WEIR_COMPARED_VALUE = 160,
    WEIR_COMPARED_CAUSE = 64,
};

struct weir_compared_stage {
    char name[WEIR_COMPARED_NAME];
    struct weir_series seconds; /* per `per` of the file */
    struct weir_series fastest; /* the fastest call of each measurement; empty = unknown, or not work */
    struct weir_series calls;   /* of the same measurements */
};

struct weir_compared_setting {
    char name[WEIR_COMPARED_SETTING]; /* "config.batch_size" */
    char value[WEIR_COMPARED_VALUE];
};

struct weir_compared {
    const char *path;   /* borrowed */
    const char *what;   /* "a log of weir run" */
    const char *family; /* files of different families cannot be compared */
    const char *unit;   /* of time that is measured once: "epoch", "line" */
    const char *per;    /* what a stage's time is divided by: "image", "call", "step"; NULL = no stages yet */
    const char *whole_name;
    bool more_is_better;      /* the whole is a rate */
    bool cut;                 /* its last line is cut off, because the run was killed */
    struct weir_series whole; /* a rate, or seconds */
    struct weir_series wait;  /* fraction of the training time */
    int n_stages;
    struct weir_compared_stage *stages; /* owned; sorted by first appearance */
    enum weir_data_bound bound;
    char cause[WEIR_COMPARED_CAUSE]; /* of the verdict; empty = unknown */
    double others_cores, cores;      /* used by other processes, and usable; -1 = unknown */
    int n_settings;
    struct weir_compared_setting *settings; /* owned */
};

/* Reads a file. `in` is the open file, or NULL to read a trace from the path. The first measurement of a run, which
 * starts its workers and fills caches, does not count if enough others remain. Returns 0 or -errno, with one line that
 * says what the file is if it has nothing to compare. The caller frees *compared, also after an error. */
int weir_compared_read(struct weir_compared *compared, const char *path, FILE *in, struct weir_err *err);
void weir_compared_free(struct weir_compared *compared);
/* Returns the stage with this name, or NULL. */
struct weir_compared_stage *weir_compared_find(const struct weir_compared *compared, const char *name);

/* ---- commands ---- */

enum { WEIR_REPEAT_SIDES = 2 };

/* Two commands, and the measurements of their runs. Zero-initialise what is not set. */
struct weir_repeat {
    int runs;                                   /* of each command */
    const char *const *argv[WEIR_REPEAT_SIDES]; /* each ends with NULL; borrowed */
    const volatile sig_atomic_t *interrupted;
    void (*done)(const struct weir_repeat *repeat, int side, int run, double seconds); /* called after each run */

    struct weir_compared sides[WEIR_REPEAT_SIDES];
    char *commands[WEIR_REPEAT_SIDES]; /* as typed; owned */
    struct weir_err err;
};

/* Runs the commands in interleaved rounds (analyze/trials/rounds.h). A run is one measurement: the medians of what it
 * prints, if that is a log or a result that weir compare reads, on standard output or else on standard error; otherwise
 * its duration. Returns 0, or -errno with the reason in repeat->err, which for a command that fails is its last line on
 * standard error. */
int weir_repeat_run(struct weir_repeat *repeat);
void weir_repeat_free(struct weir_repeat *repeat);

#endif
