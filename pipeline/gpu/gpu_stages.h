/* gpu_stages.h: stages of a program's own as a GPU's clock sees them: the time between two events that are recorded on
 * its stream where a stage begins and ends. Nothing is waited for: times are read when later stages begin, or when they
 * are asked for. Any thread. */
#ifndef WEIR_PIPELINE_GPU_GPU_STAGES_H
#define WEIR_PIPELINE_GPU_GPU_STAGES_H

#include "pipeline/gpu/gpu.h"
#include "weir/recorder.h"

struct weir_gpu_stages;

/* The device is shared: the caller may close its own. */
int weir_gpu_stages_open(struct weir_gpu_stages **out, struct weir_device *device, struct weir_err *err);
/* Accepts NULL. */
void weir_gpu_stages_close(struct weir_gpu_stages **stages);

/* stage: a registered number. At least 0: for weir_gpu_stages_end, which any thread may call. -EAGAIN: the GPU is so
 * far behind that there are no events left, and this call is not timed. -EIO. */
int weir_gpu_stages_begin(struct weir_gpu_stages *stages, int stage, void *stream, struct weir_err *err);
/* On the stream that it began on. */
int weir_gpu_stages_end(struct weir_gpu_stages *stages, int call, struct weir_err *err);

/* What has been timed so far of a stage, of calls that the GPU is through with. */
int weir_gpu_stages_read(struct weir_gpu_stages *stages, int stage, struct weir_stage_stats *stats,
                         struct weir_err *err);

#endif
