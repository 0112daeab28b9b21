/* jpeg_huffman.h: tables that look up whole coefficients of a baseline JPEG, made of its DHT segments.
 *
 * Codes and symbols are those of ITU-T T.81, annexes C and F.2: an AC symbol is a run of zeros and the number of bits
 * of the value behind it. Tables are kept by the content of their segments, for the frames of a camera share them. */
#ifndef WEIR_DECODERS_JPEG_HUFFMAN_H
#define WEIR_DECODERS_JPEG_HUFFMAN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WEIR_HUFFMAN_LOOK = 11,     /* bits that a table is looked up by */
    WEIR_HUFFMAN_BITS = 16,     /* of the longest code */
    WEIR_HUFFMAN_END = 128,     /* what the end of a block adds to the index of the next coefficient */
    WEIR_HUFFMAN_NOWHERE = 192, /* more than an index and the end of a block add up to */
    WEIR_HUFFMAN_CACHE = 16,    /* tables kept of each kind */
};

/* What a DHT segment says. */
struct weir_huffman_codes {
    uint8_t counts[WEIR_HUFFMAN_BITS + 1]; /* codes of each length, from 1 on */
    uint8_t symbols[256];
    /* made of it: the largest code of each length (-1: there is none), and what leads from a code to its symbol */
    int32_t largest[WEIR_HUFFMAN_BITS + 1], offset[WEIR_HUFFMAN_BITS + 1];
};

enum weir_huffman_kind { WEIR_HUFFMAN_DC, WEIR_HUFFMAN_AC };

struct weir_huffman {
    /* By the next 11 bits. */
    union {
        /* Byte 0: bits of the code and of the value behind it (0: the code is longer, or there is none); 1: of the
         * value. */
        uint16_t dc[1 << WEIR_HUFFMAN_LOOK];
        /* Up to two coefficients: the first whole, of the second the code; either may be missing, and is 0 then. Byte
         * 0: bits of both (0: the code is longer, or there is none); 1: of those the ones before the second's value; 2:
         * of the second's value; 3 and 4: what to add to the index for the first and the second; 5: for the next (from
         * WEIR_HUFFMAN_END on: the block ends); 6 and 7: the first's value. What is missing goes WEIR_HUFFMAN_NOWHERE;
         * so does the next index after a code that is longer, or is none. */
        uint64_t ac[1 << WEIR_HUFFMAN_LOOK];
    };
    struct weir_huffman_codes codes;
};

struct weir_huffman_tables; /* one thread's */

/* NULL when there is no memory. */
struct weir_huffman_tables *weir_huffman_open(void);
void weir_huffman_close(struct weir_huffman_tables *tables);

/* The table of a segment's counts (17, the first one unused) and symbols, of which there must be a valid set of codes;
 * kept until WEIR_HUFFMAN_CACHE others have been asked for. NULL where it is new and make_new is false: the segment is
 * remembered, and the next call makes its table. */
const struct weir_huffman *weir_huffman_table(struct weir_huffman_tables *tables, enum weir_huffman_kind kind,
                                              const uint8_t *counts, const uint8_t *symbols, bool make_new);

/* The code at the top of 64 bits; its length, or 0 when there is none. */
int weir_huffman_symbol(const struct weir_huffman_codes *codes, uint64_t bits, uint8_t *symbol);

#endif
