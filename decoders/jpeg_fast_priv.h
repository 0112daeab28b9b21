/* jpeg_fast_priv.h: the parts of jpeg_fast.c that do not use libjpeg: Huffman tables, entropy-coded data, the inverse
 * DCT, and colour conversion. */
#ifndef WEIR_DECODERS_JPEG_FAST_PRIV_H
#define WEIR_DECODERS_JPEG_FAST_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Huffman tables (jpeg_huffman.c) ----
 *
 * Look-up tables that are built from DHT segments and return whole coefficients of a baseline JPEG. Codes and symbols
 * follow ITU-T T.81, annexes C and F.2: an AC symbol contains the number of preceding zero coefficients and the number
 * of bits of the value that follows. Tables are cached by the content of their segments, because frames from the same
 * camera usually have the same tables. */

enum {
    WEIR_HUFFMAN_LOOK = 11, /* number of bits that index a look-up table */
    WEIR_HUFFMAN_SKIP_LOOK = 12,
    WEIR_HUFFMAN_BITS = 16,     /* maximum code length in bits */
    WEIR_HUFFMAN_END = 128,     /* added to the next coefficient's index at the end of a block */
    WEIR_HUFFMAN_NOWHERE = 192, /* greater than any coefficient index plus WEIR_HUFFMAN_END */
    WEIR_HUFFMAN_CACHE = 16,    /* cached tables per kind */
};

/* Contents of a DHT segment. */
struct weir_huffman_codes {
    uint8_t counts[WEIR_HUFFMAN_BITS + 1]; /* number of codes of each length; index 0 is unused */
    uint8_t symbols[256];
    /* derived, for each length: the largest code (-1 if none exists), and the offset that turns a code into its
     * symbol's index when added to it */
    int32_t largest[WEIR_HUFFMAN_BITS + 1], offset[WEIR_HUFFMAN_BITS + 1];
};

enum weir_huffman_kind { WEIR_HUFFMAN_DC, WEIR_HUFFMAN_AC, WEIR_HUFFMAN_SKIP, WEIR_HUFFMAN_KINDS };

/* Up to two AC coefficients. The first one is complete and includes its value; the second one is only the code, and its
 * value follows in the stream. */
struct weir_huffman_two {
    int16_t value;         /* the first value */
    uint8_t before, size;  /* bits before the second value; bits of the second value */
    uint8_t first, second; /* index increments of both, or WEIR_HUFFMAN_NOWHERE if missing */
};

struct weir_huffman {
    /* Look-up tables, indexed by the next bits. */
    union {
        /* DC. Byte 0: total bits of the code and its value, or 0 if the code is invalid or too long for the table. Byte
         * 1: bits of the value. */
        uint16_t dc[1 << WEIR_HUFFMAN_LOOK];
        /* AC. A step has the total bits of the codes and values in bits 0 to 5, and above them the index increment of
         * the coefficient after them: at least WEIR_HUFFMAN_END if the block ends, WEIR_HUFFMAN_NOWHERE (and no bits)
         * if the code is invalid or too long for the table. Steps are apart from the coefficients, because decoding
         * waits for them: this table stays in the L1 cache. */
        struct {
            uint16_t steps[1 << WEIR_HUFFMAN_LOOK];
            struct weir_huffman_two two[1 << WEIR_HUFFMAN_LOOK];
        };
        /* AC, to skip coefficients: as many as there are whole codes. */
        uint16_t skips[1 << WEIR_HUFFMAN_SKIP_LOOK];
    };
    struct weir_huffman_codes codes;
};

struct weir_huffman_tables; /* one per thread */

/* Returns NULL when out of memory. */
struct weir_huffman_tables *weir_huffman_open(void);
void weir_huffman_close(struct weir_huffman_tables *tables);

/* Returns the table for a DHT segment's symbols and 17 counts (counts[0] is unused), which must form a valid set of
 * codes. The table stays valid until WEIR_HUFFMAN_CACHE other tables have been requested. If make_new is false and the
 * segment is new, returns NULL and builds the table only when the same segment is requested again. */
const struct weir_huffman *weir_huffman_table(struct weir_huffman_tables *tables, enum weir_huffman_kind kind,
                                              const uint8_t *counts, const uint8_t *symbols, bool make_new);

/* Decodes the code in the most significant of 64 bits. Returns its length, or 0 if it is invalid. */
int weir_huffman_symbol(const struct weir_huffman_codes *codes, uint64_t bits, uint8_t *symbol);

/* ---- the entropy-coded data of a baseline JPEG (jpeg_scan_x86.c, jpeg_idct_x86.c) ---- */

enum {
    WEIR_JPEG_BLOCK = 64,
    WEIR_JPEG_BLOCK_SLACK = 16,     /* room after a block for the stores of missing coefficients */
    WEIR_JPEG_BLOCKS = 10,          /* maximum per MCU */
    WEIR_JPEG_COMPONENTS = 4,       /* maximum per scan */
    WEIR_JPEG_SEGMENT_SLACK = 1024, /* room after a segment: decoding a block and a refill can read past the end */
};

/* Bit reader for a segment, the data between two restart markers without its stuffed zero bytes. */
struct weir_jpeg_bits {
    uint64_t next;  /* upcoming bits, most significant bit first */
    uint64_t count; /* number of valid bits in next */
    const uint8_t *at;
};

struct weir_jpeg_component {
    const struct weir_huffman *huffman[WEIR_HUFFMAN_KINDS]; /* SKIP may be NULL if `only_dc` is 0 */
    int last_dc;
};

struct weir_jpeg_scan {
    const uint8_t *source, *source_end; /* source: the marker after the current segment; source_end: end of the frame */
    uint8_t *segment;                   /* buffer with room for the whole source plus WEIR_JPEG_SEGMENT_SLACK */
    const uint8_t *segment_end;
    struct weir_jpeg_bits bits;
    int n_components;
    struct weir_jpeg_component components[WEIR_JPEG_COMPONENTS];
    /* for each block of an MCU: the component (component_of), the coefficients (blocks) and the zigzag index after the
     * last coefficient that can be nonzero (ends; 1: DC only) */
    int n_blocks;
    uint8_t component_of[WEIR_JPEG_BLOCKS];
    unsigned only_dc; /* bit i: AC coefficients of block i are not stored, and its end is not set */
    int ends[WEIR_JPEG_BLOCKS];
    /* memory to prefetch during decoding: one cache line per row in each of three planes. Each block prefetches only a
     * few rows, because the CPU has few line fill buffers. */
    const float *fetch[3];
    size_t fetch_stride;
    int fetch_rows;
    _Alignas(64) int16_t blocks[WEIR_JPEG_BLOCKS][WEIR_JPEG_BLOCK + WEIR_JPEG_BLOCK_SLACK];
};

#if defined(__x86_64__)
/* Whether the CPU supports AVX2, BMI and BMI2. */
bool weir_jpeg_scan_cpu(void);

/* Copies the segment at source without its stuffed zero bytes and advances source to the marker after it. Returns false
 * if the frame ends before a marker, or if fill bytes precede the marker. */
bool weir_jpeg_unstuff(struct weir_jpeg_scan *scan);

/* Decodes the blocks of the next MCU. Returns false if the data is invalid. */
bool weir_jpeg_mcu(struct weir_jpeg_scan *scan);

/* The position in a block for each zigzag index, as weir_jpeg_idct requires it. DC is first. */
const uint8_t *weir_jpeg_idct_order(void);

/* Dequantises a block, applies the inverse DCT and stores 8 x 8 samples at to[0..7] + column. block and quant are in
 * the order above and aligned to 32 bytes. */
void weir_jpeg_idct(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);
/* The same with 4 x 4 or 2 x 2 samples, or with one, which depends on DC alone. */
void weir_jpeg_idct_4x4(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);
void weir_jpeg_idct_2x2(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);
void weir_jpeg_idct_1x1(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);
/* Like weir_jpeg_idct, for a block whose only nonzero coefficient is DC. */
void weir_jpeg_idct_dc(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);
#endif

/* ---- colour conversion (jpeg_color_rows.h) ----
 *
 * Converts rows of YCbCr samples to rows of pixels in one pass. Combines the "fancy" chroma upsampling (jdsample.c) and
 * the colour conversion (jdcolor.c) of libjpeg-turbo and is bit-exact with them. */

/* Chroma subsampling. */
enum weir_jpeg_chroma { WEIR_JPEG_444, WEIR_JPEG_422, WEIR_JPEG_420 };

/* Number of values that `sums` has before and after its row. Samples are read in groups of 32 or 64. The last group can
 * extend past the row but not past its allocation, because libjpeg-turbo pads sample rows to a multiple of 64
 * (alloc_sarray in jmemmgr.c). */
enum { WEIR_JPEG_ROW_SLACK = 64 };

struct weir_jpeg_row {
    enum weir_jpeg_chroma chroma;
    const uint8_t *luma;
    const uint8_t *near[2], *far[2]; /* rows of Cb and Cr: near is the row nearest to the luma row; far, for 4:2:0 only,
                                        is the second nearest */
    size_t width, chroma_width;      /* width of the pixel row; width of near and far, at least 2 */
    uint16_t *sums[2];               /* chroma_width values plus WEIR_JPEG_ROW_SLACK on either side; unused for 4:4:4 */
    bool bgr, planes; /* channel order; planes: output width bytes of each channel in turn, not interleaved */
    uint8_t *to;      /* 3 x width bytes */
};

#if defined(__x86_64__)
/* Requires AVX2. */
void weir_jpeg_color_row(const struct weir_jpeg_row *row);

/* What it calls; both give the same bytes. */
bool weir_jpeg_color_has_avx512(void);
void weir_jpeg_color_row_avx2(const struct weir_jpeg_row *row);
void weir_jpeg_color_row_avx512(const struct weir_jpeg_row *row);
#endif

#endif
