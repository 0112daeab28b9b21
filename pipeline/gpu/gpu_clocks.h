/* gpu_clocks.h: tables for the clocks inside one kernel (weir/kernel_clock.cuh) while a window records GPUs, and never
 * else: the launches of a recording write into tables of their own, which are copied to the host behind them and handed
 * over when the recording ends. Past 256 launches of a recording the kernel runs without clocks, and that is counted.
 *
 *     weir_gpu_clocks_begin(clocks, &table);
 *     rc = launch(..., table, stream);             with clocks where table.memory is not NULL
 *     weir_gpu_clocks_launched(clocks, &table, rc);
 *     ...
 *     rc = weir_gpu_clocks_fetch(clocks, err);     once for several launches
 *
 * One thread launches. Nothing of the GPU is taken before the first launch that is recorded, and nothing is allocated
 * after it. */
#ifndef WEIR_PIPELINE_GPU_GPU_CLOCKS_H
#define WEIR_PIPELINE_GPU_GPU_CLOCKS_H

#include "pipeline/gpu/gpu_device.h"
#include "weir/kernel_clock.h"

struct weir_gpu_clocks;

/* kernel: for the life of the process. Block 0 of each launch writes. The launches are on the stream. device and stream
 * are in use until the close. */
int weir_gpu_clocks_open(struct weir_gpu_clocks **out, struct weir_device *device,
                         const struct weir_kernel_clock_kernel *kernel, void *stream, struct weir_err *err);
/* Frees all; the stream has done what is queued on it. A recording that goes on gets what there is. Accepts NULL. */
void weir_gpu_clocks_close(struct weir_gpu_clocks **clocks);

/* The table for the launch that comes next. memory NULL: it is launched without clocks. clocks may be NULL, here and
 * below: none are. */
void weir_gpu_clocks_begin(struct weir_gpu_clocks *clocks, struct weir_kernel_clock_table *table);
/* It was launched; rc < 0: it was not. */
void weir_gpu_clocks_launched(struct weir_gpu_clocks *clocks, const struct weir_kernel_clock_table *table, int rc);
/* Queues the copy of the tables of all launches since the last call, behind them. */
int weir_gpu_clocks_fetch(struct weir_gpu_clocks *clocks, struct weir_err *err);

#endif
