/* view_taps.h: the weights by which one direction of a view is resampled, for code that resamples elsewhere: a GPU. The
 * CPU's own resampler (resample_priv.h) uses the same. */
#ifndef WEIR_DECODERS_VIEW_TAPS_H
#define WEIR_DECODERS_VIEW_TAPS_H

#include "weir/decoder.h"

/* Pixel i of the result is the sum of n[i] pixels of the stored image from first[i] on, with weights[i * most ..]. */
struct weir_view_taps {
    int size, most; /* pixels of the result; weights of each */
    int32_t *first, *n;
    float *weights;
};
/* 0 or -ENOMEM; to be closed either way. rows: the vertical direction. */
int weir_view_taps_open(struct weir_view_taps *taps, const struct weir_view *view, bool rows);
void weir_view_taps_close(struct weir_view_taps *taps);

#endif
