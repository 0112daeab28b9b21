/* gpu_ops.h: the pipeline's interface to a GPU. The CUDA module implements it (gpu_cuda.c), and so does a fake on the
 * CPU for tests.
 *
 * Streams and events are CUDA's own handles, passed as void *, so that Weir and the program can use each other's. NULL
 * and 1 are CUDA's legacy default stream; 2 is the per-thread default stream of the calling thread. Functions return 0,
 * or -errno with err set: -ENODEV (no such GPU), -ENOMEM (out of GPU or pinned memory) or -EIO (the GPU is lost or a
 * kernel faulted). After -EIO all further calls fail with -EIO. Work on a stream runs in order and asynchronously. Any
 * thread may call these functions, but only one thread at a time may use a stream. */
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
    char pci[32];     /* PCI address, such as "0000:3b:00.0" */
    int major, minor; /* compute capability */
    uint64_t total_bytes, free_bytes;
    int sms, copy_engines, jpeg_engines; /* jpeg_engines is -1 if unknown */
    int pcie_generation, pcie_width;     /* of the current link; 0 = unknown */
    int driver_version, runtime_version; /* 13000 means version 13.0 */
};

/* ---- prepare kernel ---- */

/* Arrangement of a decoded image in GPU memory. */
enum weir_gpu_source_kind {
    WEIR_GPU_RGB,    /* plane[0]: height x width x 3 */
    WEIR_GPU_GRAY,   /* plane[0]: height x width; R = G = B */
    WEIR_GPU_YUV444, /* plane[0..2]: Y, Cb, Cr of a JPEG; chroma at full size */
    WEIR_GPU_YUV422, /* chroma at half the width */
    WEIR_GPU_YUV420, /* chroma at half the width and height */
    WEIR_GPU_YUV440, /* chroma at half the height */
};

/* One image to convert. Where chroma is subsampled, its planes have ceil(width / 2) columns, ceil(height / 2) rows, or
 * both. */
struct weir_gpu_source {
    const uint8_t *plane[3]; /* in GPU memory */
    uint32_t pitch[3];       /* bytes between rows */
    uint32_t kind;           /* enum weir_gpu_source_kind */
};

enum weir_gpu_dtype { WEIR_GPU_U8, WEIR_GPU_F32, WEIR_GPU_F16, WEIR_GPU_BF16 };

/* Resampling weights of one direction, in GPU memory. As in decoders/resample.c, output pixel i is the weighted sum of
 * source pixels first[i] .. first[i] + n[i] - 1. Each output pixel has room for `most` weights. */
struct weir_gpu_taps {
    const int32_t *first, *n;
    const float *weights;
    int32_t most;
};

/* Stages of the prepare kernel for its clocks (weir/kernel_clock.cuh), and the number of iterations in a table. The
 * first iteration of a block loads the value table. Each later iteration handles 256 items of one image. An item is 4
 * pixels of a row, or one pixel if the image is resampled. */
enum weir_gpu_prepare_stage {
    WEIR_GPU_PREPARE_VALUES, /* load the value table into the block's shared memory */
    WEIR_GPU_PREPARE_PIXELS, /* read sources, convert to RGB, resample */
    WEIR_GPU_PREPARE_STORE,  /* look up values and store them, without store time that the SM does not wait for */
    WEIR_GPU_PREPARE_STAGES,
};
enum { WEIR_GPU_PREPARE_ITERATIONS = 64 };

/* Converts n images of equal size to a dense tensor. The result is bit-identical to the CPU's.
 *
 * YUV is converted to RGB as in libjpeg: in the 16-bit fixed point of jdcolor.c, with chroma upsampled by the triangle
 * filter ("fancy upsampling") of jdsample.c. Images are resampled as in decoders/resample.c: first rows, then columns;
 * products and sums are rounded separately (no fma); the sum plus one half is truncated to u8. The value table is
 * applied last, with rounding to nearest even for f16 and bf16. */
struct weir_gpu_prepare {
    const struct weir_gpu_source *sources; /* in GPU memory */
    int n;
    int run, stride, first;    /* source i is image i / run * stride + first + i % run of the tensor; run 0 = image i */
    int width, height;         /* size of the source images */
    int x, y;                  /* first pixel of the crop; used if columns and rows are NULL */
    int out_width, out_height; /* size of the images in the tensor */
    const struct weir_gpu_taps *columns,
        *rows;   /* in host memory; NULL = copy out_width x out_height pixels from (x, y) */
    bool planar; /* nchw: 3 planes per image; otherwise 3 interleaved channels */
    bool bgr;    /* channel 0 of the result is blue */
    enum weir_gpu_dtype dtype;
    const float *values; /* in GPU memory: 3 x 256 output values, one for each channel and u8 value; NULL for u8 */
    void *tensor;        /* in GPU memory; aligned to 256 bytes */
    struct weir_kernel_clock_table clocks; /* if its memory is NULL, the kernel runs without clocks */
};

struct weir_gpu_ops {
    /* Stores the number of GPUs in *n and returns 0, or returns -ENODEV with the reason (such as a missing driver).
     * Creates no context. */
    int (*count)(int *n, struct weir_err *err);
    /* Fills in *info. measure: creates a context, without which the memory sizes are 0. */
    int (*describe)(int number, bool measure, struct weir_gpu_info *info, struct weir_err *err);

    /* Opens the GPU's primary context, which Weir shares with the program's own CUDA code. */
    int (*open)(struct weir_gpu **gpu, int number, struct weir_err *err);
    /* Before this call, destroy all streams and events of the GPU and free all its memory. Accepts NULL. */
    void (*close)(struct weir_gpu **gpu);
    int (*memory)(struct weir_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes, struct weir_err *err);

    /* Pin or unpin page-aligned host memory. Do not unpin it while queued work may use it. pin returns -ENOMEM if the
     * memory cannot be pinned. */
    int (*pin)(struct weir_gpu *gpu, void *memory, size_t bytes, struct weir_err *err);
    void (*unpin)(struct weir_gpu *gpu, void *memory);
    int (*alloc)(struct weir_gpu *gpu, size_t bytes, void **memory, struct weir_err *err);
    void (*free)(struct weir_gpu *gpu, void *memory); /* waits for all work queued on the GPU */

    /* urgent: the stream's kernels take precedence over those of other streams. The stream never synchronises with the
     * default stream. */
    int (*stream_new)(struct weir_gpu *gpu, bool urgent, void **stream, struct weir_err *err);
    void (*stream_free)(struct weir_gpu *gpu, void *stream);
    /* timed: the event can be used with elapsed. Waiting for an event sleeps instead of spinning. */
    int (*event_new)(struct weir_gpu *gpu, bool timed, void **event, struct weir_err *err);
    void (*event_free)(struct weir_gpu *gpu, void *event);
    int (*record)(struct weir_gpu *gpu, void *event, void *stream, struct weir_err *err);
    /* Delays later work on the stream until the event, as last recorded, has passed. */
    int (*stream_wait)(struct weir_gpu *gpu, void *stream, void *event, struct weir_err *err);
    /* Returns 1 if the event has passed or was never recorded, 0 if it has not passed yet, or a negative error. */
    int (*passed)(struct weir_gpu *gpu, void *event, struct weir_err *err);
    /* Blocks until the event has passed. */
    int (*wait)(struct weir_gpu *gpu, void *event, struct weir_err *err);
    /* Stores the ns between two timed events that have passed, measured by the GPU's clock. The result is negative if
     * `to` passed first. CUDA returns a float of milliseconds, whose resolution is 0.5 us at best and one part in 16
     * million, so use events that are close together. Returns -EINVAL if either event has not passed. */
    int (*elapsed)(struct weir_gpu *gpu, void *from, void *to, int64_t *ns, struct weir_err *err);

    /* Queues a copy. Unpinned host memory is copied slowly, and possibly before this returns. */
    int (*copy_in)(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream, struct weir_err *err);
    int (*copy_out)(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream, struct weir_err *err);
    int (*copy_within)(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream,
                       struct weir_err *err);
    /* Returns -EINVAL if a number is out of range. The contents of sources, taps and values are not checked. */
    int (*prepare)(struct weir_gpu *gpu, const struct weir_gpu_prepare *prepare, void *stream, struct weir_err *err);
    /* Queues a kernel in which one thread reads the GPU's ns clock n times in a row, for weir_kernel_clock_step. `to`
     * must be in GPU memory. Call this before the first launch with clocks, because it loads the kernels that have
     * clocks. */
    int (*clock_samples)(struct weir_gpu *gpu, uint64_t *to, uint32_t n, void *stream, struct weir_err *err);
    /* Queues a kernel that has one small block per SM and lasts at least ns. */
    int (*busy)(struct weir_gpu *gpu, uint64_t ns, void *stream, struct weir_err *err);
};

#endif
