/* view_priv.h: plans which rows and columns of a stored image are decoded for a view, at which DCT scale, and how they
 * are resampled to the output size, and resamples them. A plan is made at a camera's first frame and kept.
 *
 * Rows of interleaved u8 are resized as they arrive, each direction separately: an output pixel is the area mean where
 * the image shrinks, and a linear interpolation where it grows. Plain float arithmetic in a fixed order gives the same
 * bits on every CPU. */
#ifndef WEIR_DECODERS_VIEW_PRIV_H
#define WEIR_DECODERS_VIEW_PRIV_H

#include "weir/decoder.h"

#include <stddef.h>
#include <stdint.h>

/* ---- resampling (resample.c) ---- */

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

/* ---- views (view.c) ---- */

struct weir_view_plan {
    int stored_width, stored_height;
    struct weir_view view;
    bool scales;                                                     /* the codec supports scaling */
    int scale;                                                       /* in eighths */
    int width, height, first_row, end_row, first_column, end_column; /* of the scaled image: as in struct weir_rows */
    bool resamples;
    struct weir_resampler resampler;
};

/* Plans of one decoder, usually one per camera and codec; when full, the oldest is replaced. */
enum { WEIR_VIEW_PLANS_MAX = 64 };
struct weir_view_plans {
    int n, oldest;
    struct weir_view_plan plans[WEIR_VIEW_PLANS_MAX];
};

/* Returns the plan for frames of this size, made on first use; NULL when out of memory. */
struct weir_view_plan *weir_view_plan(struct weir_view_plans *plans, const struct weir_frame *frame, bool scales);
void weir_view_plans_close(struct weir_view_plans *plans);

/* Copies the nearest pixels of a depth image of the frame's size. */
void weir_view_nearest(const struct weir_frame *frame, const uint16_t *depth, uint16_t *to);

#endif
