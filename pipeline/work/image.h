/* image.h: one image on its way to a batch: from the decode cache, or fetched and decoded; and what --on-error makes of
 * it when it is bad. A worker's thread calls with its own worker. */
#ifndef WEIR_PIPELINE_WORK_IMAGE_H
#define WEIR_PIPELINE_WORK_IMAGE_H

#include "pipeline/faults.h"
#include "pipeline/slot.h"

struct weir_shared;
struct weir_worker;

/* Where the frame's bytes may be put at once, needing no decoding; NULL when they need it. */
void *weir_image_direct(const struct weir_worker *worker, const struct weir_image *image);
/* Copies the frame to its destination when the decode cache has it. */
bool weir_image_cached(struct weir_worker *worker, const struct weir_image *image);
/* Decodes to the frame's destination, and keeps good ones in the cache. */
int weir_image_decode(struct weir_worker *worker, const struct weir_image *image, const uint8_t *bytes, size_t length);
/* The same for the frame that the sample at this index of the slot's order owns; 1: it was handed over to the GPU, and
 * is completed when it comes back. */
int weir_image_load_or_hand_over(struct weir_worker *worker, struct weir_slot *slot, int at,
                                 const struct weir_image *image, char text[WEIR_FAULT_TEXT]);
/* Names and keeps the fault of a frame that failed. code, or -ESTALE where its file changed while it was read. */
int weir_image_fault(struct weir_worker *worker, const struct weir_image *image, int code, const char *reason,
                     char text[WEIR_FAULT_TEXT]);
/* Applies --on-error to a bad frame, number of the batch's images; false when it is lost. */
bool weir_image_recover(struct weir_worker *worker, struct weir_slot *slot, int64_t number,
                        const struct weir_image *image, int code, const char *text);

#endif
