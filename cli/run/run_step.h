/* run_step.h: the consumer's steps: simulated on the CPU, or queued on a GPU. */
#ifndef WEIR_CLI_RUN_RUN_STEP_H
#define WEIR_CLI_RUN_RUN_STEP_H

#include "weir/loader.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Simulates a step on the CPU: spins or sleeps for ns, or until *interrupted is set. */
void weir_run_step_stand_in(uint64_t ns, bool spin, const volatile sig_atomic_t *interrupted);
/* Attaches the shapes of the batch's tensors to the thread's current zone, if shapes are recorded. */
void weir_run_step_shapes(const struct weir_batch *batch);

/* ---- on a GPU ---- */

struct weir_run_gpu;

/* *out is NULL if the loader has no device. sync_steps: finishes each step before the next. stream: of the steps; NULL:
 * a new one. */
int weir_run_gpu_open(struct weir_run_gpu **out, struct weir_loader *loader, bool sync_steps, void *stream,
                      struct weir_err *err);
/* Call before the loader is closed. Accepts NULL. */
void weir_run_gpu_close(struct weir_run_gpu **gpu);

/* Queues a step that uses the batch: a kernel of duration ns (0: none). Waits for the previous step, so that the host
 * is one step ahead. */
int weir_run_gpu_step(struct weir_run_gpu *gpu, struct weir_batch *batch, uint64_t ns, struct weir_err *err);
/* The same for a step that the caller queues between begin and end. */
int weir_run_gpu_begin(struct weir_run_gpu *gpu, struct weir_batch *batch, struct weir_err *err);
int weir_run_gpu_end(struct weir_run_gpu *gpu, struct weir_err *err);
/* Copies the batch's tensors to host memory after the step; host is valid until the next call. */
int weir_run_gpu_fetch(struct weir_run_gpu *gpu, const struct weir_batch *batch, struct weir_batch *host,
                       struct weir_err *err);
/* Returns the batch to the loader once all queued work has passed. */
void weir_run_gpu_release(struct weir_run_gpu *gpu, struct weir_batch *batch);
/* Waits for all steps. */
int weir_run_gpu_drain(struct weir_run_gpu *gpu, struct weir_err *err);

#endif
