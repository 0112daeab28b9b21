/* Runs of equal integers and of packed integers (Encodings.md of parquet-format: RLE/bit-packing hybrid). */
#include "datasets/parquet/parquet_priv.h"

#include <string.h>

/* Begins the next run. Returns false at the end of the bytes. */
static bool next_run(struct weir_rle *rle)
{
    uint32_t header = 0;
    int bytes = (rle->bits + 7) / 8;
    for (int shift = 0;; shift += 7) {
        if (rle->at == rle->end || shift > 28)
            return false;
        header |= (uint32_t)(*rle->at & 0x7f) << shift;
        if (*rle->at++ < 0x80)
            break;
    }
    rle->packed = NULL;
    rle->left = header >> 1;
    if (header & 1) {
        uint64_t size = (uint64_t)rle->left * (unsigned)rle->bits, left = (uint64_t)(rle->end - rle->at);
        rle->packed = rle->at;
        rle->packed_at = 0;
        /* The last run may be cut after its last value. */
        rle->left = size > left ? (uint32_t)(left * 8 / (unsigned)rle->bits) : rle->left * 8;
        rle->at += size < left ? size : left;
        return rle->left > 0;
    }
    if (rle->end - rle->at < bytes)
        return false;
    rle->value = 0;
    for (int i = 0; i < bytes; i++)
        rle->value |= (uint32_t)*rle->at++ << 8 * i;
    return true;
}

static uint32_t packed_value(struct weir_rle *rle)
{
    uint64_t bit = (uint64_t)rle->packed_at++ * (unsigned)rle->bits, bits = 0;
    const uint8_t *at = rle->packed + bit / 8;
    size_t left = (size_t)(rle->end - at);
    if (left >= sizeof bits)
        memcpy(&bits, at, sizeof bits); /* little-endian, as all of the format */
    else
        memcpy(&bits, at, left);
    return (uint32_t)(bits >> bit % 8 & (((uint64_t)1 << rle->bits) - 1));
}

/* Returns how many of the next n integers are in one run, or 0 at the end of the bytes. */
static uint32_t run_of(struct weir_rle *rle, uint32_t n)
{
    while (rle->left == 0)
        if (!next_run(rle))
            return 0;
    uint32_t run = rle->left < n ? rle->left : n;
    rle->left -= run;
    return run;
}

void weir_unpack_bits(const uint8_t *packed, uint32_t n, uint8_t *bits)
{
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8) { /* bit k of a byte, in byte k of a word, is made 1 */
        uint64_t spread = packed[i / 8] * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
        spread = (spread + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
        memcpy(bits + i, &spread, sizeof spread);
    }
    for (; i < n; i++)
        bits[i] = packed[i / 8] >> i % 8 & 1;
}

bool weir_rle_levels(struct weir_rle *rle, uint32_t n, uint32_t most, uint8_t *levels)
{
    for (uint32_t i = 0; i < n;) {
        uint32_t run = run_of(rle, n - i), largest = 0;
        if (rle->packed && rle->bits == 1)
            weir_unpack_bits(rle->packed, run, levels + i);
        else if (rle->packed)
            for (uint32_t k = 0; k < run; k++) {
                uint32_t level = packed_value(rle);
                largest = level > largest ? level : largest;
                levels[i + k] = (uint8_t)level;
            }
        else
            memset(levels + i, (int)(largest = rle->value), run);
        if (run == 0 || largest > most)
            return false;
        i += run;
    }
    return true;
}

bool weir_rle_indices(struct weir_rle *rle, uint32_t n, uint32_t most, uint32_t *indices)
{
    for (uint32_t i = 0; i < n;) {
        uint32_t run = run_of(rle, n - i), largest = 0;
        for (uint32_t k = 0; k < run; k++) {
            uint32_t index = rle->packed ? packed_value(rle) : rle->value;
            largest = index > largest ? index : largest;
            indices[i + k] = index;
        }
        if (run == 0 || largest > most)
            return false;
        i += run;
    }
    return true;
}
