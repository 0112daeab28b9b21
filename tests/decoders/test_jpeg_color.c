/* Rows converted with AVX-512 and with AVX2 are equal, for every subsampling, order of channels and width, and neither
 * writes past the row. That they equal the library's rows is in test_turbo.c. */
#include "decoders/jpeg_fast_priv.h"
#include "tests/fixtures/jpeg_choices.h"

#include <criterion/criterion.h>
#include <string.h>

#if defined(__x86_64__)

enum { WIDTH_MAX = 200, PADDED = 256, PIXELS = 3 * WIDTH_MAX, CANARY = 64 };

static uint8_t samples[5][PADDED]; /* luma, and near and far of both kinds of chroma */
static uint16_t sums[2][PADDED + 2 * WEIR_JPEG_ROW_SLACK];

static struct weir_jpeg_row row_of(int chroma, size_t width, bool bgr, bool planes, uint8_t *to)
{
    return (struct weir_jpeg_row){
        .chroma = (enum weir_jpeg_chroma)chroma,
        .luma = samples[0],
        .near = {samples[1], samples[2]},
        .far = {samples[3], samples[4]},
        .width = width,
        .chroma_width = chroma == WEIR_JPEG_444 ? width : (width + 1) / 2,
        .sums = {sums[0] + WEIR_JPEG_ROW_SLACK, sums[1] + WEIR_JPEG_ROW_SLACK},
        .bgr = bgr,
        .planes = planes,
        .to = to,
    };
}

static void fill(struct jpeg_choices *choices)
{
    for (size_t row = 0; row < sizeof samples / sizeof samples[0]; row++)
        for (size_t x = 0; x < PADDED; x++)
            samples[row][x] = (uint8_t)jpeg_choose(choices, 256);
}

static void compare(int chroma, size_t width, bool bgr, bool planes)
{
    uint8_t narrow[PIXELS + CANARY], wide[PIXELS + CANARY];
    memset(narrow, 0xA5, sizeof narrow);
    memset(wide, 0xA5, sizeof wide);
    struct weir_jpeg_row row = row_of(chroma, width, bgr, planes, narrow);
    weir_jpeg_color_row_avx2(&row);
    row.to = wide;
    weir_jpeg_color_row_avx512(&row);
    cr_assert_arr_eq(narrow, wide, sizeof wide, "chroma %d, width %zu, bgr %d, planes %d", chroma, width, bgr, planes);
    for (size_t i = 3 * width; i < sizeof wide; i++)
        cr_assert_eq(wide[i], 0xA5, "chroma %d, width %zu: byte %zu is past the row", chroma, width, i);
}

Test(jpeg_color, avx512_equals_avx2)
{
    if (!weir_jpeg_scan_cpu() || !weir_jpeg_color_has_avx512())
        cr_skip_test("this CPU lacks AVX-512");
    struct jpeg_choices choices = jpeg_choices_of_seed(5);
    for (size_t width = 5; width <= WIDTH_MAX; width++)
        for (int kind = 0; kind < 12; kind++) {
            fill(&choices);
            compare(kind % 3, width, kind & 4, kind >= 6);
        }
}

#endif
