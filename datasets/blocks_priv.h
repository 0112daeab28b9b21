/* blocks_priv.h: frames in chunks that are filtered or that split frames. The chunks that cover the same rows form a
 * block, and all frames of a block are unpacked together. A row of any rank is treated as a box of (outer, middle,
 * inner bytes). */
#ifndef WEIR_DATASETS_BLOCKS_PRIV_H
#define WEIR_DATASETS_BLOCKS_PRIV_H

#include "datasets/chunks/chunk_grid.h"
#include "datasets/chunks/filters.h"

struct weir_blocks {
    /* shape of the array as stored */
    struct weir_chunk_grid grid;
    struct weir_filters filters;
    uint8_t fill[16]; /* fill value of one element; zeros if an element is larger */
    uint32_t before;  /* rows of the first block that precede the episode */
    /* Values per pixel, one byte each: 1 (gray), 3, or 4 (the last is alpha). Frames are converted to interleaved RGB.
     * 0: rows are delivered as stored. */
    uint32_t channels;
    bool is_planar; /* channels are stored one after another, not interleaved */
    /* Each chunk is a separate file: chunk i is part first_part + i of the episode's file (parts.h). */
    bool in_parts;
    uint32_t first_part;
    struct weir_chunk *chunks;
    /* The fields below are derived from the grid by weir_blocks_init. */
    uint32_t n_chunks;
    uint32_t chunk_bytes; /* size of an unpacked chunk */
    uint32_t per_block;   /* chunks per block */
    uint32_t rows;        /* frames per block */
    size_t row_bytes;     /* size of a frame */
    uint64_t row[3], box[3],
        count[3]; /* extent of a row, extent of a chunk, and number of chunks, along each dimension */
};

/* Derives the fields above from blocks->grid. Returns false for unsupported shapes: rank over 4, chunks or frames of 1
 * GiB or more, rows that do not divide into pixels of `channels` values. The caller allocates blocks->chunks, which has
 * n_chunks elements. */
bool weir_blocks_init(struct weir_blocks *blocks);
void weir_blocks_close(struct weir_blocks *blocks);

/* Returns the size of the largest chunk as stored. */
uint32_t weir_blocks_stored_max(const struct weir_blocks *blocks);

/* Copies the part of row t that lies in chunk i of its block to its place in frame. Rows are counted from the first row
 * of the first block. chunk: the unpacked chunk, or NULL for the fill value. */
void weir_blocks_clip(const struct weir_blocks *blocks, uint32_t i, const uint8_t *chunk, uint64_t t, uint8_t *frame);

#endif
