/* jpeg_fast_priv.h: the parts of jpeg_fast.c that do not use libjpeg: Huffman tables, entropy-coded data, inverse DCT,
 * and colours. */
#ifndef WEIR_DECODERS_JPEG_FAST_PRIV_H
#define WEIR_DECODERS_JPEG_FAST_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Huffman tables (jpeg_huffman.c) ----
 *
 * Built from DHT segments, they look up whole coefficients of a baseline JPEG. Codes and symbols follow ITU-T T.81,
 * annexes C and F.2: an AC symbol is a run of zeros and the number of bits of the following value. Tables are cached by
 * the content of their segments, because the frames of a camera share them. */

enum {
    WEIR_HUFFMAN_LOOK = 11,     /* bits used for a look-up */
    WEIR_HUFFMAN_BITS = 16,     /* bits of the longest code */
    WEIR_HUFFMAN_END = 128,     /* added to the index of the next coefficient at the end of a block */
    WEIR_HUFFMAN_NOWHERE = 192, /* larger than the sum of an index and the end of a block */
    WEIR_HUFFMAN_CACHE = 16,    /* cached tables of each kind */
};

/* Content of a DHT segment. */
struct weir_huffman_codes {
    uint8_t counts[WEIR_HUFFMAN_BITS + 1]; /* number of codes of each length, from 1 on */
    uint8_t symbols[256];
    /* derived: the largest code of each length (-1: none), and the offset from a code to its symbol */
    int32_t largest[WEIR_HUFFMAN_BITS + 1], offset[WEIR_HUFFMAN_BITS + 1];
};

enum weir_huffman_kind { WEIR_HUFFMAN_DC, WEIR_HUFFMAN_AC };

struct weir_huffman {
    /* Indexed by the next 11 bits. */
    union {
        /* Byte 0: bits of the code plus its value (0: the code is longer, or invalid); 1: bits of the value. */
        uint16_t dc[1 << WEIR_HUFFMAN_LOOK];
        /* Up to two coefficients: the first complete, the second only its code; an absent one is 0. Byte 0: bits of
         * both (0: the code is longer, or invalid); 1: those before the second's value; 2: bits of the second's value;
         * 3 and 4: index increments of the first and second; 5: of the next (from WEIR_HUFFMAN_END on the block ends);
         * 6 and 7: the first's value. Absent coefficients use the index WEIR_HUFFMAN_NOWHERE, as does the next index
         * after a longer or invalid code. */
        uint64_t ac[1 << WEIR_HUFFMAN_LOOK];
    };
    struct weir_huffman_codes codes;
};

struct weir_huffman_tables; /* per thread */

/* Returns NULL when out of memory. */
struct weir_huffman_tables *weir_huffman_open(void);
void weir_huffman_close(struct weir_huffman_tables *tables);

/* Returns the table for a segment's counts (17, the first unused) and symbols, which must form a valid set of codes. It
 * stays valid until WEIR_HUFFMAN_CACHE other tables have been requested. Returns NULL for a new segment when make_new
 * is false: the next call for the segment builds its table. */
const struct weir_huffman *weir_huffman_table(struct weir_huffman_tables *tables, enum weir_huffman_kind kind,
                                              const uint8_t *counts, const uint8_t *symbols, bool make_new);

/* Decodes the code at the top of 64 bits. Returns its length, or 0 for an invalid code. */
int weir_huffman_symbol(const struct weir_huffman_codes *codes, uint64_t bits, uint8_t *symbol);

/* ---- the entropy-coded data of a baseline JPEG (jpeg_scan_x86.c, jpeg_idct_x86.c) ---- */

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

/* ---- colours (jpeg_color_x86.c) ----
 *
 * Converts rows of YCbCr samples to rows of pixels in one pass, bit for bit like libjpeg-turbo: "fancy" chroma
 * upsampling (jdsample.c) and colour conversion (jdcolor.c). */

/* Number of pixels per chroma sample. */
enum weir_jpeg_chroma { WEIR_JPEG_444, WEIR_JPEG_422, WEIR_JPEG_420 };

/* Margin of `sums` on either side, in values. Samples are read up to a multiple of 32; alloc_sarray of libjpeg-turbo's
 * jmemmgr.c pads rows to a multiple of 64. */
enum { WEIR_JPEG_ROW_SLACK = 64 };

struct weir_jpeg_row {
    enum weir_jpeg_chroma chroma;
    const uint8_t *luma;
    const uint8_t *near[2],
        *far[2]; /* Cb and Cr: near is the closest chroma row; with 4:2:0, far is the row on the other side */
    size_t width, chroma_width; /* of the pixel row; of near and far, at least 2 */
    uint16_t *sums[2];          /* chroma_width values plus WEIR_JPEG_ROW_SLACK on either side; unused for 4:4:4 */
    bool bgr, planes;           /* channel order; planes: width bytes of each channel, else interleaved */
    uint8_t *to;                /* 3 x width bytes */
};

#if defined(__x86_64__)
/* Requires AVX2. */
void weir_jpeg_color_row(const struct weir_jpeg_row *row);
#endif

#endif
