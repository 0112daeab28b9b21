/* frame_cache.h: keeps decoded frames, in the format of a batch, by (episode, camera, t) within a budget of bytes.
 * Frames are never evicted, and frames that do not fit are not kept. The cache is lock-free, so any thread may take and
 * keep frames at any time. */
#ifndef WEIR_PIPELINE_SAMPLES_FRAME_CACHE_H
#define WEIR_PIPELINE_SAMPLES_FRAME_CACHE_H

#include "weir/base.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct weir_frame_cache {
    uint8_t *memory;          /* a single mapping; NULL = the cache keeps nothing */
    uint64_t memory_bytes;    /* at most the budget */
    uint64_t *first;          /* per episode, the index of its first step */
    _Atomic uint64_t *frames; /* per frame, its offset in memory; below 64 = a state */
    int cameras;
    const size_t *image_bytes;          /* per camera; borrowed */
    uint64_t budget_bytes, table_bytes; /* as requested; size of the arrays frames and first */
    uint64_t all_frames, all_bytes;     /* number of frames in the dataset; budget that would keep all of them */
    alignas(64) _Atomic uint64_t used_bytes, kept,
        seen; /* bytes in use, including tables; kept frames; distinct frames requested */
};

/* Maps a cache of at most budget_bytes, including tables, for episodes with these numbers of steps. If the budget is 0
 * or too small for one frame, the cache keeps nothing. Returns -ENOMEM if there is too little free memory for each of
 * the processes on this machine. */
int weir_frame_cache_open(struct weir_frame_cache *cache, uint64_t budget_bytes, const int *steps, int episodes,
                          const size_t *image_bytes, int cameras, int processes, struct weir_err *err);
/* Accepts a zeroed cache. */
void weir_frame_cache_close(struct weir_frame_cache *cache);

/* Returns whether the cache contains the frame. Any thread. */
bool weir_frame_cache_has(const struct weir_frame_cache *cache, int episode, int camera, int t);
/* Copies the frame's image_bytes[camera] bytes to `to`, or returns false if the cache does not contain the frame. */
bool weir_frame_cache_take(struct weir_frame_cache *cache, int episode, int camera, int t, void *to);
/* Keeps a copy of the frame if there is room. The frame must be good, and not a substitute for another one. */
void weir_frame_cache_keep(struct weir_frame_cache *cache, int episode, int camera, int t, const void *pixels);

#endif
