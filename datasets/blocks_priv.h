/* blocks_priv.h: frames in chunks that are filtered or that cut frames. All chunks over the same rows are a block,
 * whose frames are unpacked together; rows of any rank are treated as boxes of (outer, middle, inner bytes). */
#ifndef WEIR_DATASETS_BLOCKS_PRIV_H
#define WEIR_DATASETS_BLOCKS_PRIV_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/chunks/filters.h"

struct weir_blocks {
    /* as stored */
    struct weir_chunk_grid grid;
    struct weir_filters filters;
    uint8_t fill[16]; /* one element of what was never written; zeros for larger ones */
    uint32_t before;  /* rows of the first block that lie before the episode */
    /* Rows are pixels of 1 (gray), 3 or 4 (the last is alpha) values of one byte: frames become interleaved RGB. 0:
     * frames are the rows as they are. */
    uint32_t channels;
    bool is_planar; /* all values of one channel, of the next, ...; else those of one pixel */
    /* Each chunk is a file of its own: chunk i is part first_part + i of the episode's file (parts.h). */
    bool in_parts;
    uint32_t first_part;
    struct weir_chunk *chunks;
    /* worked out of the grid by weir_blocks_init */
    uint32_t n_chunks;
    uint32_t chunk_bytes;              /* of one chunk, unpacked */
    uint32_t per_block;                /* chunks */
    uint32_t rows;                     /* frames of a block */
    size_t row_bytes;                  /* of a frame */
    uint64_t row[3], box[3], count[3]; /* a row's extent, a chunk's part of it, chunks along each */
};

/* Works out the derived fields of blocks->grid; false when the shape is one that is not handled here: rank over 4,
 * chunks or frames of 1 GiB and more, rows that are not pixels of so many channels. chunks is allocated by the caller,
 * n_chunks of them. */
bool weir_blocks_init(struct weir_blocks *blocks);
void weir_blocks_close(struct weir_blocks *blocks);

/* Largest chunk as stored. */
uint32_t weir_blocks_stored_max(const struct weir_blocks *blocks);

/* Copies what row t (from the first one of the first block) has in piece i of its block (an unpacked chunk; NULL = the
 * fill value) to its place in frame. */
void weir_blocks_clip(const struct weir_blocks *blocks, uint32_t i, const uint8_t *chunk, uint64_t t, uint8_t *frame);

#endif
