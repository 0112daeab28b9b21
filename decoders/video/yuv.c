/* The factors of each matrix, the plain C conversion, and the selection of an engine. */
#include "decoders/video/yuv_priv.h"

#include <errno.h>
#include <stdio.h>

/* Factors x 65536 for limited-range chroma: V to red, U to blue, U to green, V to green. */
static const struct {
    int32_t v_to_r, u_to_b, u_to_g, v_to_g;
} matrices[] = {
    [WEIR_MATRIX_IDENTITY] = {117504, 138453, -13954, -34903},
    [WEIR_MATRIX_709] = {117489, 138438, -13975, -34925},
    [WEIR_MATRIX_UNKNOWN] = {104597, 132201, -25675, -53279},
    [WEIR_MATRIX_RESERVED] = {104597, 132201, -25675, -53279},
    [WEIR_MATRIX_FCC] = {104448, 132798, -24759, -53109},
    [WEIR_MATRIX_BT470BG] = {104597, 132201, -25675, -53279},
    [WEIR_MATRIX_601] = {104597, 132201, -25675, -53279},
    [WEIR_MATRIX_SMPTE240M] = {117579, 136230, -16907, -35559},
    [WEIR_MATRIX_2020] = {110013, 140363, -12277, -42626},
    [WEIR_MATRIX_2020_CONSTANT] = {110013, 140363, -12277, -42626},
};
enum { MATRICES = sizeof matrices / sizeof matrices[0] };

/* Rounds a factor x 65536 to a factor x 8192. */
static int16_t rounded(int32_t factor)
{
    return (int16_t)((factor + 4) >> 3);
}

/* Returns a factor x 65536 divided by another one. */
static int32_t ratio(int32_t factor, int32_t by)
{
    return (int32_t)(((int64_t)factor * 65536 + (1 << 15)) / by);
}

int weir_yuv_init(struct weir_yuv *yuv, const struct weir_picture *picture, char *reason)
{
    int matrix = (int)picture->matrix;
    if (matrix < 0 || matrix >= MATRICES || matrices[matrix].v_to_r == 0) {
        snprintf(reason, WEIR_REASON_MAX, "the video's colour matrix %d is not supported (ISO/IEC 23091-2)", matrix);
        return -EBADMSG;
    }
    bool full = picture->full_range || picture->chroma == WEIR_CHROMA_400; /* swscale ignores the range of gray */
    int32_t luma = full ? 65536 : 65536 * 255 / 219, top = full ? 224 : 255;
    int32_t v_to_r = matrices[matrix].v_to_r * top / 255, u_to_b = matrices[matrix].u_to_b * top / 255;
    int32_t u_to_g = matrices[matrix].u_to_g * top / 255, v_to_g = matrices[matrix].v_to_g * top / 255;
    *yuv = (struct weir_yuv){
        .luma_offset = full ? 0 : 8 * 16,
        .luma = rounded(luma),
        .v_to_r = rounded(v_to_r),
        .u_to_b = rounded(u_to_b),
        .u_to_g = rounded(u_to_g),
        .v_to_g = rounded(v_to_g),
        /* The bias of swscale's table is not exactly that of black: white of limited range becomes 253. */
        .exact = {.bias = (1 << 15) - (full ? 0 : (384 << 16) + (16 << 16) - 326 * luma),
                  .luma = luma,
                  .v_to_r = ratio(v_to_r, luma),
                  .u_to_b = ratio(u_to_b, luma),
                  .u_to_g = ratio(u_to_g, luma),
                  .v_to_g = ratio(v_to_g, luma)},
    };
    return 0;
}

/* ---- plain ---- */

static int product(int value, int factor)
{
    return value * factor >> 16;
}

/* Returns a sample in 11 bits. */
static inline int sample(uint8_t value)
{
    return value << 3;
}

/* What a chroma sample adds to red, green and blue. */
struct tint {
    int red, green, blue;
};

static inline struct tint tint_of(const struct weir_yuv *yuv, uint8_t cb, uint8_t cr)
{
    int u = sample(cb) - 1024, v = sample(cr) - 1024;
    return (struct tint){product(v, yuv->v_to_r), product(u, yuv->u_to_g) + product(v, yuv->v_to_g),
                         product(u, yuv->u_to_b)};
}

void weir_yuv_plain_row(const struct weir_yuv *yuv_in, const struct weir_yuv_row *row_in)
{
    const struct weir_yuv yuv = *yuv_in; /* copies, which stores to the row cannot change */
    const struct weir_yuv_row row = *row_in;
    const struct weir_yuv_places places = weir_yuv_places(&row);
    struct tint tint = {0};
    for (size_t x = 0; x < row.width; x++) {
        if (x % 2 == 0)
            tint = tint_of(&yuv, row.cb[x / 2], row.cr[x / 2]);
        int y = product(sample(row.luma[x]) - yuv.luma_offset, yuv.luma);
        uint8_t *to = row.to + x * places.step;
        to[places.red] = weir_yuv_clamped(y + tint.red);
        to[places.green] = weir_yuv_clamped(y + tint.green);
        to[places.blue] = weir_yuv_clamped(y + tint.blue);
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
