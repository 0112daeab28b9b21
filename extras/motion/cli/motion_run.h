/* motion_run.h: runs the steps of weir motion: first recorded, then timed. */
#ifndef WEIR_EXTRAS_MOTION_CLI_MOTION_RUN_H
#define WEIR_EXTRAS_MOTION_CLI_MOTION_RUN_H

#include "extras/motion/cli/motion_options.h"
#include "weir/trace.h"

struct weir_motion_clips;

struct motion_figures {
    int timed; /* steps without a profiler, and ms per step: */
    double min_ms, median_ms, p99_ms, max_ms;
    int operators; /* of a fetch */
    char engine[256];
    char trace_path[4096];
    struct weir_trace *trace; /* trace of the recorded steps; owned */
};

/* 0, 1 (interrupted; no figures unless there is a trace) or -errno. Clear the figures in every case. */
int weir_motion_run(const struct motion_options *options, const struct weir_motion_clips *clips,
                    struct motion_figures *figures, struct weir_err *err);
void weir_motion_figures_clear(struct motion_figures *figures);

#endif
