/* run_step.h: the consumer's steps: simulated on the CPU, or queued on a GPU. */
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

/* ---- on a GPU ---- */

struct weir_run_gpu;

/* *out is NULL when the loader has no device. sync_steps: each step is waited for before the next. stream: of steps;
 * NULL: one of its own. */
int weir_run_gpu_open(struct weir_run_gpu **out, struct weir_loader *loader, bool sync_steps, void *stream,
                      struct weir_err *err);
/* Before the loader's close. Accepts NULL. */
void weir_run_gpu_close(struct weir_run_gpu **gpu);

/* Queues a step that uses the batch, a kernel that lasts so long (0: none), and waits for the step before it: the host
 * is one step ahead. */
int weir_run_gpu_step(struct weir_run_gpu *gpu, struct weir_batch *batch, uint64_t ns, struct weir_err *err);
/* The same of a step that the caller queues in between. */
int weir_run_gpu_begin(struct weir_run_gpu *gpu, struct weir_batch *batch, struct weir_err *err);
int weir_run_gpu_end(struct weir_run_gpu *gpu, struct weir_err *err);
/* The batch with its tensors in the host's memory, until the next call; behind the step. */
int weir_run_gpu_fetch(struct weir_run_gpu *gpu, const struct weir_batch *batch, struct weir_batch *host,
                       struct weir_err *err);
/* The batch is the loader's again when what was queued has passed. */
void weir_run_gpu_release(struct weir_run_gpu *gpu, struct weir_batch *batch);
/* Waits for all steps. */
int weir_run_gpu_drain(struct weir_run_gpu *gpu, struct weir_err *err);

#endif
