/* jpeg_scan_priv.h: the entropy-coded data of a baseline JPEG and its blocks, without libjpeg: what jpeg_fast.c puts in
 * its place. */
#ifndef WEIR_DECODERS_JPEG_SCAN_PRIV_H
#define WEIR_DECODERS_JPEG_SCAN_PRIV_H

#include "decoders/jpeg_huffman.h"

#include <stddef.h>

enum {
    WEIR_JPEG_BLOCK = 64,
    WEIR_JPEG_BLOCK_SLACK = 16,     /* behind a block: what is no coefficient of it is written there */
    WEIR_JPEG_BLOCKS = 10,          /* in an MCU, at most */
    WEIR_JPEG_COMPONENTS = 4,       /* in a scan, at most */
    WEIR_JPEG_SEGMENT_SLACK = 1024, /* behind a segment: what a block and a refill may read */
};

/* Bits of a segment: what lies between two restart markers, its stuffed zeros taken out. */
struct weir_jpeg_bits {
    uint64_t next;  /* the next ones, from the top on */
    uint64_t count; /* of them that count */
    const uint8_t *at;
};

struct weir_jpeg_component {
    const struct weir_huffman *dc, *ac;
    const uint8_t *order; /* of its blocks */
    int last_dc;
};

struct weir_jpeg_scan {
    const uint8_t *source, *source_end; /* what was not copied to the segment yet: a marker; the end of the frame */
    uint8_t *segment;                   /* room for all of the source, and WEIR_JPEG_SEGMENT_SLACK */
    const uint8_t *segment_end;
    struct weir_jpeg_bits bits;
    int n_components;
    struct weir_jpeg_component components[WEIR_JPEG_COMPONENTS];
    /* the blocks of an MCU: whose they are, their coefficients, and the zigzag index behind the last one that may be
     * other than 0 (1: DC only) */
    int n_blocks;
    uint8_t component_of[WEIR_JPEG_BLOCKS];
    int ends[WEIR_JPEG_BLOCKS];
    /* what is fetched meanwhile, a few rows before each block, for there are not many buffers for it: of three planes a
     * line of each row */
    const float *fetch[3];
    size_t fetch_stride;
    int fetch_rows;
    _Alignas(64) int16_t blocks[WEIR_JPEG_BLOCKS][WEIR_JPEG_BLOCK + WEIR_JPEG_BLOCK_SLACK];
};

#if defined(__x86_64__)
/* Whether the CPU has what these need: AVX2, BMI and BMI2. */
bool weir_jpeg_scan_cpu(void);

/* Copies the segment that begins at source without its stuffed zeros; source is at the marker behind it then. False:
 * the frame ends before a marker comes, or fill bytes come before one. */
bool weir_jpeg_unstuff(struct weir_jpeg_scan *scan);

/* Decodes the blocks of the next MCU. False when the data are odd. */
bool weir_jpeg_mcu(struct weir_jpeg_scan *scan);

/* Orders of a block: where the coefficient of each zigzag index is. In rows; and as weir_jpeg_idct wants them. DC comes
 * first. */
const uint8_t *weir_jpeg_natural_order(void);
const uint8_t *weir_jpeg_idct_order(void);

/* The inverse DCT of a block, times a table, both in the order of pairs and aligned to 32 bytes, to 8 x 8 samples. */
void weir_jpeg_idct(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);
/* The same of one with nothing but DC. */
void weir_jpeg_idct_dc(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);
#endif

#endif
