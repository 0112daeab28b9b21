/* yuv_priv.h: converts rows of luma and chroma to rows of pixels, with the widest vector instructions of the CPU. Every
 * engine produces the same bits as the plain C one, and those are the bits of FFmpeg's swscale with its default
 * options for 8 bits and 4:2:0 or 4:2:2: 16-bit products that are truncated, and the nearest chroma sample. For other
 * samples swscale interpolates chroma, and its pixels differ a little. */
#ifndef WEIR_DECODERS_VIDEO_YUV_PRIV_H
#define WEIR_DECODERS_VIDEO_YUV_PRIV_H

#include "decoders/video/video.h"

/* Samples are scaled to 11 bits, rounded down. With y = Y - luma_offset, u = U - 1024 and v = V - 1024, a pixel is the
 * clamped sum of products x * factor / 65536, each rounded down: R = y luma + v v_to_r, G = y luma + u u_to_g + v
 * v_to_g, B = y luma + u u_to_b. */
struct weir_yuv {
    int16_t luma_offset, luma, v_to_r, u_to_g, v_to_g, u_to_b;
};

/* Returns 0, or -EBADMSG with the reason why pictures with this matrix cannot be converted. */
int weir_yuv_init(struct weir_yuv *yuv, const struct weir_picture *picture, char *reason);

struct weir_yuv_row {
    const uint8_t *luma, *cb, *cr; /* u16 if bit_depth is more than 8; cb and cr are NULL without chroma */
    int bit_depth;                 /* 8 to 12 */
    bool is_half;                  /* a chroma sample for two pixels instead of one */
    size_t width;                  /* in pixels */
    bool bgr, planes; /* channel order; planes: output width bytes of each channel in turn, not interleaved */
    uint8_t *to;      /* 3 x width bytes */
};

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
#if defined(__x86_64__)
extern const struct weir_yuv_engine weir_yuv_avx2;
#endif

#endif
