/* resample_priv.h: resizes rows of interleaved u8 as they arrive. Each direction separately: an output pixel is the
 * area mean where the image shrinks, and a linear interpolation where it grows. Plain float arithmetic in a fixed order
 * gives the same bits on every CPU. */
#ifndef WEIR_DECODERS_RESAMPLE_PRIV_H
#define WEIR_DECODERS_RESAMPLE_PRIV_H

#include <stddef.h>
#include <stdint.h>

/* Source pixels and weights of one direction. */
struct weir_taps {
    int first, end; /* used part of the source */
    int most;       /* maximum taps per pixel */
    struct weir_tap {
        int first, n;
    } * taps;
    float *weights; /* most per pixel */
};

/* Maps from .. to of the source (fractional pixels) to n pixels. Returns 0 or -ENOMEM. */
int weir_taps_open(struct weir_taps *taps, double from, double to, int n);
void weir_taps_close(struct weir_taps *taps);

struct weir_resampler {
    struct weir_taps x, y;
    int width, height; /* of the output */
    int next;          /* next output row */
    uint8_t *ring;     /* the last y.most source rows, columns x.first .. x.end - 1 */
    float *sums;       /* their weighted sum, one row */
    uint8_t *row;      /* of the output */
};

/* Takes ownership of x and y, also on failure. */
int weir_resampler_open(struct weir_resampler *resampler, struct weir_taps *x, int width, struct weir_taps *y,
                        int height);
void weir_resampler_close(struct weir_resampler *resampler);

/* Adds source row y, from column x.first on. Rows arrive in order from y.first, which starts a new image. Then call
 * weir_resampler_row for the finished output rows until it returns NULL. */
void weir_resampler_put(struct weir_resampler *resampler, int y, const uint8_t *pixels);
const uint8_t *weir_resampler_row(struct weir_resampler *resampler, int y, int *row);

#endif
