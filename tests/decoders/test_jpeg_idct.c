/* The inverse DCT and its reduced versions compared with the library's, block by block: arbitrary coefficients and
 * quantisation tables, including values that no encoder writes, near the limits where 16-bit sums wrap or saturate. */
#include "decoders/jpeg_fast.h"
#include "decoders/jpeg_fast_priv.h"
#include "tests/fixtures/jpeg_choices.h"
#include "tests/fixtures/jpeg_encode.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JPEG_INTERNALS
#include <jpeglib.h>

#if defined(__x86_64__)

typedef void idct(const int16_t *block, const int16_t *quant, uint8_t *const *to, size_t column);

/* Number of samples per row and column. */
static const struct {
    int size;
    idct *transform;
} sizes[] = {{8, weir_jpeg_idct}, {4, weir_jpeg_idct_4x4}, {2, weir_jpeg_idct_2x2}, {1, weir_jpeg_idct_1x1}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static struct jpeg_decompress_struct jpegs[SIZES];
static struct jpeg_error_mgr errors;
static uint8_t *frame;
static struct jpeg_choices choices;

/* Coefficients and quantisation factors of the block, by zigzag index. */
static int16_t values[64], factors[64];

static void start(void)
{
    size_t length;
    frame = jpeg_encode(&(struct jpeg_encode){.width = 8, .height = 8, .colours = JPEG_ENCODE_GRAY, .quality = 90},
                        &length);
    for (int i = 0; i < SIZES; i++) {
        struct jpeg_decompress_struct *jpeg = &jpegs[i];
        jpeg->err = jpeg_std_error(&errors);
        jpeg_create_decompress(jpeg);
        jpeg_mem_src(jpeg, frame, length);
        jpeg_read_header(jpeg, TRUE);
        jpeg->scale_num = (unsigned)sizes[i].size;
        jpeg->scale_denom = 8;
        jpeg_start_decompress(jpeg);
        cr_assert_eq(jpeg->comp_info[0].DCT_scaled_size, sizes[i].size);
    }
    choices = jpeg_choices_of_seed(7);
}

static void end(void)
{
    for (int i = 0; i < SIZES; i++)
        jpeg_destroy_decompress(&jpegs[i]);
    free(frame);
}

TestSuite(idct, .init = start, .fini = end);

static bool skipped(void)
{
    const char *why_not = weir_jpeg_fast_why_not();
    /* A failed self-test must not skip the comparison. */
    cr_assert(!why_not || !strstr(why_not, "sample"), "%s", why_not);
    if (why_not)
        cr_log_info("skipped: %s", why_not);
    return why_not;
}

enum { UNTOUCHED = 0xA5 };

static void library(struct jpeg_decompress_struct *jpeg, uint8_t samples[64])
{
    _Alignas(32) JCOEF block[64];
    JSAMPROW rows[8];
    int16_t *quant = jpeg->comp_info[0].dct_table;
    for (int k = 0; k < 64; k++) {
        block[jpeg_natural_order[k]] = values[k];
        quant[jpeg_natural_order[k]] = factors[k];
    }
    memset(samples, UNTOUCHED, 64);
    for (int row = 0; row < 8; row++)
        rows[row] = samples + 8 * row;
    jpeg->idct->inverse_DCT[0](jpeg, &jpeg->comp_info[0], block, rows, 0);
}

static void ours(idct *transform, uint8_t samples[64])
{
    _Alignas(64) int16_t block[64], quant[64];
    uint8_t *rows[8];
    const uint8_t *order = weir_jpeg_idct_order();
    for (int k = 0; k < 64; k++) {
        block[order[k]] = values[k];
        quant[order[k]] = factors[k];
    }
    memset(samples, UNTOUCHED, 64);
    for (int row = 0; row < 8; row++)
        rows[row] = samples + 8 * row - 5;
    transform(block, quant, rows, 5);
}

static void compare(const char *name, idct *transform, const uint8_t expected[64])
{
    uint8_t samples[64];
    ours(transform, samples);
    if (memcmp(samples, expected, sizeof samples) == 0)
        return;
    for (int k = 0; k < 64; k++)
        fprintf(stderr, "%d x %d%s", values[k], factors[k], k < 63 ? ", " : "\n");
    cr_assert_fail("%s computes different samples from these values and factors (in zigzag order)", name);
}

static void check(void)
{
    uint8_t expected[64];
    for (int i = SIZES - 1; i >= 0; i--) {
        char name[16];
        snprintf(name, sizeof name, "idct %dx%d", sizes[i].size, sizes[i].size);
        library(&jpegs[i], expected);
        compare(name, sizes[i].transform, expected);
    }
    bool only_dc = true;
    for (int k = 1; k < 64; k++)
        only_dc = only_dc && values[k] == 0;
    if (only_dc)
        compare("idct_dc", weir_jpeg_idct_dc, expected);
}

/* Returns a value near the limits of 16 bits, or near the values that the first pass's left shift by two brings there.
 */
static int16_t border(void)
{
    static const int at[] = {0, 1, -1, 4096, -4096, 8191, -8192, 10922, 16383, -16384, 32767, -32767, -32768};
    int near = at[jpeg_choose(&choices, sizeof at / sizeof at[0])] + (int)jpeg_choose(&choices, 5) - 2;
    return (int16_t)near;
}

static int16_t any(unsigned bits)
{
    return (int16_t)((int)jpeg_choose(&choices, 1u << bits) - (1 << bits) / 2);
}

/* Kinds of quantisation tables: 0 = quality 100, 1 = 8-bit, 2 = 16-bit, 3 = limits */
enum { TABLES = 4 };
static void choose_factors(int kind)
{
    for (int k = 0; k < 64; k++) {
        int16_t factor[TABLES] = {1, (int16_t)(1 + jpeg_choose(&choices, 255)), any(16), border()};
        factors[k] = factor[kind];
    }
}

/* ---- tests ---- */

Test(idct, single_coefficients)
{
    if (skipped())
        return;
    for (int k = 0; k < 64; k++)
        for (int i = 0; i < 400; i++) {
            choose_factors(i % TABLES);
            memset(values, 0, sizeof values);
            values[k] = i % 3 ? border() : any(16);
            check();
        }
}

Test(idct, up_to_each_index)
{
    if (skipped())
        return;
    for (int behind = 1; behind <= 64; behind++)
        for (int i = 0; i < 1000; i++) {
            choose_factors(i / 4 % TABLES);
            memset(values, 0, sizeof values);
            for (int k = 0; k < behind; k++)
                values[k] = i % 4 == 0 ? border() : any(i % 4 == 1 ? 16 : i % 4 == 2 ? 12 : 6);
            check();
        }
}

/* Only one row or one column is set. (If only the first row is set, the library uses a shortcut.) Half of the blocks
 * have one more coefficient, whose factor may be 0. */
Test(idct, rows_and_columns)
{
    if (skipped())
        return;
    for (int i = 0; i < 24000; i++) {
        int line = i / 4 % 8;
        choose_factors(i / 64 % TABLES);
        memset(values, 0, sizeof values);
        for (int k = 0; k < 64; k++)
            if ((i % 2 ? jpeg_natural_order[k] % 8 : jpeg_natural_order[k] / 8) == line)
                values[k] = i % 3 ? border() : any(15);
        if (i % 4 > 1) {
            unsigned more = jpeg_choose(&choices, 64);
            values[more] = border();
            factors[more] = i % 5 ? factors[more] : 0;
        }
        check();
    }
}

Test(idct, largest_values)
{
    if (skipped())
        return;
    static const int16_t largest[] = {32767, -32767, -32768};
    for (int i = 0; i < 24000; i++) {
        choose_factors(i % TABLES);
        for (int k = 0; k < 64; k++)
            values[k] = i < 300 ? largest[i % 3] : largest[jpeg_choose(&choices, 3)];
        check();
    }
}

Test(idct, a_few_anywhere)
{
    if (skipped())
        return;
    for (int i = 0; i < 24000; i++) {
        choose_factors(i % TABLES);
        memset(values, 0, sizeof values);
        for (unsigned n = 1 + jpeg_choose(&choices, 6); n > 0; n--)
            values[jpeg_choose(&choices, 64)] = i % 3 ? border() : any(13);
        check();
    }
}

#else
Test(idct, elsewhere)
{
    cr_log_info("skipped: the fast decoder supports x86-64 only");
}
#endif
