/* Decodes the entropy-coded data with AVX2 and BMI2.
 *
 * Huffman decoding is one long dependency chain, because the start of a code is known only after the previous look-up.
 * The chain is therefore kept short: a shift, a look-up and a shift for up to two coefficients. The code outside the
 * chain has no branches; for a missing coefficient it stores to slack memory instead of skipping the store. */
#include "decoders/jpeg_fast_priv.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define FAST   __attribute__((target("avx2,bmi,bmi2")))
#define INLINE static inline __attribute__((always_inline))

/* Size of an order table. Entries after the 64 coefficients point to the slack memory. They are used only by damaged
 * data and missing coefficients. */
enum { ORDER = WEIR_JPEG_BLOCK + WEIR_HUFFMAN_NOWHERE + 32 };

/* The order for jpeg_idct_x86.c: each pair of rows, (0, 4), (6, 2), (1, 7) and (5, 3), is interleaved, with its columns
 * in the order 0, 4, 6, 2, 1, 7, 5, 3. */
static const uint8_t order[ORDER] = {
    0,  8,  32, 17, 40, 6,  14, 38, 25, 49, 1,  57, 23,
    46, 2,  12, 34, 31, 55, 9,  48, 16, 56, 7,  63, 19,
    44, 4,  10, 36, 29, 51, 15, 54, 24, 33, 41, 22, 62,
    3,  61, 21, 42, 27, 53, 13, 50, 30, 39, 47, 18, 60,
    5,  59, 11, 52, 28, 35, 45, 20, 58, 26, 37, 43, [WEIR_JPEG_BLOCK... ORDER - 1] = WEIR_JPEG_BLOCK,
};

const uint8_t *weir_jpeg_idct_order(void)
{
    return order;
}

/* ---- bytes ---- */

FAST bool weir_jpeg_unstuff(struct weir_jpeg_scan *scan)
{
    const uint8_t *from = scan->source, *end = scan->source_end;
    uint8_t *to = scan->segment;
    const __m256i ones = _mm256_set1_epi8(-1);
    while (end - from >= 33) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)from);
        unsigned found = (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, ones));
        _mm256_storeu_si256((__m256i *)to, bytes);
        unsigned n = found ? _tzcnt_u32(found) : 32;
        from += n;
        to += n;
        if (n == 32)
            continue;
        if (from[1] != 0)
            break;
        *to++ = 0xFF;
        from += 2;
    }
    for (; end - from >= 2 && (from[0] != 0xFF || from[1] == 0); from += from[0] == 0xFF ? 2 : 1)
        *to++ = from[0];
    scan->source = from;
    scan->segment_end = to;
    return end - from >= 2 && from[1] != 0xFF; /* after fill bytes, libjpeg has to find the marker */
}

/* ---- codes ---- */

/* Ensures that at least 56 bits are valid. Bits after the first `count` bits are already correct, so setting them again
 * has no effect. */
INLINE void refill(struct weir_jpeg_bits *bits)
{
    uint64_t more;
    memcpy(&more, bits->at, sizeof more);
    bits->next |= __builtin_bswap64(more) >> bits->count;
    bits->at += (63 - bits->count) >> 3;
    bits->count |= 56;
}

INLINE void drop(struct weir_jpeg_bits *bits, uint64_t n)
{
    bits->next <<= n & 63;
    bits->count -= n;
}

/* Returns the value encoded by the top `size` bits (EXTEND in T.81, F.2.2.1). If size is 0, the result is arbitrary. */
FAST INLINE int value(uint64_t top, uint64_t size)
{
    uint64_t negative = (uint64_t)((int64_t)~top >> 63);
    return (int)(top >> (-size & 63)) - (int)_bzhi_u64(negative, (unsigned)size);
}

/* Decodes one symbol and its value, for codes of any length. Returns false if the code is invalid. */
__attribute__((noinline)) FAST static bool one(struct weir_jpeg_bits *bits, const struct weir_huffman_codes *codes,
                                               unsigned *symbol, int *v)
{
    uint8_t found = 0;
    uint64_t length = (uint64_t)weir_huffman_symbol(codes, bits->next, &found);
    drop(bits, length);
    *symbol = found;
    *v = found & 15 ? value(bits->next, found & 15) : 0;
    drop(bits, found & 15);
    refill(bits);
    return length > 0;
}

/* Decodes the difference from the previous DC coefficient. Returns false if the code is invalid. */
FAST INLINE bool dc(struct weir_jpeg_bits *bits, const struct weir_huffman *table, int *difference)
{
    unsigned entry = table->dc[bits->next >> (64 - WEIR_HUFFMAN_LOOK)], symbol;
    if (__builtin_expect(entry == 0, 0)) {
        struct weir_jpeg_bits rare = *bits; /* a copy, so that the state can stay in registers on the common path */
        bool found = one(&rare, &table->codes, &symbol, difference);
        *bits = rare;
        return found;
    }
    uint64_t total = entry & 255, size = entry >> 8;
    *difference = value(bits->next << (total - size), size) & -(size > 0); /* a branch would often be mispredicted */
    drop(bits, total);
    return true;
}

/* Decodes the coefficient at index k, for codes of any length. Returns the next index (at the end of a block, plus
 * WEIR_HUFFMAN_END), or -1 if the code is invalid. */
__attribute__((noinline)) FAST static int one_ac(struct weir_jpeg_bits *bits,
                                                 const struct weir_jpeg_component *component, int k, int16_t *block)
{
    unsigned symbol;
    int v;
    if (!one(bits, &component->huffman[WEIR_HUFFMAN_AC]->codes, &symbol, &v))
        return -1;
    if ((symbol & 15) == 0)
        return symbol >> 4 == 15 ? k + 16 : k + WEIR_HUFFMAN_END;
    k += (int)(symbol >> 4);
    block[order[k]] = (int16_t)v;
    return k + 1;
}

/* Whether a block can end with this next index: after the last coefficient, or after an end-of-block code. */
INLINE bool is_end(int k)
{
    return k == WEIR_JPEG_BLOCK || (k > WEIR_HUFFMAN_END && k < WEIR_HUFFMAN_END + WEIR_JPEG_BLOCK);
}

/* Decodes the coefficient at index k where a step leads out of the block: the code is too long for the table, or one of
 * the step's coefficients is the last of the block and the others belong to the next block, or the data is invalid.
 * Returns the same as one_ac. */
FAST INLINE int rarely(struct weir_jpeg_bits *bits, const struct weir_jpeg_component *component, int k, int16_t *block)
{
    struct weir_jpeg_bits rare = *bits; /* a copy, as in dc */
    refill(&rare);
    k = one_ac(&rare, component, k, block);
    *bits = rare;
    return k;
}

/* Decodes the AC coefficients of a block, up to two per look-up. Returns the index after the last one (plus
 * WEIR_HUFFMAN_END after an end-of-block code), or -1 if the data is invalid. */
FAST INLINE int all_ac(struct weir_jpeg_bits *bits, const struct weir_jpeg_component *component, int16_t *block)
{
    const struct weir_huffman *table = component->huffman[WEIR_HUFFMAN_AC];
    const uint8_t *at = order + 1, *const end = order + WEIR_JPEG_BLOCK;
    for (;;) {
        refill(bits); /* enough for two table entries of at most 26 bits each */
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            size_t index = bits->next >> (64 - WEIR_HUFFMAN_LOOK);
            const struct weir_huffman_two *two = &table->two[index];
            unsigned step = table->steps[index];
            const uint8_t *next = at + (step >> 6);
            block[at[two->first]] = two->value;
            block[at[two->second]] = (int16_t)value(bits->next << (two->before & 63), two->size);
            if (__builtin_expect(next >= end, 0)) {
                int k = (int)(next - order);
                if (__builtin_expect(is_end(k), 1)) {
                    drop(bits, step & 63);
                    return k;
                }
                k = rarely(bits, component, (int)(at - order), block);
                if (k >= WEIR_JPEG_BLOCK || k < 0)
                    return is_end(k) ? k : -1;
                at = order + k;
                break;
            }
            drop(bits, step & 63);
            at = next;
        }
    }
}

/* The same without the coefficients. Some may be stored in the block, but none at DC. */
FAST INLINE int skip_ac(struct weir_jpeg_bits *bits, const struct weir_jpeg_component *component, int16_t *block)
{
    const struct weir_huffman *table = component->huffman[WEIR_HUFFMAN_SKIP];
    for (int k = 1;;) {
        refill(bits); /* enough for two table entries of at most 27 bits each */
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            unsigned step = table->skips[bits->next >> (64 - WEIR_HUFFMAN_SKIP_LOOK)];
            int next = k + (int)(step >> 6);
            if (__builtin_expect(next >= WEIR_JPEG_BLOCK, 0)) {
                if (__builtin_expect(is_end(next), 1)) {
                    drop(bits, step & 63);
                    return next;
                }
                next = rarely(bits, component, k, block);
                if (next >= WEIR_JPEG_BLOCK || next < 0)
                    return is_end(next) ? next : -1;
                k = next;
                break;
            }
            drop(bits, step & 63);
            k = next;
        }
    }
}

FAST bool weir_jpeg_mcu(struct weir_jpeg_scan *scan)
{
    enum { FETCH_ROWS = 3 }; /* rows prefetched per block; the six blocks of a 4:2:0 MCU prefetch all 16 rows */
    struct weir_jpeg_bits bits = scan->bits;
    int row = 0;
    for (int i = 0; i < scan->n_blocks; i++) {
        struct weir_jpeg_component *component = &scan->components[scan->component_of[i]];
        int16_t *block = scan->blocks[i];
        int difference;
        for (int end = row + FETCH_ROWS; row < end && row < scan->fetch_rows; row++)
            for (size_t c = 0; c < 3; c++)
                __builtin_prefetch(scan->fetch[c] + (size_t)row * scan->fetch_stride);
        refill(&bits);
        if (!dc(&bits, component->huffman[WEIR_HUFFMAN_DC], &difference))
            return false;
        component->last_dc = (int)((unsigned)component->last_dc + (unsigned)difference);
        int k;
        if (scan->only_dc >> i & 1) {
            block[0] = (int16_t)component->last_dc;
            k = skip_ac(&bits, component, block);
        } else {
            const __m256i zero = _mm256_setzero_si256();
            for (int j = 0; j < WEIR_JPEG_BLOCK; j += 16)
                _mm256_store_si256((__m256i *)(block + j), zero);
            block[0] = (int16_t)component->last_dc;
            k = all_ac(&bits, component, block);
            scan->ends[i] = k > WEIR_HUFFMAN_END ? k - WEIR_HUFFMAN_END : k;
        }
        if (k < 0 || bits.at - (bits.count >> 3) > scan->segment_end)
            return false;
    }
    scan->bits = bits;
    return true;
}

bool weir_jpeg_scan_cpu(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

#endif
