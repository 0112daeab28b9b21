/* jpeg_huffman.h: tables, built from DHT segments, that look up whole coefficients of a baseline JPEG.
 *
 * Codes and symbols follow ITU-T T.81, annexes C and F.2: an AC symbol is a run of zeros and the number of bits of the
 * following value. Tables are cached by the content of their segments, because the frames of a camera share them. */
#ifndef WEIR_DECODERS_JPEG_HUFFMAN_H
#define WEIR_DECODERS_JPEG_HUFFMAN_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
