/* resample_priv.h: rows of interleaved u8 to rows of another size, as they come. Every pixel of the result is the mean
 * over its area where the image shrinks, and between its two neighbours where it grows; each direction by itself. Plain
 * float arithmetic in a fixed order: the same bits on every CPU. */
#ifndef WEIR_DECODERS_RESAMPLE_PRIV_H
#define WEIR_DECODERS_RESAMPLE_PRIV_H

#include <stddef.h>
#include <stdint.h>

/* Where the pixels of one direction come from. */
struct weir_taps {
    int first, end; /* of the source, all that is used of it */
    int most;       /* taps of one pixel */
    struct weir_tap {
        int first, n;
    } * taps;
    float *weights; /* most for each pixel */
};

/* from .. to of the source, in pixels and fractions of them, becomes n pixels. 0 or -ENOMEM. */
int weir_taps_open(struct weir_taps *taps, double from, double to, int n);
void weir_taps_close(struct weir_taps *taps);

struct weir_resampler {
    struct weir_taps x, y;
    int width, height; /* of the result */
    int next;          /* row of the result */
    uint8_t *ring;     /* the last y.most rows of the source, columns x.first .. x.end - 1 */
    float *sums;       /* one row of them, weighted */
    uint8_t *row;      /* of the result */
};

/* x and y become the resampler's, also when it fails. */
int weir_resampler_open(struct weir_resampler *resampler, struct weir_taps *x, int width, struct weir_taps *y,
                        int height);
void weir_resampler_close(struct weir_resampler *resampler);

/* Source row y, from column x.first on; rows come in order from y.first, which begins an image anew. Then take the rows
 * of the result, in order, with weir_resampler_row until it gives NULL. */
void weir_resampler_put(struct weir_resampler *resampler, int y, const uint8_t *pixels);
const uint8_t *weir_resampler_row(struct weir_resampler *resampler, int y, int *row);

#endif
