/* frame_cache.h: decoded frames, as they lie in a batch, kept by (episode, camera, t) within a budget of bytes. What is
 * in stays in; what does not fit any more is not taken. Any thread may take and keep at any time; no locks. */
#ifndef WEIR_PIPELINE_FRAME_CACHE_H
#define WEIR_PIPELINE_FRAME_CACHE_H

#include "weir/base.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct weir_frame_cache {
    uint8_t *memory;          /* one mapping for all of it; NULL = nothing is kept */
    uint64_t memory_bytes;    /* at most the budget */
    uint64_t *first;          /* of each episode, the number of its first step */
    _Atomic uint64_t *frames; /* of each frame: where it lies, from memory; below 64 other states */
    int cameras;
    const size_t *image_bytes;                           /* of each camera; borrowed */
    uint64_t budget_bytes, table_bytes;                  /* as asked; of it, what frames and first take */
    uint64_t all_frames, all_bytes;                      /* of the dataset, and what it takes to keep them all */
    alignas(64) _Atomic uint64_t used_bytes, kept, seen; /* tables included; frames in it; distinct frames asked for */
};

/* Maps the memory of a cache of at most budget_bytes, tables included (0: keeps nothing), for episodes of so many
 * steps. -ENOMEM when not that much is free, for each of so many processes that take as much on this machine. A budget
 * that has no capacity for a frame keeps nothing. */
int weir_frame_cache_open(struct weir_frame_cache *cache, uint64_t budget_bytes, const int *steps, int episodes,
                          const size_t *image_bytes, int cameras, int processes, struct weir_err *err);
/* Accepts a cache of zeros. */
void weir_frame_cache_close(struct weir_frame_cache *cache);

/* True when take would find it. Any thread. */
bool weir_frame_cache_has(const struct weir_frame_cache *cache, int episode, int camera, int t);
/* Copies the frame, image_bytes[camera] of it, to memory; false when it is not in the cache. */
bool weir_frame_cache_take(struct weir_frame_cache *cache, int episode, int camera, int t, void *to);
/* Keeps a copy of the frame if there is capacity left. Only good frames, under their own numbers. */
void weir_frame_cache_keep(struct weir_frame_cache *cache, int episode, int camera, int t, const void *pixels);

#endif
