/* gpu_ops.h: what a GPU has to offer the pipeline; implemented by the CUDA module (gpu_cuda.c), and by a stand-in on
 * the CPU for tests.
 *
 * Streams and events are CUDA's own handles, passed as void *, so that a program's stream is one of ours and the other
 * way round; NULL and 1 are CUDA's legacy default stream, 2 is that of the calling thread. Calls return 0 or -errno
 * with err set: -ENODEV no such GPU, -ENOMEM the GPU's (or pinned) memory is used up, -EIO the GPU is lost or a kernel
 * faulted; after -EIO everything else fails the same way. What is queued on a stream runs in order, after the call has
 * returned. Any thread, each stream by one thread at a time. */
#ifndef WEIR_PIPELINE_GPU_GPU_OPS_H
#define WEIR_PIPELINE_GPU_GPU_OPS_H

#include "weir/base.h"
#include "weir/kernel_clock.h"

#include <stddef.h>
#include <stdint.h>

struct weir_gpu; /* a GPU in use: its primary context, kernels loaded */

struct weir_gpu_info {
    int number;
    char name[128];
    char pci[32];     /* "0000:3b:00.0" */
    int major, minor; /* compute capability */
    uint64_t total_bytes, free_bytes;
    int sms, copy_engines, jpeg_engines; /* jpeg_engines -1: not known */
    int pcie_generation, pcie_width;     /* as linked now; 0: not known */
    int driver_version, runtime_version; /* 13000 = 13.0 */
};

/* ---- what prepares a batch ---- */

/* How a decoded image lies in the GPU's memory. */
enum weir_gpu_source_kind {
    WEIR_GPU_RGB,    /* plane[0]: height x width x 3 */
    WEIR_GPU_GRAY,   /* plane[0]: height x width; R = G = B */
    WEIR_GPU_YUV444, /* plane[0..2]: Y, Cb, Cr of a JPEG, chroma as large as Y */
    WEIR_GPU_YUV422, /* half as wide */
    WEIR_GPU_YUV420, /* half as wide and half as high */
    WEIR_GPU_YUV440, /* half as high */
};

/* One image to be prepared. Chroma planes are ceil(width / 2) x ceil(height / 2) samples, as their kind says. */
struct weir_gpu_source {
    const uint8_t *plane[3]; /* on the GPU */
    uint32_t pitch[3];       /* bytes from row to row */
    uint32_t kind;           /* enum weir_gpu_source_kind */
};

enum weir_gpu_dtype { WEIR_GPU_U8, WEIR_GPU_F32, WEIR_GPU_F16, WEIR_GPU_BF16 };

/* The taps of one direction, as decoders/ makes them: pixel i of the result is the weighted sum of source pixels
 * first[i] .. first[i] + n[i] - 1, weights most for each. On the GPU. */
struct weir_gpu_taps {
    const int32_t *first, *n;
    const float *weights;
    int32_t most;
};

/* Stages of the kernel that prepares, for its clocks (weir/kernel_clock.cuh), and iterations that a table has room for.
 * The first iteration of a block is the values, each later one is 256 items of one image: 4 pixels of a row, or one
 * where images are resampled. */
enum weir_gpu_prepare_stage {
    WEIR_GPU_PREPARE_VALUES, /* what values become in the block's shared memory */
    WEIR_GPU_PREPARE_PIXELS, /* sources are read, to RGB, resampled */
    WEIR_GPU_PREPARE_STORE,  /* looked up and stored, as far as the SM waits for it */
    WEIR_GPU_PREPARE_STAGES,
};
enum { WEIR_GPU_PREPARE_ITERATIONS = 64 };

/* n images of one size, one after the other, become a dense tensor. The results are those of the CPU, bit for bit: YUV
 * to RGB as libjpeg does it (jdcolor.c's fixed point of 16 bits; chroma by its triangle filter, "fancy upsampling",
 * jdsample.c); resampling as decoders/resample.c (products and sums each rounded, no fma; rows first, then columns;
 * half added, cut to u8); then what values says, rounded to nearest even for f16 and bf16. */
struct weir_gpu_prepare {
    const struct weir_gpu_source *sources; /* on the GPU */
    int n;
    int run, stride, first;    /* image i is image i / run * stride + first + i % run of the tensor; run 0: image i */
    int width, height;         /* of the sources */
    int x, y;                  /* the crop's first pixel, without taps */
    int out_width, out_height; /* of the images in the tensor */
    const struct weir_gpu_taps *columns,
        *rows;   /* host structures; NULL: out_width x out_height pixels from (x, y) on */
    bool planar; /* nchw: 3 planes an image; else pixels of 3 */
    bool bgr;    /* channel 0 of the result is blue */
    enum weir_gpu_dtype dtype;
    const float *values; /* on the GPU: 3 x 256, what each value of each of the result's channels becomes; not for u8 */
    void *tensor;        /* on the GPU; aligned to 256 bytes */
    struct weir_kernel_clock_table clocks; /* memory NULL: the kernel without clocks */
};

struct weir_gpu_ops {
    /* GPUs there are: 0 with *n, or -ENODEV and why there is none (no driver, ...). Creates no context. */
    int (*count)(int *n, struct weir_err *err);
    /* Facts; memory sizes need a context and are 0 without one (measure false). measure: creates it. */
    int (*describe)(int number, bool measure, struct weir_gpu_info *info, struct weir_err *err);

    /* Takes the GPU into use; the primary context, shared with the program's own CUDA code. */
    int (*open)(struct weir_gpu **gpu, int number, struct weir_err *err);
    /* All streams and events of it were destroyed, all memory freed. Accepts NULL. */
    void (*close)(struct weir_gpu **gpu);
    int (*memory)(struct weir_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes, struct weir_err *err);

    /* Pins memory of the host that is there already (page-aligned), and lets go of it: nothing queued may use it any
     * more. -ENOMEM: it cannot be pinned. */
    int (*pin)(struct weir_gpu *gpu, void *memory, size_t bytes, struct weir_err *err);
    void (*unpin)(struct weir_gpu *gpu, void *memory);
    int (*alloc)(struct weir_gpu *gpu, size_t bytes, void **memory, struct weir_err *err);
    void (*free)(struct weir_gpu *gpu, void *memory); /* waits for all that is queued on the GPU */

    /* urgent: its kernels go before those of streams that are not. Never synchronises with the default stream. */
    int (*stream_new)(struct weir_gpu *gpu, bool urgent, void **stream, struct weir_err *err);
    void (*stream_free)(struct weir_gpu *gpu, void *stream);
    /* timed: weir_gpu_ops.elapsed works on it. Waiting for it sleeps, it does not spin. */
    int (*event_new)(struct weir_gpu *gpu, bool timed, void **event, struct weir_err *err);
    void (*event_free)(struct weir_gpu *gpu, void *event);
    int (*record)(struct weir_gpu *gpu, void *event, void *stream, struct weir_err *err);
    /* What is queued on the stream from now on waits for the event's last record. */
    int (*stream_wait)(struct weir_gpu *gpu, void *stream, void *event, struct weir_err *err);
    /* 1: has passed (or was never recorded), 0: not yet; negative: see above. */
    int (*passed)(struct weir_gpu *gpu, void *event, struct weir_err *err);
    /* Blocks until it has passed. */
    int (*wait)(struct weir_gpu *gpu, void *event, struct weir_err *err);
    /* Between two timed events that have passed, ns, by the GPU's clock; negative when to was first. CUDA has it as a
     * float of milliseconds: 0.5 us at best, and one part in 16 million, so take it between events that are near each
     * other. -EINVAL: they have not both passed. */
    int (*elapsed)(struct weir_gpu *gpu, void *from, void *to, int64_t *ns, struct weir_err *err);

    /* Queued. Host memory that is not pinned is copied all the same, slowly, and maybe before the call returns. */
    int (*copy_in)(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream, struct weir_err *err);
    int (*copy_out)(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream, struct weir_err *err);
    int (*copy_within)(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream,
                       struct weir_err *err);
    /* -EINVAL: numbers that make no sense. What sources, taps and values hold is not looked at. */
    int (*prepare)(struct weir_gpu *gpu, const struct weir_gpu_prepare *prepare, void *stream, struct weir_err *err);
    /* n readings of the GPU's ns clock, one after the other by one thread, for weir_kernel_clock_step. to: on the GPU.
     * Called before the first launch with clocks, whose kernels it loads. */
    int (*clock_samples)(struct weir_gpu *gpu, uint64_t *to, uint32_t n, void *stream, struct weir_err *err);
    /* A kernel of a small block for every SM that lasts so long, and no less. */
    int (*busy)(struct weir_gpu *gpu, uint64_t ns, void *stream, struct weir_err *err);
};

#endif
