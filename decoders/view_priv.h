/* view_priv.h: plans which rows and columns of a stored image are decoded for a view, at which DCT scale, and how they
 * are resampled to the size asked for. A plan is made at a camera's first frame and kept. */
#ifndef WEIR_DECODERS_VIEW_PRIV_H
#define WEIR_DECODERS_VIEW_PRIV_H

#include "decoders/resample_priv.h"
#include "weir/decoder.h"

struct weir_view_plan {
    int stored_width, stored_height;
    struct weir_view view;
    bool scales;                                                     /* the codec can */
    int scale;                                                       /* to so many eighths */
    int width, height, first_row, end_row, first_column, end_column; /* of the scaled image: as in struct weir_rows */
    bool resamples;
    struct weir_resampler resampler;
};

/* The plans of one decoder: one for each camera and codec at most, or the oldest plan is replaced. */
enum { WEIR_VIEW_PLANS_MAX = 64 };
struct weir_view_plans {
    int n, oldest;
    struct weir_view_plan plans[WEIR_VIEW_PLANS_MAX];
};

/* The plan for frames of this size; made at their first. NULL without memory. */
struct weir_view_plan *weir_view_plan(struct weir_view_plans *plans, const struct weir_frame *frame, bool scales);
void weir_view_plans_close(struct weir_view_plans *plans);

/* The nearest pixels of a depth image of the frame's size. */
void weir_view_nearest(const struct weir_frame *frame, const uint16_t *depth, uint16_t *to);

#endif
