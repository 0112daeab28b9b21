/* yuv_priv.h: converts rows of luma and chroma to rows of pixels, whose bits are those of FFmpeg's swscale with its
 * default options. swscale has two ways to convert:
 *
 * - 8 bits, 4:2:0 or 4:2:2 and an even height: 16-bit products that are truncated, and the nearest chroma sample
 *   (weir_yuv_row_fn). There is an engine for vector instructions, which produces the same bits as the plain C one.
 * - All other pictures: interpolated chroma, with more precision (struct weir_yuv_scaler). */
#ifndef WEIR_DECODERS_VIDEO_YUV_PRIV_H
#define WEIR_DECODERS_VIDEO_YUV_PRIV_H

#include "decoders/video/video.h"

/* Samples are scaled to 11 bits, rounded down. With y = Y - luma_offset, u = U - 1024 and v = V - 1024, a pixel is the
 * clamped sum of products x * factor / 65536, each rounded down: R = y luma + v v_to_r, G = y luma + u u_to_g + v
 * v_to_g, B = y luma + u u_to_b. */
struct weir_yuv {
    int16_t luma_offset, luma, v_to_r, u_to_g, v_to_g, u_to_b;
    /* For struct weir_yuv_scaler, x 65536: luma's factor and bias, and chroma's factors divided by that of luma. */
    struct {
        int32_t bias, luma, v_to_r, u_to_g, v_to_g, u_to_b;
    } exact;
};

/* Returns 0, or -EBADMSG with the reason why pictures with this matrix cannot be converted. */
int weir_yuv_init(struct weir_yuv *yuv, const struct weir_picture *picture, char *reason);

struct weir_yuv_row {
    const uint8_t *luma, *cb, *cr; /* cb and cr have a sample for two pixels */
    size_t width;                  /* in pixels */
    bool bgr, planes; /* channel order; planes: output width bytes of each channel in turn, not interleaved */
    uint8_t *to;      /* 3 x width bytes */
};

/* Offsets of a pixel's channels in a row's output, and of the next pixel. */
struct weir_yuv_places {
    size_t red, green, blue, step;
};
static inline struct weir_yuv_places weir_yuv_places(const struct weir_yuv_row *row)
{
    size_t channel = row->planes ? row->width : 1;
    return (struct weir_yuv_places){row->bgr ? 2 * channel : 0, channel, row->bgr ? 0 : 2 * channel,
                                    row->planes ? 1 : 3};
}

static inline uint8_t weir_yuv_clamped(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Converts a row. Does not read or write past its ends. */
typedef void weir_yuv_row_fn(const struct weir_yuv *yuv, const struct weir_yuv_row *row);

struct weir_yuv_engine {
    const char *name;
    bool (*usable)(void);
    weir_yuv_row_fn *row;
};

/* Returns engine i, fastest first, or NULL past the end. The last one, plain C, is usable on every CPU. */
const struct weir_yuv_engine *weir_yuv_engine(int i);
/* Returns the conversion of the fastest engine that is usable on this CPU. */
weir_yuv_row_fn *weir_yuv_best(void);

/* The plain C engine's conversion. */
void weir_yuv_plain_row(const struct weir_yuv *yuv, const struct weir_yuv_row *row);

/* ---- yuv_scaled.c ---- */

/* Converts pictures whose chroma is interpolated. Belongs to one thread. */
struct weir_yuv_scaler;

/* Returns true for pictures that only struct weir_yuv_scaler can convert. */
bool weir_yuv_is_scaled(const struct weir_picture *picture);
/* Returns 0 or -ENOMEM. */
int weir_yuv_scaler_open(struct weir_yuv_scaler **out);
void weir_yuv_scaler_close(struct weir_yuv_scaler *scaler);
/* Starts a picture. yuv and picture must remain valid until the last row. Returns 0 or -ENOMEM. */
int weir_yuv_scaler_begin(struct weir_yuv_scaler *scaler, const struct weir_yuv *yuv,
                          const struct weir_picture *picture);
/* Converts the pixels of row y from column `first` on. The members luma, cb and cr of `row` are not used. */
void weir_yuv_scaler_row(struct weir_yuv_scaler *scaler, int y, size_t first, const struct weir_yuv_row *row);

#if defined(__x86_64__)
extern const struct weir_yuv_engine weir_yuv_avx2;
#endif

#endif
