/* frame_cache.h: keeps decoded frames, as laid out in a batch, by (episode, camera, t) within a budget of bytes. Frames
 * are never evicted; frames that do not fit are not kept. Lock-free; any thread may take and keep at any time. */
#ifndef WEIR_PIPELINE_SAMPLES_FRAME_CACHE_H
#define WEIR_PIPELINE_SAMPLES_FRAME_CACHE_H

#include "weir/base.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct weir_frame_cache {
    uint8_t *memory;          /* one mapping; NULL = the cache is empty and keeps nothing */
    uint64_t memory_bytes;    /* at most the budget */
    uint64_t *first;          /* per episode, the index of its first step */
    _Atomic uint64_t *frames; /* per frame, its offset in memory; below 64: other states */
    int cameras;
    const size_t *image_bytes;          /* per camera; borrowed */
    uint64_t budget_bytes, table_bytes; /* as requested; part of it used by frames and first */
    uint64_t all_frames, all_bytes;     /* of the dataset, and the budget that would keep all */
    alignas(64) _Atomic uint64_t used_bytes, kept,
        seen; /* bytes including tables; frames kept; distinct frames requested */
};

/* Maps a cache of at most budget_bytes including tables (0: keeps nothing) for episodes with these numbers of steps.
 * Returns -ENOMEM when the memory is not free for each of the processes on this machine. A budget too small for one
 * frame keeps nothing. */
int weir_frame_cache_open(struct weir_frame_cache *cache, uint64_t budget_bytes, const int *steps, int episodes,
                          const size_t *image_bytes, int cameras, int processes, struct weir_err *err);
/* Accepts a zeroed cache. */
void weir_frame_cache_close(struct weir_frame_cache *cache);

/* Whether the cache holds the frame. Any thread. */
bool weir_frame_cache_has(const struct weir_frame_cache *cache, int episode, int camera, int t);
/* Copies the frame's image_bytes[camera] bytes to memory; false when the cache does not hold it. */
bool weir_frame_cache_take(struct weir_frame_cache *cache, int episode, int camera, int t, void *to);
/* Keeps a copy of the frame if there is room. Only for good frames, under their own indexes. */
void weir_frame_cache_keep(struct weir_frame_cache *cache, int episode, int camera, int t, const void *pixels);

#endif
