/* facts.h: what a loader uses: how many workers and slots, which GPU, which engines, how much memory, and how long
 * opening took. weir_loader_facts (loader.h) fills it. */
#ifndef WEIR_PIPELINE_FACTS_H
#define WEIR_PIPELINE_FACTS_H

#include "datasets/dataset.h"
#include "decoders/decoder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the loader uses: where the configuration said automatic, the choice. */
struct weir_loader_facts {
    int workers, prefetch, slots;
    int number;       /* config.number */
    int lendable;     /* batches that may be out at a time */
    int cores;        /* this process's part of the usable cores */
    int device;       /* the GPU's number; -1 = none */
    int gpus;         /* that the process sees, where the local rank chose among them; 0 = it did not */
    char gpu[128];    /* its name; "" = none */
    size_t gpu_bytes; /* of its memory, taken */
    size_t slot_bytes, index_bytes, extent_max;
    int image_width[WEIR_CAMERAS_MAX], image_height[WEIR_CAMERAS_MAX]; /* in a batch */
    struct weir_view views[WEIR_CAMERAS_MAX];
    bool whole[WEIR_CAMERAS_MAX]; /* images go into a batch as they are stored */
    int images_per_sample;        /* cameras x history */
    int files, files_from_index;
    double index_s;       /* opening the dataset */
    double open_s;        /* all of weir_loader_open */
    double first_batch_s; /* from its call to the first batch that weir_loader_next gave out; 0 before */
    const char *io_requested, *io_used, *io_why; /* engines, and a sentence (empty when it was asked for); lent */
    const char *io_features;                     /* what the kernel gave the engine; may be empty */
    const char *decoder_requested, *decoder_used, *decoder_why; /* the same for decoders */
    int io_depth;                /* reads in flight ahead of the workers; 0 = no read-ahead */
    size_t io_pool_bytes;        /* memory of read-ahead */
    double io_cached;            /* fraction of the dataset in the page cache before the first read,
                                    of 64 sampled frames; -1 = not known */
    double cold_stayed;          /* config.cold: fraction of the files that stayed all the same */
    uint64_t cold_bytes;         /* bytes of these files */
    uint64_t cache_budget_bytes; /* of the decode cache, as asked for; 0 = there is none */
    uint64_t cache_mapped_bytes; /* of it, reserved: not more than all frames take; 0 when not one fits */
    uint64_t cache_frames_all, cache_bytes_all; /* the dataset's frames, and the budget that would keep them all */
};

/* What frames in chunks that are compressed or cut frames have cost. All chunks over the same frames are a block. */
struct weir_chunk_counts {
    uint64_t frames, blocks, chunks;      /* frames put together, from so many loads of blocks, of so many chunks */
    uint64_t frame_bytes, unpacked_bytes; /* of the frames, and of the chunks unpacked for them */
    uint64_t stored_bytes, read_bytes;    /* the frames' part of their blocks as stored, and what was read */
};

#endif
