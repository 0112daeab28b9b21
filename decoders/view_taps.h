/* view_taps.h: weights for resampling a view on a GPU, in one direction. They are equal to those of the CPU's resampler
 * (view_priv.h). */
#ifndef WEIR_DECODERS_VIEW_TAPS_H
#define WEIR_DECODERS_VIEW_TAPS_H

#include "weir/decoder.h"

/* Output pixel i is the weighted sum of the n[i] stored pixels from first[i] on; their weights start at weights[i *
 * most]. */
struct weir_view_taps {
    int size, most; /* number of output pixels; maximum number of weights per output pixel */
    int32_t *first, *n;
    float *weights;
};
/* rows: whether the direction is vertical. Returns 0 or -ENOMEM; close taps in either case. */
int weir_view_taps_open(struct weir_view_taps *taps, const struct weir_view *view, enum weir_resize resize, bool rows);
void weir_view_taps_close(struct weir_view_taps *taps);

#endif
