/* gpu_ops.h: the pipeline's interface to a GPU, implemented by the CUDA module (gpu_cuda.c), and on the CPU by a fake
 * for tests.
 *
 * Streams and events are CUDA's own handles, passed as void *, so they can be exchanged with the program's; NULL and 1
 * are CUDA's legacy default stream, 2 is that of the calling thread. Calls return 0 or -errno with err set: -ENODEV no
 * such GPU, -ENOMEM out of GPU (or pinned) memory, -EIO the GPU is lost or a kernel faulted; after -EIO all other calls
 * fail the same way. Work on a stream runs in order and asynchronously. Any thread, each stream by one thread at a
 * time. */
#ifndef WEIR_PIPELINE_GPU_GPU_OPS_H
#define WEIR_PIPELINE_GPU_GPU_OPS_H

#include "weir/base.h"
#include "weir/kernel_clock.h"

#include <stddef.h>
#include <stdint.h>

struct weir_gpu; /* an open GPU: its primary context, with kernels loaded */

struct weir_gpu_info {
    int number;
    char name[128];
    char pci[32];     /* "0000:3b:00.0" */
    int major, minor; /* compute capability */
    uint64_t total_bytes, free_bytes;
    int sms, copy_engines, jpeg_engines; /* jpeg_engines -1 = unknown */
    int pcie_generation, pcie_width;     /* current link; 0 = unknown */
    int driver_version, runtime_version; /* 13000 = 13.0 */
};

/* ---- prepare kernel ---- */

/* Arrangement of a decoded image in GPU memory. */
enum weir_gpu_source_kind {
    WEIR_GPU_RGB,    /* plane[0]: height x width x 3 */
    WEIR_GPU_GRAY,   /* plane[0]: height x width; R = G = B */
    WEIR_GPU_YUV444, /* plane[0..2]: Y, Cb, Cr of a JPEG; chroma in full size */
    WEIR_GPU_YUV422, /* chroma of half the width */
    WEIR_GPU_YUV420, /* chroma of half the width and height */
    WEIR_GPU_YUV440, /* chroma of half the height */
};

/* One image to convert. Chroma planes have ceil(width / 2) x ceil(height / 2) samples, as the kind requires. */
struct weir_gpu_source {
    const uint8_t *plane[3]; /* on the GPU */
    uint32_t pitch[3];       /* bytes between rows */
    uint32_t kind;           /* enum weir_gpu_source_kind */
};

enum weir_gpu_dtype { WEIR_GPU_U8, WEIR_GPU_F32, WEIR_GPU_F16, WEIR_GPU_BF16 };

/* Resampling weights of one direction, as in decoders/resample.c: output pixel i is the weighted sum of source pixels
 * first[i] .. first[i] + n[i] - 1, with `most` weights stored per pixel. In GPU memory. */
struct weir_gpu_taps {
    const int32_t *first, *n;
    const float *weights;
    int32_t most;
};

/* Stages of the prepare kernel for its clocks (weir/kernel_clock.cuh), and the iterations that a table holds. A block's
 * first iteration is the values; each later one is 256 items of one image: 4 pixels of a row, or one pixel when
 * resampling. */
enum weir_gpu_prepare_stage {
    WEIR_GPU_PREPARE_VALUES, /* load the value table into the block's shared memory */
    WEIR_GPU_PREPARE_PIXELS, /* read sources, convert to RGB, resample */
    WEIR_GPU_PREPARE_STORE,  /* look up values and store, as far as the SM waits for it */
    WEIR_GPU_PREPARE_STAGES,
};
enum { WEIR_GPU_PREPARE_ITERATIONS = 64 };

/* Converts n consecutive images of one size to a dense tensor. Results equal the CPU's bit for bit: YUV to RGB as in
 * libjpeg (16-bit fixed point of jdcolor.c; chroma by the triangle filter, "fancy upsampling", of jdsample.c);
 * resampling as in decoders/resample.c (products and sums rounded separately, no fma; rows first, then columns; half
 * added, truncated to u8); then the value table, rounded to nearest even for f16 and bf16. */
struct weir_gpu_prepare {
    const struct weir_gpu_source *sources; /* in GPU memory */
    int n;
    int run, stride, first;    /* image i is image i / run * stride + first + i % run of the tensor; run 0: image i */
    int width, height;         /* of the sources */
    int x, y;                  /* first pixel of the crop, if taps are NULL */
    int out_width, out_height; /* of the images in the tensor */
    const struct weir_gpu_taps *columns,
        *rows;   /* host structures; NULL: copy out_width x out_height pixels starting at (x, y) */
    bool planar; /* nchw: 3 planes per image; else 3 interleaved channels */
    bool bgr;    /* channel 0 of the result is blue */
    enum weir_gpu_dtype dtype;
    const float *values; /* in GPU memory: 3 x 256, output for each value of each output channel; NULL for u8 */
    void *tensor;        /* in GPU memory; aligned to 256 bytes */
    struct weir_kernel_clock_table clocks; /* memory NULL: run without clocks */
};

struct weir_gpu_ops {
    /* Stores the number of GPUs and returns 0, or returns -ENODEV with the reason (no driver, ...). Creates no context.
     */
    int (*count)(int *n, struct weir_err *err);
    /* Fills info. measure: creates a context; without it the memory sizes are 0. */
    int (*describe)(int number, bool measure, struct weir_gpu_info *info, struct weir_err *err);

    /* Opens the GPU's primary context, which it shares with the program's own CUDA code. */
    int (*open)(struct weir_gpu **gpu, int number, struct weir_err *err);
    /* Destroy all streams and events and free all memory of it first. Accepts NULL. */
    void (*close)(struct weir_gpu **gpu);
    int (*memory)(struct weir_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes, struct weir_err *err);

    /* Pins page-aligned host memory, and unpins it; no queued work may use it any more. Returns -ENOMEM if it cannot be
     * pinned. */
    int (*pin)(struct weir_gpu *gpu, void *memory, size_t bytes, struct weir_err *err);
    void (*unpin)(struct weir_gpu *gpu, void *memory);
    int (*alloc)(struct weir_gpu *gpu, size_t bytes, void **memory, struct weir_err *err);
    void (*free)(struct weir_gpu *gpu, void *memory); /* waits for all queued work of the GPU */

    /* urgent: kernels take precedence over those of other streams. Never synchronises with the default stream. */
    int (*stream_new)(struct weir_gpu *gpu, bool urgent, void **stream, struct weir_err *err);
    void (*stream_free)(struct weir_gpu *gpu, void *stream);
    /* timed: usable with elapsed. Waiting for an event sleeps, it does not spin. */
    int (*event_new)(struct weir_gpu *gpu, bool timed, void **event, struct weir_err *err);
    void (*event_free)(struct weir_gpu *gpu, void *event);
    int (*record)(struct weir_gpu *gpu, void *event, void *stream, struct weir_err *err);
    /* Delays later work on the stream until the event's last record has passed. */
    int (*stream_wait)(struct weir_gpu *gpu, void *stream, void *event, struct weir_err *err);
    /* Returns 1 when the event has passed or was never recorded, 0 when not yet, or negative. */
    int (*passed)(struct weir_gpu *gpu, void *event, struct weir_err *err);
    /* Blocks until the event has passed. */
    int (*wait)(struct weir_gpu *gpu, void *event, struct weir_err *err);
    /* Stores the ns between two timed events that have passed, by the GPU's clock; negative when `to` came first. CUDA
     * returns a float of milliseconds, with a resolution of 0.5 us at best and one part in 16 million, so use events
     * that are close together. Returns -EINVAL when either has not passed. */
    int (*elapsed)(struct weir_gpu *gpu, void *from, void *to, int64_t *ns, struct weir_err *err);

    /* Queued. Unpinned host memory is copied slowly, and possibly before the call returns. */
    int (*copy_in)(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream, struct weir_err *err);
    int (*copy_out)(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream, struct weir_err *err);
    int (*copy_within)(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream,
                       struct weir_err *err);
    /* Returns -EINVAL for invalid numbers. Does not check the contents of sources, taps and values. */
    int (*prepare)(struct weir_gpu *gpu, const struct weir_gpu_prepare *prepare, void *stream, struct weir_err *err);
    /* Queues n consecutive readings of the GPU's ns clock by one thread, for weir_kernel_clock_step. to: in GPU memory.
     * Call it before the first launch with clocks: it loads their kernels. */
    int (*clock_samples)(struct weir_gpu *gpu, uint64_t *to, uint32_t n, void *stream, struct weir_err *err);
    /* Queues a kernel, with one small block per SM, that lasts at least ns. */
    int (*busy)(struct weir_gpu *gpu, uint64_t ns, void *stream, struct weir_err *err);
};

#endif
