/* motion_options.h: the options of weir motion: those of the trainer's profiling script, and the choice of motion. */
#ifndef WEIR_EXTRAS_MOTION_CLI_MOTION_OPTIONS_H
#define WEIR_EXTRAS_MOTION_CLI_MOTION_OPTIONS_H

#include "base/option.h"
#include "cli/options.h"
#include "extras/motion/motion.h"

/* In the order in which --advice names them. */
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
    bool headless, json, no_shapes, no_memory, no_stack;
    uint64_t seed;
    /* Set by weir_motion_options_check, and for auto by weir_motion_choose_device. */
    int gpu;         /* index; -1: the CPU */
    bool any_device; /* --device auto */
};

enum { MOTION_OPTS = 21, MOTION_ENVS_MAX = 100000000, MOTION_STEPS_MAX = 1000000 };
extern const struct weir_opt weir_motion_opts[MOTION_OPTS];
extern const char weir_motion_examples[];

/* 0 or -EINVAL (contradictory options). */
int weir_motion_options_check(struct motion_options *options, struct weir_err *err);
/* Writes the value of --advice, such as "fast_slerp". */
void weir_motion_advice_name(const struct motion_options *options, char text[WEIR_OPTION_TEXT]);
struct weir_motion_advice weir_motion_advice_of(const struct motion_options *options);
/* With --device auto chooses the first GPU that has motion kernels, else the CPU. A named GPU must have them: 0,
 * -ENODEV or -ENOTSUP. */
int weir_motion_choose_device(struct motion_options *options, struct weir_err *err);

#endif
