/* The factors of each matrix, the plain C conversion, and the selection of an engine. */
#include "decoders/video/yuv_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Factors x 65536 for limited-range chroma: V to red, U to blue, U to green, V to green. */
static const struct {
    int32_t v_to_r, u_to_b, u_to_g, v_to_g;
} matrices[] = {
    [WEIR_MATRIX_709] = {117489, 138438, -13975, -34925},
    [WEIR_MATRIX_UNKNOWN] = {104597, 132201, -25675, -53279},
    [WEIR_MATRIX_FCC] = {104448, 132798, -24759, -53109},
    [WEIR_MATRIX_BT470BG] = {104597, 132201, -25675, -53279},
    [WEIR_MATRIX_601] = {104597, 132201, -25675, -53279},
    [WEIR_MATRIX_SMPTE240M] = {117579, 136230, -16907, -35559},
    [WEIR_MATRIX_2020] = {110013, 140363, -12277, -42626},
    [WEIR_MATRIX_2020_CONSTANT] = {110013, 140363, -12277, -42626},
};
enum { MATRICES = sizeof matrices / sizeof matrices[0] };

/* Rounds a factor x 65536 to a factor x 8192. */
static int16_t rounded(int32_t factor, bool full_range)
{
    int32_t scaled = full_range ? factor * 224 / 255 : factor;
    return (int16_t)((scaled + 4) >> 3);
}

int weir_yuv_init(struct weir_yuv *yuv, const struct weir_picture *picture, char *reason)
{
    int matrix = (int)picture->matrix;
    bool full = picture->full_range;
    if (matrix < 0 || matrix >= MATRICES || matrices[matrix].v_to_r == 0) {
        snprintf(reason, WEIR_REASON_MAX, "the video's colour matrix %d is not supported (ISO/IEC 23091-2)", matrix);
        return -EBADMSG;
    }
    *yuv = (struct weir_yuv){
        .luma_offset = full ? 0 : 8 * 16,
        .luma = rounded(full ? 65536 : 65536 * 255 / 219, false),
        .v_to_r = rounded(matrices[matrix].v_to_r, full),
        .u_to_b = rounded(matrices[matrix].u_to_b, full),
        .u_to_g = rounded(matrices[matrix].u_to_g, full),
        .v_to_g = rounded(matrices[matrix].v_to_g, full),
    };
    return 0;
}

/* ---- plain ---- */

static int product(int value, int factor)
{
    return value * factor >> 16;
}

static uint8_t clamped(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Returns sample `at` of a row, in 11 bits. */
static inline int sample(const struct weir_yuv_row *row, const uint8_t *samples, size_t at)
{
    if (row->bit_depth == 8)
        return samples[at] << 3;
    uint16_t value;
    memcpy(&value, samples + at * sizeof value, sizeof value);
    return (value << 3) >> (row->bit_depth - 8);
}

/* What a chroma sample adds to red, green and blue. */
struct tint {
    int red, green, blue;
};

static inline struct tint tint_of(const struct weir_yuv *yuv, const struct weir_yuv_row *row, size_t at)
{
    int u = row->cb ? sample(row, row->cb, at) - 1024 : 0, v = row->cr ? sample(row, row->cr, at) - 1024 : 0;
    return (struct tint){product(v, yuv->v_to_r), product(u, yuv->u_to_g) + product(v, yuv->v_to_g),
                         product(u, yuv->u_to_b)};
}

void weir_yuv_plain_row(const struct weir_yuv *yuv_in, const struct weir_yuv_row *row_in)
{
    const struct weir_yuv yuv = *yuv_in; /* copies, which stores to the row cannot change */
    const struct weir_yuv_row row = *row_in;
    size_t step = row.planes ? 1 : 3, to_channel = row.planes ? row.width : 1, shift = row.is_half;
    size_t red = row.bgr ? 2 * to_channel : 0, green = to_channel, blue = row.bgr ? 0 : 2 * to_channel;
    struct tint tint = {0};
    for (size_t x = 0; x < row.width; x++) {
        if ((x & shift) == 0)
            tint = tint_of(&yuv, &row, x >> shift);
        int y = product(sample(&row, row.luma, x) - yuv.luma_offset, yuv.luma);
        uint8_t *to = row.to + x * step;
        to[red] = clamped(y + tint.red);
        to[green] = clamped(y + tint.green);
        to[blue] = clamped(y + tint.blue);
    }
}

static bool always(void)
{
    return true;
}

static const struct weir_yuv_engine plain = {.name = "plain C", .usable = always, .row = weir_yuv_plain_row};

/* ---- selection ---- */

static const struct weir_yuv_engine *const engines[] = {
#if defined(__x86_64__)
    &weir_yuv_avx2,
#endif
    &plain,
};
enum { ENGINES = sizeof engines / sizeof engines[0] };

const struct weir_yuv_engine *weir_yuv_engine(int i)
{
    return i >= 0 && i < ENGINES ? engines[i] : NULL;
}

weir_yuv_row_fn *weir_yuv_best(void)
{
    int i = 0;
    while (!engines[i]->usable())
        i++;
    return engines[i]->row;
}
