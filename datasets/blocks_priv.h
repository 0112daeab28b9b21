/* blocks_priv.h: frames in chunks that are filtered or that cut frames. All chunks over the same rows form a block,
 * whose frames are unpacked together. Rows of any rank are treated as boxes of (outer, middle, inner bytes). */
#ifndef WEIR_DATASETS_BLOCKS_PRIV_H
#define WEIR_DATASETS_BLOCKS_PRIV_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/chunks/filters.h"

struct weir_blocks {
    /* as stored */
    struct weir_chunk_grid grid;
    struct weir_filters filters;
    uint8_t fill[16]; /* fill value of one element; zeros for larger elements */
    uint32_t before;  /* rows of the first block that precede the episode */
    /* Values per pixel, one byte each: 1 (gray), 3 or 4 (the last is alpha); frames become interleaved RGB. 0: rows are
     * delivered as stored. */
    uint32_t channels;
    bool is_planar; /* channel by channel; else interleaved */
    /* Each chunk is a file of its own: chunk i is part first_part + i of the episode's file (parts.h). */
    bool in_parts;
    uint32_t first_part;
    struct weir_chunk *chunks;
    /* derived from the grid by weir_blocks_init */
    uint32_t n_chunks;
    uint32_t chunk_bytes;              /* of one chunk, unpacked */
    uint32_t per_block;                /* chunks */
    uint32_t rows;                     /* frames of a block */
    size_t row_bytes;                  /* of a frame */
    uint64_t row[3], box[3], count[3]; /* a row's extent, a chunk's part of it, chunks along each */
};

/* Derives the fields above from blocks->grid. Returns false for unsupported shapes: rank over 4, chunks or frames of 1
 * GiB or more, rows that are not pixels of `channels` values. The caller allocates chunks, n_chunks of them. */
bool weir_blocks_init(struct weir_blocks *blocks);
void weir_blocks_close(struct weir_blocks *blocks);

/* Returns the size of the largest stored chunk. */
uint32_t weir_blocks_stored_max(const struct weir_blocks *blocks);

/* Copies the part of row t (counted from the first block's first row) that lies in piece i of its block to its place in
 * frame. chunk: the unpacked piece; NULL = the fill value. */
void weir_blocks_clip(const struct weir_blocks *blocks, uint32_t i, const uint8_t *chunk, uint64_t t, uint8_t *frame);

#endif
