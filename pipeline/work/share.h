/* share.h: a frame that several samples of a batch need (their histories overlap, or they are the same sample) or one
 * sample several times (the first frame, repeated) is read and decoded once, by the first of them in the slot's order,
 * and copied to its other rows. So the tasks of a batch still run side by side, and none waits for another. */
#ifndef WEIR_PIPELINE_WORK_SHARE_H
#define WEIR_PIPELINE_WORK_SHARE_H

#include "pipeline/work/image.h"

struct weir_gpu_source;

/* A frame that the sample at this place of the slot's order owns, and the first place in its row. */
struct weir_image weir_share_image(const struct weir_shared *shared, const struct weir_slot *slot, int at, int camera,
                                   int t);
/* The frame was loaded to its first place (code 0), or failed, its fault named: does what --on-error says, and copies
 * it to its other places or gives up the samples that need it. */
void weir_share_settle(struct weir_worker *worker, struct weir_slot *slot, int at, const struct weir_image *image,
                       int code, const char *text);
/* The frame, first loaded for the sample at this place, lies on the GPU: in all its places. */
void weir_share_decoded(const struct weir_shared *shared, struct weir_slot *slot, int at,
                        const struct weir_image *image, const struct weir_gpu_source *source);
/* Loads the frames of one camera that the sample owns, and settles those that are there. */
void weir_share_load(struct weir_worker *worker, struct weir_slot *slot, int at, int camera);
/* True when the sample at this later place of the order needs frames that the one at place at owns. */
bool weir_share_needs(const struct weir_shared *shared, const struct weir_slot *slot, int at, int later);

#endif
