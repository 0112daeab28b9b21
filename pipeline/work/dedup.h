/* dedup.h: deduplication. A frame that several samples of a batch need (overlapping histories, or the same sample
 * twice), or one sample several times (the repeated first frame), is read and decoded once, by the first of them in the
 * slot's order, and copied to its other rows. Tasks of a batch still run in parallel, and none waits for another. */
#ifndef WEIR_PIPELINE_WORK_DEDUP_H
#define WEIR_PIPELINE_WORK_DEDUP_H

#include "pipeline/work/image.h"

struct weir_gpu_source;

/* Returns a frame that the sample at this index of the slot's order owns, at its first position in the history. */
struct weir_image weir_dedup_image(const struct weir_slots *slots, const struct weir_batch_layout *layout,
                                   const struct weir_slot *slot, int at, int camera, int t);
/* Completes a frame that was loaded to its first destination (code 0) or failed with its fault named. Applies
 * --on-error, then copies the frame to its other destinations, or drops the samples that need it. */
void weir_dedup_complete(struct weir_worker *worker, struct weir_slot *slot, int at, const struct weir_image *image,
                         int code, const char *text);
/* Marks the frame, loaded first for the sample at this index, as present on the GPU for all its destinations. */
void weir_dedup_decoded(const struct weir_slots *slots, const struct weir_batch_layout *layout, struct weir_slot *slot,
                        int at, const struct weir_image *image, const struct weir_gpu_source *source);
/* Loads the frames of one camera that the sample owns, and completes those in memory. */
void weir_dedup_load(struct weir_worker *worker, struct weir_slot *slot, int at, int camera);

#endif
