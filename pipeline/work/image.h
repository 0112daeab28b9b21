/* image.h: loads one image, from the decode cache or by fetching and decoding, and applies --on-error to bad ones. Each
 * worker's thread passes its own worker. */
#ifndef WEIR_PIPELINE_WORK_IMAGE_H
#define WEIR_PIPELINE_WORK_IMAGE_H

#include "pipeline/samples/faults.h"
#include "pipeline/samples/slot.h"

struct weir_shared;
struct weir_worker;
struct weir_source_mark;

/* Returns the frame's destination if its bytes need no decoding; NULL otherwise. */
void *weir_image_direct(const struct weir_worker *worker, const struct weir_image *image);
/* Copies the frame to its destination if the decode cache has it. */
bool weir_image_cached(struct weir_worker *worker, const struct weir_image *image);
/* Decodes to the frame's destination, and adds good frames to the cache. */
int weir_image_decode(struct weir_worker *worker, const struct weir_image *image, const uint8_t *bytes, size_t length);
/* Loads the frame that the sample at this index of the slot's order owns. Returns 1 if it was submitted to the GPU and
 * completes later. */
int weir_image_load_or_submit(struct weir_worker *worker, struct weir_slot *slot, int at,
                              const struct weir_image *image, char text[WEIR_FAULT_TEXT]);
/* Names and keeps the fault of a failed frame. Returns code, or -ESTALE if its file changed during the read. */
int weir_image_fault(struct weir_worker *worker, const struct weir_image *image, int code, const char *reason,
                     char text[WEIR_FAULT_TEXT]);
/* Applies --on-error to a bad frame. number: its image index in the batch. Returns false when the frame is lost. */
bool weir_image_recover(struct weir_worker *worker, struct weir_slot *slot, int64_t number,
                        const struct weir_image *image, int code, const char *text);

/* Counts a fetch since the mark in the sources and the task's clock; see weir_sources_fetched. */
void weir_image_fetched(struct weir_worker *worker, const struct weir_image *first, int frames,
                        const struct weir_source_mark *mark);

/* ---- dedup.c ----
 *
 * A frame that several samples of a batch need (their histories overlap, or they are the same sample), or one sample
 * several times (the first frame, repeated), is read and decoded once, by the first of them in the slot's order, and
 * copied to its other rows. So no task of a batch waits for another. */

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
