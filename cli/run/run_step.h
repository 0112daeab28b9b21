/* run_step.h: what a step that takes a batch has in common, whoever makes it. */
#ifndef WEIR_CLI_RUN_RUN_STEP_H
#define WEIR_CLI_RUN_RUN_STEP_H

#include "weir/loader.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* A step's stand-in on the CPU: for so long by spinning, else by sleeping, or until *interrupted. */
void weir_run_step_stand_in(uint64_t ns, bool spin, const volatile sig_atomic_t *interrupted);
/* The zone that this thread is in gets the shapes of the batch's tensors, while shapes are recorded. */
void weir_run_step_shapes(const struct weir_batch *batch);

#endif
