/* jpeg_scan_priv.h with AVX2 and BMI2.
 *
 * Huffman decoding is one long chain: where a code begins is known when the one before has been looked up. So the chain
 * is kept short (a shift, a look-up, a shift for up to two coefficients), what hangs off it is free of branches, and
 * zeros that are no coefficients are written where nothing is rather than jumped over. */
#include "decoders/jpeg_scan_priv.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define FAST   __attribute__((target("avx2,bmi,bmi2")))
#define INLINE static inline __attribute__((always_inline))

/* Natural order of zigzag index k; past the end, where only damaged data and what is no coefficient get to, the slack.
 */
static const uint8_t natural[WEIR_JPEG_BLOCK + WEIR_HUFFMAN_NOWHERE + 32] = {
    0,  1,  8,  16, 9,
    2,  3,  10, 17, 24,
    32, 25, 18, 11, 4,
    5,  12, 19, 26, 33,
    40, 48, 41, 34, 27,
    20, 13, 6,  7,  14,
    21, 28, 35, 42, 49,
    56, 57, 50, 43, 36,
    29, 22, 15, 23, 30,
    37, 44, 51, 58, 59,
    52, 45, 38, 31, 39,
    46, 53, 60, 61, 54,
    47, 55, 62, 63, [WEIR_JPEG_BLOCK... WEIR_JPEG_BLOCK + WEIR_HUFFMAN_NOWHERE + 31] = WEIR_JPEG_BLOCK,
};

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
    return end - from >= 2 && from[1] != 0xFF; /* fill bytes may have no marker behind them: libjpeg looks */
}

/* ---- codes ---- */

/* At least 56 bits. What is behind those that count are the bits that follow: or-ing them in again changes nothing. */
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

/* The value of so many bits, one at least, at the top, extended as T.81 has it (F.12). */
FAST INLINE int value(uint64_t top, uint64_t size)
{
    uint64_t negative = (uint64_t)((int64_t)~top >> 63);
    return (int)(top >> (-size & 63)) - (int)_bzhi_u64(negative, (unsigned)size);
}

/* One symbol and its value, whatever its length; false when there is no such code. */
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

/* The difference to the DC before; false when there is no such code. */
FAST INLINE bool dc(struct weir_jpeg_bits *bits, const struct weir_huffman *table, int *difference)
{
    unsigned entry = table->dc[bits->next >> (64 - WEIR_HUFFMAN_LOOK)], symbol;
    if (__builtin_expect(entry == 0, 0)) {
        struct weir_jpeg_bits rare = *bits; /* so that the state stays in registers where nothing is rare */
        bool found = one(&rare, &table->codes, &symbol, difference);
        *bits = rare;
        return found;
    }
    unsigned total = entry & 255, size = entry >> 8;
    *difference = size ? value(bits->next << (total - size), size) : 0;
    drop(bits, total);
    return true;
}

/* One coefficient at index k, whatever its code's length. The next index, WEIR_HUFFMAN_END more at the end of the
 * block, or -1. */
__attribute__((noinline)) FAST static int one_ac(struct weir_jpeg_bits *bits, const struct weir_huffman *table, int k,
                                                 int16_t *block)
{
    unsigned symbol;
    int v;
    if (!one(bits, &table->codes, &symbol, &v))
        return -1;
    if ((symbol & 15) == 0)
        return symbol >> 4 == 15 ? k + 16 : k + WEIR_HUFFMAN_END;
    k += (int)(symbol >> 4);
    block[natural[k]] = (int16_t)v;
    return k + 1;
}

/* Whether a block may end so: with its last coefficient, or a code that says so. */
INLINE bool is_end(int k)
{
    return k == WEIR_JPEG_BLOCK || (k > WEIR_HUFFMAN_END && k < WEIR_HUFFMAN_END + WEIR_JPEG_BLOCK);
}

/* The coefficients from index k on, up to two at a time. The index behind the last one, as one_ac has it, or -1. */
FAST INLINE int all_ac(struct weir_jpeg_bits *bits, const struct weir_huffman *table, int16_t *block)
{
    const uint8_t *at = natural + 1, *const end = natural + WEIR_JPEG_BLOCK;
    struct weir_jpeg_bits rare;
    for (;;) {
        refill(bits); /* for two entries, of up to 25 bits each */
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            uint64_t entry = table->ac[bits->next >> (64 - WEIR_HUFFMAN_LOOK)];
            const uint8_t *next = at + (uint8_t)(entry >> 40);
            block[at[(uint8_t)(entry >> 24)]] = (int16_t)(entry >> 48);
            block[at[(uint8_t)(entry >> 32)]] =
                (int16_t)value(bits->next << ((entry >> 8) & 63), (uint8_t)(entry >> 16));
            if (__builtin_expect(next >= end, 0)) {
                int k = (int)(next - natural);
                if (__builtin_expect(is_end(k), 1)) {
                    drop(bits, (uint8_t)entry);
                    return k;
                }
                /* A code too long for the table (it leads far outside); or the first coefficient was the block's last,
                 * and the second is not of this block; or the data are odd. */
                rare = *bits;
                refill(&rare);
                k = one_ac(&rare, table, (int)(at - natural), block);
                *bits = rare;
                if (k >= WEIR_JPEG_BLOCK || k < 0)
                    return is_end(k) ? k : -1;
                at = natural + k;
                break;
            }
            drop(bits, (uint8_t)entry);
            at = next;
        }
    }
}

FAST bool weir_jpeg_unit(struct weir_jpeg_scan *scan)
{
    struct weir_jpeg_bits bits = scan->bits;
    for (int i = 0; i < scan->n_blocks; i++) {
        struct weir_jpeg_component *component = &scan->components[scan->component_of[i]];
        int16_t *block = scan->blocks[i];
        int difference;
        const __m256i zero = _mm256_setzero_si256();
        for (int j = 0; j < WEIR_JPEG_BLOCK; j += 16)
            _mm256_store_si256((__m256i *)(block + j), zero);
        refill(&bits);
        if (!dc(&bits, component->dc, &difference))
            return false;
        component->last_dc = (int)((unsigned)component->last_dc + (unsigned)difference);
        block[0] = (int16_t)component->last_dc;
        refill(&bits);
        int k = all_ac(&bits, component->ac, block);
        scan->ends[i] = k > WEIR_HUFFMAN_END ? k - WEIR_HUFFMAN_END : k;
        if (k < 0 || bits.at - (bits.count >> 3) > scan->segment_end)
            return false;
    }
    scan->bits = bits;
    return true;
}

/* ---- the inverse DCT ---- */

/* The slow-integer one as libjpeg-turbo's AVX2 code has it (simd/x86_64/jidctint-avx2.asm): columns, then rows;
 * products of 32 bits, whose sums wrap, and between the passes 16 bits, which saturate. Without coefficients outside
 * the first four rows and columns an output is a sum of four products: in0 and in2 make the even part, in1 and in3 the
 * odd one, and outputs k and 7 - k are the sum and the difference of both. */

#define PAIR(a, b) (int)((unsigned)(uint16_t)(int16_t)(a) | (unsigned)(b) << 16)

enum { EVEN_0 = PAIR(8192, 10703), EVEN_1 = PAIR(8192, 4433), EVEN_2 = PAIR(8192, -4433), EVEN_3 = PAIR(8192, -10703) };
enum { ODD_0 = PAIR(11363, 9633), ODD_1 = PAIR(9633, -2259), ODD_2 = PAIR(6437, -11362), ODD_3 = PAIR(2260, -6436) };
enum { PASS_1_SHIFT = 11, PASS_2_SHIFT = 18 };

FAST INLINE __m256i twice(int low, int high)
{
    return _mm256_setr_epi32(low, low, low, low, high, high, high, high);
}

FAST INLINE void sums(__m256i even, __m256i odd, int shift, __m256i *sum, __m256i *difference)
{
    even = _mm256_add_epi32(even, _mm256_set1_epi32(1 << (shift - 1)));
    *sum = _mm256_srai_epi32(_mm256_add_epi32(even, odd), shift);
    *difference = _mm256_srai_epi32(_mm256_sub_epi32(even, odd), shift);
}

/* Four columns at once, of each two rows of output: of even lanes of in0 and in2, of odd lanes of in1 and in3, both
 * twice. Out come the same for the rows' pass: a lane is a row; they are rows 0, 1, 7, 6, 3, 2, 4, 5. */
FAST INLINE void columns(__m256i *even, __m256i *odd)
{
    const __m256i pairs =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    __m256i rows_03, rows_74, rows_12, rows_65;
    sums(_mm256_madd_epi16(*even, twice(EVEN_0, EVEN_3)), _mm256_madd_epi16(*odd, twice(ODD_0, ODD_3)), PASS_1_SHIFT,
         &rows_03, &rows_74);
    sums(_mm256_madd_epi16(*even, twice(EVEN_1, EVEN_2)), _mm256_madd_epi16(*odd, twice(ODD_1, ODD_2)), PASS_1_SHIFT,
         &rows_12, &rows_65);
    __m256i upper = _mm256_shuffle_epi8(_mm256_packs_epi32(rows_03, rows_12), pairs);
    __m256i lower = _mm256_shuffle_epi8(_mm256_packs_epi32(rows_74, rows_65), pairs);
    *even = _mm256_unpacklo_epi64(upper, lower);
    *odd = _mm256_unpackhi_epi64(upper, lower);
}

/* Columns a, b, c and d of each row as bytes, row by row. */
FAST INLINE __m256i to_bytes(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i by_row =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    return _mm256_shuffle_epi8(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)), by_row);
}

FAST INLINE void store_two(__m128i rows, uint8_t *first, uint8_t *second)
{
    _mm_storel_epi64((__m128i *)first, rows);
    _mm_storel_epi64((__m128i *)second, _mm_unpackhi_epi64(rows, rows));
}

FAST INLINE void rows(__m256i even, __m256i odd, uint8_t *const *to, size_t column)
{
    __m256i c[8];
    sums(_mm256_madd_epi16(even, _mm256_set1_epi32(EVEN_0)), _mm256_madd_epi16(odd, _mm256_set1_epi32(ODD_0)),
         PASS_2_SHIFT, &c[0], &c[7]);
    sums(_mm256_madd_epi16(even, _mm256_set1_epi32(EVEN_1)), _mm256_madd_epi16(odd, _mm256_set1_epi32(ODD_1)),
         PASS_2_SHIFT, &c[1], &c[6]);
    sums(_mm256_madd_epi16(even, _mm256_set1_epi32(EVEN_2)), _mm256_madd_epi16(odd, _mm256_set1_epi32(ODD_2)),
         PASS_2_SHIFT, &c[2], &c[5]);
    sums(_mm256_madd_epi16(even, _mm256_set1_epi32(EVEN_3)), _mm256_madd_epi16(odd, _mm256_set1_epi32(ODD_3)),
         PASS_2_SHIFT, &c[3], &c[4]);
    __m256i left = to_bytes(c[0], c[1], c[2], c[3]), right = to_bytes(c[4], c[5], c[6], c[7]);
    __m256i rows_0132 = _mm256_unpacklo_epi32(left, right), rows_7645 = _mm256_unpackhi_epi32(left, right);
    store_two(_mm256_castsi256_si128(rows_0132), to[0] + column, to[1] + column);
    store_two(_mm256_extracti128_si256(rows_0132, 1), to[3] + column, to[2] + column);
    store_two(_mm256_castsi256_si128(rows_7645), to[7] + column, to[6] + column);
    store_two(_mm256_extracti128_si256(rows_7645, 1), to[4] + column, to[5] + column);
}

FAST INLINE __m128i four(const int16_t *block, const int16_t *quant, int row)
{
    return _mm_mullo_epi16(_mm_loadl_epi64((const __m128i *)(block + 8 * row)),
                           _mm_loadl_epi64((const __m128i *)(quant + 8 * row)));
}

FAST bool weir_jpeg_idct_few(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column)
{
    __m128i in0 = four(block, quant, 0), in1 = four(block, quant, 1);
    __m128i in2 = four(block, quant, 2), in3 = four(block, quant, 3);
    __m128i fits = _mm_cmpeq_epi16(_mm_srai_epi16(_mm_slli_epi16(in0, 2), 2), in0);
    if (_mm_movemask_epi8(fits) != 0xFFFF)
        return false;
    __m256i even = _mm256_broadcastsi128_si256(_mm_unpacklo_epi16(in0, in2));
    __m256i odd = _mm256_broadcastsi128_si256(_mm_unpacklo_epi16(in1, in3));
    columns(&even, &odd);
    rows(even, odd, to, column);
    return true;
}

void weir_jpeg_idct_dc(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column)
{
    int16_t scaled = (int16_t)((unsigned)block[0] * (unsigned)quant[0] << 2);
    int level = (scaled * 8192 + (1 << (PASS_2_SHIFT - 1))) >> PASS_2_SHIFT;
    int sample = (level < -128 ? -128 : level > 127 ? 127 : level) + 128;
    uint64_t eight = 0x0101010101010101u * (uint64_t)sample;
    for (int row = 0; row < 8; row++)
        memcpy(to[row] + column, &eight, sizeof eight);
}

bool weir_jpeg_scan_cpu(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

#endif
