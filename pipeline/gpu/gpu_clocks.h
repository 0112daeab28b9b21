/* gpu_clocks.h: tables for the clocks inside one kernel (weir/kernel_clock.cuh), in use only while a window records
 * GPUs. The launches of a recording write into tables of their own, which are copied to the host and collected when the
 * recording ends. After 256 launches in a recording the kernel runs without clocks; such launches are counted.
 *
 *     weir_gpu_clocks_begin(clocks, &table);
 *     rc = launch(..., table, stream);             with clocks where table.memory is not NULL
 *     weir_gpu_clocks_launched(clocks, &table, rc);
 *     ...
 *     rc = weir_gpu_clocks_fetch(clocks, err);     once for several launches
 *
 * One thread launches. GPU memory is allocated by the first recorded launch, and never after it. */
#ifndef WEIR_PIPELINE_GPU_GPU_CLOCKS_H
#define WEIR_PIPELINE_GPU_GPU_CLOCKS_H

#include "pipeline/gpu/gpu_device.h"
#include "weir/kernel_clock.h"

struct weir_gpu_clocks;

/* kernel: name with the lifetime of the process. Block 0 of each launch writes. All launches are on the stream. device
 * and stream must remain open until weir_gpu_clocks_close. */
int weir_gpu_clocks_open(struct weir_gpu_clocks **out, struct weir_device *device,
                         const struct weir_kernel_clock_kernel *kernel, void *stream, struct weir_err *err);
/* Frees everything; the stream has no pending work. An active recording keeps what was copied. Accepts NULL. */
void weir_gpu_clocks_close(struct weir_gpu_clocks **clocks);

/* Returns the table for the next launch. memory NULL: launch without clocks. clocks may be NULL here and below. */
void weir_gpu_clocks_begin(struct weir_gpu_clocks *clocks, struct weir_kernel_clock_table *table);
/* Reports the result of the launch; rc < 0: it failed. */
void weir_gpu_clocks_launched(struct weir_gpu_clocks *clocks, const struct weir_kernel_clock_table *table, int rc);
/* Queues a copy of the tables of all launches since the last call, after them. */
int weir_gpu_clocks_fetch(struct weir_gpu_clocks *clocks, struct weir_err *err);

#endif
