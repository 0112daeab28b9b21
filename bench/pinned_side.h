/* pinned_side.h: moves raw frames from the page cache to a GPU without a loader. Threads read into pinned memory, the
 * bus copies to the GPU, or both happen simultaneously. */
#ifndef WEIR_BENCH_PINNED_SIDE_H
#define WEIR_BENCH_PINNED_SIDE_H

#include "pipeline/gpu/gpu_ops.h"

#include <stddef.h>
#include <stdint.h>

/* A frame is 640x480x3. A block has the size of a batch of 32 samples with 4 cameras. The ring is larger than the CPU
 * caches. */
enum {
    PINNED_FRAME_BYTES = 640 * 480 * 3,
    PINNED_BLOCK_FRAMES = 128,
    PINNED_BLOCKS = 8,
    PINNED_FLYING = 2,
    PINNED_THREADS_MAX = 1024
};
#define PINNED_BLOCK_BYTES ((size_t)PINNED_BLOCK_FRAMES * PINNED_FRAME_BYTES)

/* Frames, located as frame-sized pieces of files. */
struct pinned_frames {
    int n, n_files;
    int *files; /* owned file descriptors */
    struct pinned_place {
        int file; /* index into files */
        int64_t offset;
    } * places;
};

/* Locates the frames. data is a file, or a folder whose files are used in name order, without subfolders. Reads all
 * frames once, so that they are in the page cache. Returns -ENODATA if there is no complete frame. */
int pinned_frames_open(struct pinned_frames *frames, const char *data, struct weir_err *err);
void pinned_frames_close(struct pinned_frames *frames);

struct pinned_ring {
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    uint8_t *memory; /* PINNED_BLOCKS blocks of pinned host memory */
    uint8_t *target; /* PINNED_FLYING blocks of GPU memory */
    void *stream, *events[PINNED_FLYING];
};

/* Opens a ring, which uses the GPU until pinned_ring_close. */
int pinned_ring_open(struct pinned_ring *ring, const struct weir_gpu_ops *ops, struct weir_gpu *gpu,
                     struct weir_err *err);
void pinned_ring_close(struct pinned_ring *ring);

enum pinned_kind {
    PINNED_READ, /* threads read frames into the ring, without copies */
    PINNED_BUS,  /* blocks are copied to the GPU without reading, PINNED_FLYING at a time */
    PINNED_BOTH, /* each block is copied when it is full, and refilled after the copy */
    PINNED_KINDS
};
const char *pinned_kind_name(enum pinned_kind kind);

/* Runs for at least the given time and four blocks, and stores the bytes per second in *rate. Frames are read in a
 * scattered order. Returns -EIO if the GPU is lost or a file is unreadable, or -EAGAIN if a thread fails to start. */
int pinned_run(const struct pinned_ring *ring, const struct pinned_frames *frames, enum pinned_kind kind, int threads,
               double seconds, double *rate, struct weir_err *err);

#endif
