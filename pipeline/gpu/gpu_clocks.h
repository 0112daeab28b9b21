/* gpu_clocks.h: tables for the clocks inside one kernel (weir/kernel_clock.cuh), which are used only while a recording
 * includes GPUs. Each launch in a recording writes to its own table. The tables are copied to the host, and collected
 * when the recording ends. After 256 launches in a recording, the kernel runs without clocks, and these launches are
 * counted.
 *
 *     weir_gpu_clocks_begin(clocks, &table);
 *     rc = launch(..., table, stream);             with clocks if table.memory is not NULL
 *     weir_gpu_clocks_launched(clocks, &table, rc);
 *     ...
 *     rc = weir_gpu_clocks_fetch(clocks, err);     once for several launches
 *
 * Only one thread may launch. The first recorded launch allocates GPU memory; later launches allocate none. */
#ifndef WEIR_PIPELINE_GPU_GPU_CLOCKS_H
#define WEIR_PIPELINE_GPU_GPU_CLOCKS_H

#include "pipeline/gpu/gpu.h"
#include "pipeline/gpu/gpu_device.h"
#include "weir/kernel_clock.h"
#include "weir/recorder.h"

struct weir_gpu_clocks;

/* kernel must remain valid until the process exits. Only block 0 of each launch writes. All launches must use this
 * stream. device and stream must stay open until weir_gpu_clocks_close. */
int weir_gpu_clocks_open(struct weir_gpu_clocks **out, struct weir_device *device,
                         const struct weir_kernel_clock_kernel *kernel, void *stream, struct weir_err *err);
/* Frees everything. The stream must have no pending work. An active recording keeps the tables copied so far. Accepts
 * NULL. */
void weir_gpu_clocks_close(struct weir_gpu_clocks **clocks);

/* Prepares the table for the next launch. If table->memory is NULL, launch without clocks. clocks may be NULL here and
 * in the functions below. */
void weir_gpu_clocks_begin(struct weir_gpu_clocks *clocks, struct weir_kernel_clock_table *table);
/* Reports the result of the launch; rc < 0 means that the launch failed. */
void weir_gpu_clocks_launched(struct weir_gpu_clocks *clocks, const struct weir_kernel_clock_table *table, int rc);
/* Queues a copy of the tables of all launches since the last call. The copy runs after these launches. */
int weir_gpu_clocks_fetch(struct weir_gpu_clocks *clocks, struct weir_err *err);

/* ---- gpu_stages.c: times a program's own stages on a GPU, using events recorded on the program's stream at the
 * beginning and end of each stage. Nothing blocks: times are read when later stages begin, or on request. Any thread
 * may call these functions. */

struct weir_gpu_stages;

/* Adds a reference to the device, so the caller may close its own. The object lives until the process exits. */
int weir_gpu_stages_open(struct weir_gpu_stages **out, struct weir_device *device, struct weir_err *err);

/* stage: number of a registered stage. Returns a call number >= 0 for weir_gpu_stages_end, which any thread may call.
 * Returns -EAGAIN if the GPU is so far behind that no events are left; this call is then not timed. May return -EIO. */
int weir_gpu_stages_begin(struct weir_gpu_stages *stages, int stage, void *stream, struct weir_err *err);
/* Records the end of the call on the stream that was passed to weir_gpu_stages_begin. */
int weir_gpu_stages_end(struct weir_gpu_stages *stages, int call, struct weir_err *err);

/* Reads the statistics of a stage. They include all calls that the GPU has finished. */
int weir_gpu_stages_read(struct weir_gpu_stages *stages, int stage, struct weir_stage_stats *stats,
                         struct weir_err *err);

#endif
