/* motion_cli.h: the parts of the command weir motion: options, the steps, the output. */
#ifndef WEIR_EXTRAS_MOTION_CLI_MOTION_CLI_H
#define WEIR_EXTRAS_MOTION_CLI_MOTION_CLI_H

#include "base/option.h"
#include "cli/options.h"
#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/motion.h"
#include "weir/trace.h"

#include <stdio.h>

/* ---- motion_options.c: the options of the trainer's profiling script, and the selection of motions ---- */

/* In the same order as the values of --advice. */
enum motion_advice {
    MOTION_ADVICE_NONE,
    MOTION_ADVICE_INDICES,
    MOTION_ADVICE_IN_PLACE_LERP,
    MOTION_ADVICE_FAST_SLERP,
    MOTION_ADVICE_ROTATIONS,
    MOTION_ADVICE_NO_COPIES,
    MOTION_ADVICE_PREALLOCATED,
    MOTION_ADVICE_ALL,
};

struct motion_options {
    const char *motion, *task, *trace_path, *device, *root_body, *key_bodies;
    int num_envs, num_steps_to_use, warmup, active, num_steps, threads;
    int variant; /* enum weir_motion_variant */
    int loop;    /* enum weir_motion_loop */
    int advice;  /* enum motion_advice */
    bool headless, json, wide, no_shapes, no_memory, no_stack;
    uint64_t seed;
    /* Set by weir_motion_options_check. With --device auto, weir_motion_choose_device sets gpu. */
    int gpu;         /* GPU index, or -1 for the CPU */
    bool any_device; /* true with --device auto */
};

enum { MOTION_OPTS = 22, MOTION_ENVS_MAX = 100000000, MOTION_STEPS_MAX = 1000000 };
extern const struct weir_opt weir_motion_opts[MOTION_OPTS];
extern const char weir_motion_examples[];

/* 0 or -EINVAL (invalid or contradictory options). */
int weir_motion_options_check(struct motion_options *options, struct weir_err *err);
/* Writes the value of --advice, such as "fast_slerp". */
void weir_motion_advice_name(const struct motion_options *options, char text[WEIR_OPTION_TEXT]);
struct weir_motion_advice weir_motion_advice_of(const struct motion_options *options);
/* With --device auto, selects GPU 0 if it supports motion, otherwise the CPU. Another GPU in --device must support
 * motion: 0, -ENODEV or -ENOTSUP. */
int weir_motion_choose_device(struct motion_options *options, struct weir_err *err);

/* ---- motion_run.c: runs the recorded steps, then the timed steps ---- */

struct motion_figures {
    int timed; /* steps run without a profiler; their times per step follow */
    double min_ms, median_ms, p99_ms, max_ms;
    int operators; /* number of operators in a fetch */
    char engine[256];
    char trace_path[4096];    /* empty: no trace was written */
    struct weir_trace *trace; /* trace of the recorded steps, owned; NULL: not available */
};

/* Returns 0, 1 (interrupted; the figures are valid only if there is a trace) or -errno. The caller must clear the
 * figures in every case. */
int weir_motion_run(const struct motion_options *options, const struct weir_motion_clips *clips,
                    struct motion_figures *figures, struct weir_err *err);
void weir_motion_figures_clear(struct motion_figures *figures);

/* ---- motion_print.c ---- */

/* Prints the configuration, before the run. */
void weir_motion_print_head(FILE *out, const struct motion_options *options, const struct weir_motion_clips *clips);
/* Describes a report in the trainer's format, followed by the figures. */
void weir_motion_describe(struct weir_document *document, const struct weir_command *command,
                          const struct motion_options *options, const struct motion_figures *figures);

#endif
