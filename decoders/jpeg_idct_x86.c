/* weir_jpeg_idct: the accurate ("slow") integer DCT, bit-exact with libjpeg-turbo's AVX2 code
 * (simd/x86_64/jidctint-avx2.asm), and its reduced versions with 4 x 4 and 2 x 2 samples (jidctred-sse2.asm) and one
 * sample (jidctred.c), even for values that no encoder writes. The first pass transforms columns, the second one rows.
 * Products with the quantisation table, and sums of two such products, have 16 bits and wrap. Products with constants,
 * and their sums, have 32 bits and wrap. Between the passes, values are saturated to 16 bits.
 *
 * A pass multiplies pairs of values, (0, 4), (6, 2), (1, 7) and (5, 3). Coefficients are therefore stored in such pairs
 * of rows, and the order of columns is such that the first pass outputs pairs of columns (see weir_jpeg_idct_order). */
#include "decoders/jpeg_fast_priv.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define FAST   __attribute__((target("avx2,bmi,bmi2")))
#define INLINE static inline __attribute__((always_inline))

/* Packs two 16-bit values, the first in the low half. */
#define PAIR(a, b) (int)((unsigned)(uint16_t)(int16_t)(a) | (unsigned)(b) << 16)

enum { COLUMNS_SHIFT = 11, ROWS_SHIFT = 18 };

/* The functions from here to pass() transform eight columns (or rows): four vectors of pairs, (0, 4), (6, 2), (1, 7)
 * and (5, 3), become eight vectors of 32-bit values, one per row (or column). */

FAST INLINE void sums(__m256i even, __m256i odd, int shift, __m256i *sum, __m256i *difference)
{
    *sum = _mm256_srai_epi32(_mm256_add_epi32(even, odd), shift);
    *difference = _mm256_srai_epi32(_mm256_sub_epi32(even, odd), shift);
}

FAST INLINE __m256i products(__m256i pairs, int factors)
{
    return _mm256_madd_epi16(pairs, _mm256_set1_epi32(factors));
}

/* Returns the sum and the difference of values 0 and 4, both 16-bit, times 8192, plus the rounding constant. */
FAST INLINE void sums_04(__m256i in_04, int shift, __m256i *sum, __m256i *difference)
{
    __m256i round = _mm256_set1_epi32(1 << (shift - 1));
    __m256i in_0 = _mm256_slli_epi32(in_04, 16), in_4 = _mm256_and_si256(in_04, _mm256_set1_epi32(~0xFFFF));
    *sum = _mm256_add_epi32(_mm256_srai_epi32(_mm256_add_epi32(in_0, in_4), 3), round);
    *difference = _mm256_add_epi32(_mm256_srai_epi32(_mm256_sub_epi32(in_0, in_4), 3), round);
}

FAST INLINE void pass(const __m256i in[4], int shift, __m256i out[8])
{
    __m256i sum, difference;
    sums_04(in[0], shift, &sum, &difference);
    __m256i even_3 = products(in[1], PAIR(4433, 10703)), even_2 = products(in[1], PAIR(-10704, 4433));
    __m256i z_43 = _mm256_add_epi16(in[2], in[3]);
    __m256i z_3 = products(z_43, PAIR(9633, -6436)), z_4 = products(z_43, PAIR(6437, 9633));
    __m256i odd_0 = _mm256_add_epi32(products(in[2], PAIR(-7373, -4927)), z_3);
    __m256i odd_1 = _mm256_add_epi32(products(in[3], PAIR(-4176, -20995)), z_4);
    __m256i odd_2 = _mm256_add_epi32(products(in[3], PAIR(-20995, 4177)), z_3);
    __m256i odd_3 = _mm256_add_epi32(products(in[2], PAIR(4926, -7373)), z_4);
    sums(_mm256_add_epi32(sum, even_3), odd_3, shift, &out[0], &out[7]);
    sums(_mm256_add_epi32(difference, even_2), odd_2, shift, &out[1], &out[6]);
    sums(_mm256_sub_epi32(difference, even_2), odd_1, shift, &out[2], &out[5]);
    sums(_mm256_sub_epi32(sum, even_3), odd_0, shift, &out[3], &out[4]);
}

/* Returns the 32-bit lanes 0 and 2 (lanes_13: 1 and 3) of a, then of b, in each 128-bit half. */
FAST INLINE __m256i lanes_02(__m256i a, __m256i b)
{
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}

FAST INLINE __m256i lanes_13(__m256i a, __m256i b)
{
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xDD));
}

/* Transposes the first pass's output, whose columns are in the order 0, 4, 6, 2 and 1, 7, 5, 3, into pairs of columns.
 */
FAST INLINE void turn(const __m256i rows[8], __m256i pairs[4])
{
    __m256i rows_01 = _mm256_packs_epi32(rows[0], rows[1]), rows_23 = _mm256_packs_epi32(rows[2], rows[3]);
    __m256i rows_45 = _mm256_packs_epi32(rows[4], rows[5]), rows_67 = _mm256_packs_epi32(rows[6], rows[7]);
    __m256i upper_0417 = lanes_02(rows_01, rows_23), upper_6253 = lanes_13(rows_01, rows_23);
    __m256i lower_0417 = lanes_02(rows_45, rows_67), lower_6253 = lanes_13(rows_45, rows_67);
    pairs[0] = _mm256_permute2x128_si256(upper_0417, lower_0417, 0x20);
    pairs[1] = _mm256_permute2x128_si256(upper_6253, lower_6253, 0x20);
    pairs[2] = _mm256_permute2x128_si256(upper_0417, lower_0417, 0x31);
    pairs[3] = _mm256_permute2x128_si256(upper_6253, lower_6253, 0x31);
}

/* Packs columns a, b, c and d to bytes, row by row. */
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
    _mm_storeh_pi((__m64 *)second, _mm_castsi128_ps(rows));
}

/* Stores eight vectors, each with one column of the block, as rows. */
FAST INLINE void store(const __m256i columns[8], uint8_t *const *to, size_t at)
{
    __m256i left = to_bytes(columns[0], columns[1], columns[2], columns[3]);
    __m256i right = to_bytes(columns[4], columns[5], columns[6], columns[7]);
    __m256i low = _mm256_unpacklo_epi32(left, right), high = _mm256_unpackhi_epi32(left, right);
    store_two(_mm256_castsi256_si128(low), to[0] + at, to[1] + at);
    store_two(_mm256_castsi256_si128(high), to[2] + at, to[3] + at);
    store_two(_mm256_extracti128_si256(low, 1), to[4] + at, to[5] + at);
    store_two(_mm256_extracti128_si256(high, 1), to[6] + at, to[7] + at);
}

FAST INLINE __m256i load(const int16_t *values, int i)
{
    return _mm256_load_si256((const __m256i *)values + i);
}

/* If all coefficients are in the first row (4 x 4 samples: or in row 4, which they do not use), libjpeg-turbo replaces
 * the first pass with a 16-bit shift, which wraps where the sums of pass() would saturate. Returns inputs for which
 * pass() gives the result of that shift. */
__attribute__((noinline)) FAST static __m256i shortcut(__m256i in_04, const int16_t *block, bool uses_4)
{
    __m256i in_4 = _mm256_and_si256(load(block, 0), _mm256_set1_epi32(uses_4 ? ~0xFFFF : 0));
    __m256i other =
        _mm256_or_si256(_mm256_or_si256(in_4, load(block, 1)), _mm256_or_si256(load(block, 2), load(block, 3)));
    return _mm256_testz_si256(other, other) ? _mm256_srai_epi16(_mm256_slli_epi16(in_04, 2), 2) : in_04;
}

FAST INLINE __m256i dequantise(const int16_t *block, const int16_t *quant, int i)
{
    return _mm256_mullo_epi16(load(block, i), load(quant, i));
}

FAST INLINE void dequantise_all(const int16_t *block, const int16_t *quant, bool uses_4, __m256i pairs[4])
{
    for (int i = 0; i < 4; i++)
        pairs[i] = dequantise(block, quant, i);
    __m256i above = _mm256_add_epi16(pairs[0], _mm256_set1_epi16(0x2000));
    if (__builtin_expect(!_mm256_testz_si256(above, _mm256_set1_epi16((int16_t)0xC000)), 0))
        pairs[0] = shortcut(pairs[0], block, uses_4);
}

FAST void weir_jpeg_idct(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column)
{
    __m256i pairs[4], lines[8];
    dequantise_all(block, quant, true, pairs);
    pass(pairs, COLUMNS_SHIFT, lines);
    turn(lines, pairs);
    pass(pairs, ROWS_SHIFT, lines);
    store(lines, to, column);
}

/* ---- fewer samples ---- */

/* Like pass(), but outputs four vectors. */
FAST INLINE void pass_4(const __m256i in[4], int shift, __m256i out[4])
{
    __m256i round = _mm256_set1_epi32(1 << (shift - 1));
    __m256i even_0 = _mm256_add_epi32(_mm256_srai_epi32(_mm256_slli_epi32(in[0], 16), 2), round);
    __m256i even_2 = products(in[1], PAIR(-6270, 15137));
    __m256i odd_0 = _mm256_add_epi32(products(in[2], PAIR(20995, -4176)), products(in[3], PAIR(-4926, 7373)));
    __m256i odd_1 = _mm256_add_epi32(products(in[2], PAIR(8697, -1730)), products(in[3], PAIR(11893, -17799)));
    sums(_mm256_add_epi32(even_0, even_2), odd_0, shift, &out[0], &out[3]);
    sums(_mm256_sub_epi32(even_0, even_2), odd_1, shift, &out[1], &out[2]);
}

FAST void weir_jpeg_idct_4x4(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column)
{
    __m256i pairs[4], lines[4];
    dequantise_all(block, quant, false, pairs);
    pass_4(pairs, COLUMNS_SHIFT + 1, lines);
    __m256i rows_01 = _mm256_packs_epi32(lines[0], lines[1]), rows_23 = _mm256_packs_epi32(lines[2], lines[3]);
    pairs[0] = lanes_02(rows_01, rows_23); /* columns 0 and 4, then 1 and 7; only the lower half counts from here on */
    pairs[1] = lanes_13(rows_01, rows_23);
    pairs[2] = _mm256_permute4x64_epi64(pairs[0], 0x0E);
    pairs[3] = _mm256_permute4x64_epi64(pairs[1], 0x0E);
    pass_4(pairs, ROWS_SHIFT + 1, lines);
    __m128i rows = _mm256_castsi256_si128(to_bytes(lines[0], lines[1], lines[2], lines[3]));
    for (int row = 0; row < 4; row++, rows = _mm_srli_si128(rows, 4)) {
        int four = _mm_cvtsi128_si32(rows);
        memcpy(to[row] + column, &four, sizeof four);
    }
}

FAST void weir_jpeg_idct_2x2(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column)
{
    const __m256i round = _mm256_set1_epi32(1 << (COLUMNS_SHIFT + 1));
    __m256i even = _mm256_srai_epi32(_mm256_slli_epi32(dequantise(block, quant, 0), 16), 1), sum, difference;
    __m256i odd = _mm256_add_epi32(products(dequantise(block, quant, 2), PAIR(29692, -5906)),
                                   products(dequantise(block, quant, 3), PAIR(6967, -10426)));
    sums(_mm256_add_epi32(even, round), odd, COLUMNS_SHIFT + 2, &sum, &difference);
    /* The lower halves start with column 0, which keeps 32 bits; the upper halves are columns 1, 7, 5 and 3. */
    __m128i upper = _mm_packs_epi32(_mm256_extracti128_si256(sum, 1), _mm256_extracti128_si256(difference, 1));
    __m128i parts = _mm_madd_epi16(upper, _mm_setr_epi16(29692, -5906, 6967, -10426, 29692, -5906, 6967, -10426));
    __m128i odds = _mm_sign_epi32(_mm_hadd_epi32(parts, parts), _mm_setr_epi32(1, 1, -1, -1));
    __m128i evens = _mm_unpacklo_epi32(_mm256_castsi256_si128(sum), _mm256_castsi256_si128(difference));
    evens = _mm_add_epi32(_mm_slli_epi32(_mm_unpacklo_epi64(evens, evens), 15), _mm_set1_epi32(1 << (ROWS_SHIFT + 1)));
    __m128i samples = _mm_srai_epi32(_mm_add_epi32(evens, odds), ROWS_SHIFT + 2);
    samples = _mm_packs_epi16(_mm_packs_epi32(samples, samples), samples);
    uint32_t four = (uint32_t)_mm_cvtsi128_si32(samples) ^ 0x80808080u; /* columns 0, then columns 1 */
    for (int row = 0; row < 2; row++, four >>= 8) {
        to[row][column] = (uint8_t)four;
        to[row][column + 1] = (uint8_t)(four >> 16);
    }
}

static uint8_t to_sample(int level)
{
    return (uint8_t)((level < -128 ? -128 : level > 127 ? 127 : level) + 128);
}

void weir_jpeg_idct_1x1(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column)
{
    int level = (block[0] * quant[0] + 4) >> 3; /* of which libjpeg-turbo uses 10 bits */
    to[0][column] = to_sample((int)((unsigned)level << 22) >> 22);
}

void weir_jpeg_idct_dc(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column)
{
    int16_t scaled = (int16_t)((unsigned)block[0] * (unsigned)quant[0] << 2);
    uint64_t eight = 0x0101010101010101u * (uint64_t)to_sample((scaled * 8192 + (1 << (ROWS_SHIFT - 1))) >> ROWS_SHIFT);
    for (int row = 0; row < 8; row++)
        memcpy(to[row] + column, &eight, sizeof eight);
}

#endif
