/* batch.h: what a loader gives out: a batch of samples as tensors, in memory that the loader owns and lends until the
 * batch's release (loader.h). */
#ifndef WEIR_PIPELINE_BATCH_H
#define WEIR_PIPELINE_BATCH_H

#include "datasets/dataset.h"
#include "decoders/decoder.h"
#include "pipeline/sampler.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_tensor {
    const char *name; /* "images" or "images/CAMERA" where sizes differ, "depth" or "depth/CAMERA", "qpos", "actions",
                         "is_pad" */
    enum weir_dtype dtype; /* f16 and bf16: of images on a GPU */
    int ndim;
    int64_t shape[6];    /* shape[0] = samples of this batch; a dimension for history only when obs_history > 1 */
    void *data;          /* dense, row-major; on a GPU, in its memory, aligned to 256 bytes */
    size_t sample_bytes; /* of one row along shape[0] */
};

enum { WEIR_TENSORS_MAX = WEIR_CAMERAS_MAX + 3 };

/* images [n, colour cameras, (history), H, W, 3] (or 3, H, W), u8 or f32 in 0..1; depth [n, depth cameras, (history),
 * H, W] u16, as stored whatever format says. Where the cameras of a kind differ in size each has a tensor of its own,
 * without that dimension; of a kind without cameras there is none. qpos [n, (history), D] f32 and actions [n, chunk, A]
 * f32, normalised with the training split's mean and std (std at least 1e-2); is_pad [n, chunk] u8. */
struct weir_batch {
    struct weir_plan plan; /* epoch, split, index; plan.n is what was asked for */
    int n;                 /* samples that came; fewer than plan.n after --on-error skip */
    const struct weir_sample *samples;
    int n_tensors;
    struct weir_tensor tensors[WEIR_TENSORS_MAX];
    uint64_t wait_ns;     /* how long weir_loader_next blocked for its data */
    uint64_t gpu_wait_ns; /* and because the GPU was behind: it still had the batches before */
    uint64_t ready_ns;    /* when it was complete (in the host's memory), by weir_clock_monotonic_ns */
    int device;           /* the GPU that the tensors are on; -1 = none */
    void *ready;          /* event that passes when they are there; NULL without a GPU. Until the release */
};

#ifdef __cplusplus
}
#endif

#endif
