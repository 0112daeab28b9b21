/* run_gpu.h: the consumer's end on a GPU: a stream, steps that are kernels, and what the GPU did for the reports. */
#ifndef WEIR_CLI_RUN_GPU_H
#define WEIR_CLI_RUN_GPU_H

#include "pipeline/loader.h"
#include "prof/report/report.h"

struct weir_run_gpu;

/* *out is NULL when the loader has no device. sync_steps: each step is waited for before the next. */
int weir_run_gpu_open(struct weir_run_gpu **out, struct weir_loader *loader, bool sync_steps, struct weir_err *err);
/* Before the loader's close. Accepts NULL. */
void weir_run_gpu_close(struct weir_run_gpu **gpu);

/* Queues a step that uses the batch, a kernel that lasts so long (0: none), and waits for the step before it: the host
 * is one step ahead. */
int weir_run_gpu_step(struct weir_run_gpu *gpu, struct weir_batch *batch, uint64_t ns, struct weir_err *err);
/* The batch with its tensors in the host's memory, until the next call; behind the step. */
int weir_run_gpu_fetch(struct weir_run_gpu *gpu, const struct weir_batch *batch, struct weir_batch *host,
                       struct weir_err *err);
/* The batch is the loader's again when what was queued has passed. */
void weir_run_gpu_release(struct weir_run_gpu *gpu, struct weir_batch *batch);
/* Waits for all steps. */
int weir_run_gpu_drain(struct weir_run_gpu *gpu, struct weir_err *err);

/* The share of the copies that ran beside steps; -1 = not known. */
double weir_run_gpu_overlap(const struct weir_gpu_figures *now, const struct weir_gpu_figures *then);
/* Who decoded how much between then and now, wall_s long; the CPU's part is left to the caller. */
void weir_run_gpu_decode(struct weir_report_gpu *report, const struct weir_gpu_decode_figures *now,
                         const struct weir_gpu_decode_figures *then, double wall_s);
/* What the GPU did between then and now, wall_s long. */
void weir_run_gpu_report(struct weir_report_gpu *report, const struct weir_run_gpu *gpu,
                         const struct weir_gpu_figures *now, const struct weir_gpu_figures *then, double wall_s);

#endif
