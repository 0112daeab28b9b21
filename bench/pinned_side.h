/* pinned_side.h: raw frames on their way from the page cache to a GPU, without a loader: threads that read them into
 * pinned memory, the copies over the bus, and both at once. */
#ifndef WEIR_BENCH_PINNED_SIDE_H
#define WEIR_BENCH_PINNED_SIDE_H

#include "pipeline/gpu/gpu_ops.h"

#include <stddef.h>
#include <stdint.h>

/* Frames of 640x480x3; blocks are what a batch of 32 samples of 4 cameras is; the ring is larger than a cache. */
enum {
    PINNED_FRAME_BYTES = 640 * 480 * 3,
    PINNED_BLOCK_FRAMES = 128,
    PINNED_BLOCKS = 8,
    PINNED_FLYING = 2,
    PINNED_THREADS_MAX = 1024
};
#define PINNED_BLOCK_BYTES ((size_t)PINNED_BLOCK_FRAMES * PINNED_FRAME_BYTES)

/* Pieces of files, each as large as a frame. */
struct pinned_frames {
    int n, n_files;
    int *files; /* open, owned */
    struct pinned_place {
        int file; /* number */
        int64_t offset;
    } * places;
};

/* data: a file, or a folder whose files (not those of folders in it) are taken in order of their names. Reads all of
 * it once, so that it is in the page cache. -ENODATA: there is no whole frame. */
int pinned_frames_open(struct pinned_frames *frames, const char *data, struct weir_err *err);
void pinned_frames_close(struct pinned_frames *frames);

struct pinned_ring {
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    uint8_t *memory; /* PINNED_BLOCKS blocks of the host, pinned */
    uint8_t *target; /* PINNED_FLYING blocks of the GPU */
    void *stream, *events[PINNED_FLYING];
};

/* Borrows the GPU until it is closed. */
int pinned_ring_open(struct pinned_ring *ring, const struct weir_gpu_ops *ops, struct weir_gpu *gpu,
                     struct weir_err *err);
void pinned_ring_close(struct pinned_ring *ring);

enum pinned_kind {
    PINNED_READ, /* threads read frames into the ring */
    PINNED_BUS,  /* blocks of the ring are copied to the GPU, PINNED_FLYING of them queued */
    PINNED_BOTH, /* a block is copied when it is full, and read into again when it was copied */
    PINNED_KINDS
};
const char *pinned_kind_name(enum pinned_kind kind);

/* Bytes a second over at least this long and four blocks, in *rate. Frames are read in a scattered order. -EIO: the GPU
 * is lost, or a file cannot be read; -EAGAIN: a thread cannot be started. */
int pinned_run(const struct pinned_ring *ring, const struct pinned_frames *frames, enum pinned_kind kind, int threads,
               double seconds, double *rate, struct weir_err *err);

#endif
