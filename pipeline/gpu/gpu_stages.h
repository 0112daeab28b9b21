/* gpu_stages.h: a program's own stages on a GPU, timed by events recorded on its stream at the begin and end of each.
 * Nothing blocks: times are read when later stages begin, or on request. Any thread. */
#ifndef WEIR_PIPELINE_GPU_GPU_STAGES_H
#define WEIR_PIPELINE_GPU_GPU_STAGES_H

#include "pipeline/gpu/gpu.h"
#include "weir/recorder.h"

struct weir_gpu_stages;

/* Adds a reference to the device: the caller may close its own. Stages live as long as the process. */
int weir_gpu_stages_open(struct weir_gpu_stages **out, struct weir_device *device, struct weir_err *err);

/* stage: a registered stage's number. Returns a call number, at least 0, for weir_gpu_stages_end, which any thread may
 * call; -EAGAIN when the GPU is so far behind that no events are left: this call is not timed; or -EIO. */
int weir_gpu_stages_begin(struct weir_gpu_stages *stages, int stage, void *stream, struct weir_err *err);
/* Call it for the stream of weir_gpu_stages_begin. */
int weir_gpu_stages_end(struct weir_gpu_stages *stages, int call, struct weir_err *err);

/* Reads the statistics of a stage, for calls that the GPU has finished. */
int weir_gpu_stages_read(struct weir_gpu_stages *stages, int stage, struct weir_stage_stats *stats,
                         struct weir_err *err);

#endif
