/* run_step.h: the consumer's steps: simulated on the CPU, or queued on a GPU. */
#ifndef WEIR_CLI_RUN_RUN_STEP_H
#define WEIR_CLI_RUN_RUN_STEP_H

#include "weir/loader.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Simulates a step on the CPU. Busy-waits or sleeps for ns, or until *interrupted is set. */
void weir_run_step_stand_in(uint64_t ns, bool spin, const volatile sig_atomic_t *interrupted);
/* Attaches the shapes of the batch's tensors to the thread's current zone, if shapes are recorded. */
void weir_run_step_shapes(const struct weir_batch *batch);

/* ---- on a GPU ---- */

struct weir_run_gpu;

/* Prepares for steps on the loader's GPU. Sets *out to NULL if the loader has no GPU. sync_steps: finish each step
 * before starting the next. stream is the stream of the steps; NULL creates one. */
int weir_run_gpu_open(struct weir_run_gpu **out, struct weir_loader *loader, bool sync_steps, void *stream,
                      struct weir_err *err);
/* Call before the loader is closed. Accepts NULL. */
void weir_run_gpu_close(struct weir_run_gpu **gpu);

/* Queues a step that uses the batch, as a kernel that runs for ns (0: no kernel). Then waits for the previous step, so
 * that the host is at most one step ahead. */
int weir_run_gpu_step(struct weir_run_gpu *gpu, struct weir_batch *batch, uint64_t ns, struct weir_err *err);
/* Begin and end such a step for a caller that queues its work between the two calls. */
int weir_run_gpu_begin(struct weir_run_gpu *gpu, struct weir_batch *batch, struct weir_err *err);
int weir_run_gpu_end(struct weir_run_gpu *gpu, struct weir_err *err);
/* Copies the batch's tensors to host memory after the step. host remains valid until the next call. */
int weir_run_gpu_fetch(struct weir_run_gpu *gpu, const struct weir_batch *batch, struct weir_batch *host,
                       struct weir_err *err);
/* Returns the batch to the loader once all work queued on the stream is complete. */
void weir_run_gpu_release(struct weir_run_gpu *gpu, struct weir_batch *batch);
/* Waits for all queued steps. */
int weir_run_gpu_drain(struct weir_run_gpu *gpu, struct weir_err *err);

#endif
