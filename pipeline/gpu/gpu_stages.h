/* gpu_stages.h: times a program's own stages on a GPU, using events recorded on the program's stream at the beginning
 * and end of each stage. Nothing blocks: times are read when later stages begin, or on request. Any thread may call
 * these functions. */
#ifndef WEIR_PIPELINE_GPU_GPU_STAGES_H
#define WEIR_PIPELINE_GPU_GPU_STAGES_H

#include "pipeline/gpu/gpu.h"
#include "weir/recorder.h"

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
