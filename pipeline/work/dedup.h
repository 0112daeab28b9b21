/* dedup.h: deduplication: a frame that several samples of a batch need (their histories overlap, or they are the same
 * sample) or one sample several times (the first frame, repeated) is read and decoded once, by the first of them in the
 * slot's order, and copied to its other rows. So the tasks of a batch still run side by side, and none waits for
 * another. */
#ifndef WEIR_PIPELINE_WORK_DEDUP_H
#define WEIR_PIPELINE_WORK_DEDUP_H

#include "pipeline/work/image.h"

struct weir_gpu_source;

/* A frame that the sample at this index of the slot's order owns, and its first position in the history. */
struct weir_image weir_dedup_image(const struct weir_slots *slots, const struct weir_batch_layout *layout,
                                   const struct weir_slot *slot, int at, int camera, int t);
/* The frame was loaded to its first destination (code 0), or failed, its fault named: applies --on-error, and copies it
 * to its other destinations or gives up the samples that need it. */
void weir_dedup_complete(struct weir_worker *worker, struct weir_slot *slot, int at, const struct weir_image *image,
                         int code, const char *text);
/* The frame, first loaded for the sample at this index, lies on the GPU: so it does for all its destinations. */
void weir_dedup_decoded(const struct weir_slots *slots, const struct weir_batch_layout *layout, struct weir_slot *slot,
                        int at, const struct weir_image *image, const struct weir_gpu_source *source);
/* Loads the frames of one camera that the sample owns, and completes those that are there. */
void weir_dedup_load(struct weir_worker *worker, struct weir_slot *slot, int at, int camera);

#endif
