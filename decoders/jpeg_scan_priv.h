/* jpeg_scan_priv.h: decodes the entropy-coded data of a baseline JPEG into blocks, without libjpeg; used by
 * jpeg_fast.c. */
#ifndef WEIR_DECODERS_JPEG_SCAN_PRIV_H
#define WEIR_DECODERS_JPEG_SCAN_PRIV_H

#include "decoders/jpeg_huffman.h"

#include <stddef.h>

enum {
    WEIR_JPEG_BLOCK = 64,
    WEIR_JPEG_BLOCK_SLACK = 16,     /* after a block: destination of writes that are not coefficients */
    WEIR_JPEG_BLOCKS = 10,          /* maximum per MCU */
    WEIR_JPEG_COMPONENTS = 4,       /* maximum per scan */
    WEIR_JPEG_SEGMENT_SLACK = 1024, /* after a segment: may be read by a block and a refill */
};

/* Bits of a segment: the data between two restart markers, without stuffed zeros. */
struct weir_jpeg_bits {
    uint64_t next;  /* upcoming bits, from the top */
    uint64_t count; /* how many of them are valid */
    const uint8_t *at;
};

struct weir_jpeg_component {
    const struct weir_huffman *dc, *ac;
    const uint8_t *order; /* coefficient order of its blocks */
    int last_dc;
};

struct weir_jpeg_scan {
    const uint8_t *source, *source_end; /* position after the segment, at a marker; end of the frame */
    uint8_t *segment;                   /* room for the whole source plus WEIR_JPEG_SEGMENT_SLACK */
    const uint8_t *segment_end;
    struct weir_jpeg_bits bits;
    int n_components;
    struct weir_jpeg_component components[WEIR_JPEG_COMPONENTS];
    /* blocks of an MCU: their components, their coefficients, and the zigzag index after the last one that may be
     * nonzero (1: DC only) */
    int n_blocks;
    uint8_t component_of[WEIR_JPEG_BLOCKS];
    int ends[WEIR_JPEG_BLOCKS];
    /* memory to prefetch while decoding: a cache line per row of three planes. A few rows before each block, because
     * the CPU has few line fill buffers. */
    const float *fetch[3];
    size_t fetch_stride;
    int fetch_rows;
    _Alignas(64) int16_t blocks[WEIR_JPEG_BLOCKS][WEIR_JPEG_BLOCK + WEIR_JPEG_BLOCK_SLACK];
};

#if defined(__x86_64__)
/* Whether the CPU supports AVX2, BMI and BMI2. */
bool weir_jpeg_scan_cpu(void);

/* Copies the segment at source without its stuffed zeros and advances source to the marker after it. Returns false when
 * the frame ends before a marker, or fill bytes precede it. */
bool weir_jpeg_unstuff(struct weir_jpeg_scan *scan);

/* Decodes the blocks of the next MCU. Returns false when the data is irregular. */
bool weir_jpeg_mcu(struct weir_jpeg_scan *scan);

/* Coefficient orders of a block: position for each zigzag index, by rows or as weir_jpeg_idct requires. DC is first. */
const uint8_t *weir_jpeg_natural_order(void);
const uint8_t *weir_jpeg_idct_order(void);

/* Inverse DCT of a block times a table, both in the order of pairs and aligned to 32 bytes, to 8 x 8 samples. */
void weir_jpeg_idct(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);
/* The same for a block with only DC. */
void weir_jpeg_idct_dc(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);
#endif

#endif
