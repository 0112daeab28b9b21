/* pinned_side.h: raw frames from the page cache to a GPU without a loader: reads into pinned memory by threads, copies
 * over the bus, and both at once. */
#ifndef WEIR_BENCH_PINNED_SIDE_H
#define WEIR_BENCH_PINNED_SIDE_H

#include "pipeline/gpu/gpu_ops.h"

#include <stddef.h>
#include <stdint.h>

/* Frames of 640x480x3. A block has the size of a batch of 32 samples with 4 cameras; the ring is larger than the CPU
 * caches. */
enum {
    PINNED_FRAME_BYTES = 640 * 480 * 3,
    PINNED_BLOCK_FRAMES = 128,
    PINNED_BLOCKS = 8,
    PINNED_FLYING = 2,
    PINNED_THREADS_MAX = 1024
};
#define PINNED_BLOCK_BYTES ((size_t)PINNED_BLOCK_FRAMES * PINNED_FRAME_BYTES)

/* Frame-sized pieces of files. */
struct pinned_frames {
    int n, n_files;
    int *files; /* open descriptors, owned */
    struct pinned_place {
        int file; /* index into files */
        int64_t offset;
    } * places;
};

/* data: a file, or a folder whose direct files are taken in name order. Reads all of it once, into the page cache.
 * Returns -ENODATA when there is no complete frame. */
int pinned_frames_open(struct pinned_frames *frames, const char *data, struct weir_err *err);
void pinned_frames_close(struct pinned_frames *frames);

struct pinned_ring {
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    uint8_t *memory; /* PINNED_BLOCKS blocks of pinned host memory */
    uint8_t *target; /* PINNED_FLYING blocks of GPU memory */
    void *stream, *events[PINNED_FLYING];
};

/* Borrows the GPU until close. */
int pinned_ring_open(struct pinned_ring *ring, const struct weir_gpu_ops *ops, struct weir_gpu *gpu,
                     struct weir_err *err);
void pinned_ring_close(struct pinned_ring *ring);

enum pinned_kind {
    PINNED_READ, /* threads read frames into the ring */
    PINNED_BUS,  /* blocks of the ring are copied to the GPU, PINNED_FLYING at a time */
    PINNED_BOTH, /* a block is copied when full, and refilled after its copy */
    PINNED_KINDS
};
const char *pinned_kind_name(enum pinned_kind kind);

/* Stores bytes per second in *rate, over at least the given time and four blocks. Frames are read in scattered order.
 * Returns -EIO when the GPU is lost or a file cannot be read, -EAGAIN when a thread cannot be started. */
int pinned_run(const struct pinned_ring *ring, const struct pinned_frames *frames, enum pinned_kind kind, int threads,
               double seconds, double *rate, struct weir_err *err);

#endif
