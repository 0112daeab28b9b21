/* view_taps.h: the weights for resampling one direction of a view on a GPU; those of the CPU's resampler
 * (view_priv.h). */
#ifndef WEIR_DECODERS_VIEW_TAPS_H
#define WEIR_DECODERS_VIEW_TAPS_H

#include "weir/decoder.h"

/* Output pixel i is the sum of n[i] stored pixels from first[i] on, weighted by weights[i * most ..]. */
struct weir_view_taps {
    int size, most; /* output pixels; weights per pixel */
    int32_t *first, *n;
    float *weights;
};
/* Returns 0 or -ENOMEM; close it in either case. rows: the vertical direction. */
int weir_view_taps_open(struct weir_view_taps *taps, const struct weir_view *view, bool rows);
void weir_view_taps_close(struct weir_view_taps *taps);

#endif
