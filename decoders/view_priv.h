/* view_priv.h: plans a view of a stored image (the rows and columns to decode, the DCT scale, and the resampling to the
 * output size), and resamples it. A plan is made for a camera's first frame and reused for later frames.
 *
 * An output row is computed as soon as its source rows of interleaved u8 have arrived, first vertically and then
 * horizontally. In each direction, an output pixel is a linear interpolation if the image grows. If it shrinks, it is
 * the mean over its source area, or for WEIR_RESIZE_EXACT weighed by a triangle twice as wide. Plain float arithmetic
 * in a fixed order gives the same bits on every CPU. */
#ifndef WEIR_DECODERS_VIEW_PRIV_H
#define WEIR_DECODERS_VIEW_PRIV_H

#include "weir/decoder.h"

#include <stddef.h>
#include <stdint.h>

/* ---- resampling (resample.c) ---- */

/* The source pixels and their weights for each output pixel, in one direction. */
struct weir_taps {
    int first, end; /* range of source pixels used */
    int most;       /* maximum number of source pixels per output pixel */
    struct weir_tap {
        int first, n;
    } * taps;
    float *weights; /* `most` weights for each output pixel */
};

/* Maps the source range from .. to, in fractional pixels, to n output pixels. Returns 0 or -ENOMEM; close taps in
 * either case. */
int weir_taps_open(struct weir_taps *taps, double from, double to, int n, enum weir_resize resize);
void weir_taps_close(struct weir_taps *taps);

/* Values of a row are processed in groups of this size, also past the end of the row. */
enum { WEIR_RESAMPLE_GROUP = 32 };

struct weir_resampler {
    struct weir_taps x, y;
    int width, height;    /* size of the output */
    int next;             /* next output row */
    size_t values;        /* of a source row: columns x.first .. x.end - 1 */
    size_t stride;        /* the same in whole groups */
    uint8_t *ring;        /* the last y.most source rows */
    float *sums;          /* weighted sums of source rows: one row, then zeros, which are read past its last column */
    uint8_t *row;         /* one output row */
    struct weir_pairs {   /* output columns in pairs, an even number of them (unless AVX2 is unavailable) */
        int most;         /* maximum number of source pixels per output pixel */
        int32_t (*at)[2]; /* first value of each column in `sums` */
        float *weights;   /* for each source pixel of a pair four times the weight of both columns */
    } pairs;
    /* Mixes the source rows of a tap to the output row. */
    void (*mix)(struct weir_resampler *resampler, const struct weir_tap *tap, const float *weights);
};

/* Takes ownership of x and y, even on failure. Returns 0 or -ENOMEM. */
int weir_resampler_open(struct weir_resampler *resampler, struct weir_taps *x, int width, struct weir_taps *y,
                        int height);
void weir_resampler_close(struct weir_resampler *resampler);

/* Adds source row y; pixels starts at column x.first. Rows must arrive in order, and row y.first starts a new image.
 * After each row, call weir_resampler_row until it returns NULL; it returns the output rows that are complete. */
void weir_resampler_put(struct weir_resampler *resampler, int y, const uint8_t *pixels);
const uint8_t *weir_resampler_row(struct weir_resampler *resampler, int y, int *row);

/* Source row y in the ring. */
static inline uint8_t *weir_resampler_ring(const struct weir_resampler *resampler, int y)
{
    return resampler->ring + (size_t)(y % resampler->y.most) * resampler->stride;
}

/* `mix` in plain C; with AVX2 it gives the same bits. */
void weir_resampler_mix(struct weir_resampler *resampler, const struct weir_tap *tap, const float *weights);

/* ---- views (view.c) ---- */

struct weir_view_plan {
    int stored_width, stored_height;
    struct weir_view view;
    bool scales;                                                     /* the codec supports scaling */
    int scale;                                                       /* in eighths */
    int width, height, first_row, end_row, first_column, end_column; /* as in struct weir_rows */
    bool resamples;
    struct weir_resampler resampler;
};

/* Plans of one decoder, usually one per camera and codec. If there are more, a new plan replaces the oldest one. */
enum { WEIR_VIEW_PLANS_MAX = 64 };
struct weir_view_plans {
    enum weir_resize resize;
    int n, oldest;
    struct weir_view_plan plans[WEIR_VIEW_PLANS_MAX];
};

/* Returns the plan for frames with this size and view, and creates it on first use. Returns NULL if out of memory. */
struct weir_view_plan *weir_view_plan(struct weir_view_plans *plans, const struct weir_frame *frame, bool scales);
void weir_view_plans_close(struct weir_view_plans *plans);

/* ---- turning (view.c) ----
 *
 * turn is an EXIF orientation (struct weir_frame_rules); width and height are those of the turned image. */

/* Whether turning exchanges width and height. */
static inline bool weir_turn_transposes(int turn)
{
    return turn >= 5;
}

/* Returns the part of the stored image, and its size after resizing, that a view of the turned image shows. */
struct weir_view weir_turn_view(int turn, const struct weir_view *view, int width, int height);
/* Turns a stored image. `to` must not overlap `from`. */
void weir_turn_pixels(int turn, const void *from, void *to, int width, int height, size_t pixel_bytes);

/* Copies a view of a depth image of the frame's size: each output pixel is the nearest source pixel. */
void weir_view_nearest(const struct weir_frame *frame, const uint16_t *depth, uint16_t *to);

#endif
