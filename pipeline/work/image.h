/* image.h: loads one image from the decode cache, or by fetching and decoding it, and applies --on-error to bad images.
 * Each worker's thread must pass its own worker. */
#ifndef WEIR_PIPELINE_WORK_IMAGE_H
#define WEIR_PIPELINE_WORK_IMAGE_H

#include "pipeline/samples/file_watch.h"
#include "pipeline/samples/slot.h"

struct weir_shared;
struct weir_worker;
struct weir_source_mark;

/* Returns whether the bytes of a camera's frames need no decoding. */
bool weir_image_is_direct(const struct weir_worker *worker, int episode, int camera);
/* Returns the frame's destination if its bytes need no decoding; otherwise NULL. */
void *weir_image_direct(const struct weir_worker *worker, const struct weir_image *image);
/* Copies the frame to its destination if the decode cache contains it. Returns whether it did. */
bool weir_image_cached(struct weir_worker *worker, const struct weir_image *image);
/* Decodes the bytes to the frame's destination and adds good frames to the cache. */
int weir_image_decode(struct weir_worker *worker, const struct weir_image *image, const uint8_t *bytes, size_t length);
/* Loads the frame, which the sample at this index of the slot's order owns. Returns 0, 1 if the frame was submitted to
 * the GPU and will be completed later, or a negative code with the fault in text. */
int weir_image_load_or_submit(struct weir_worker *worker, struct weir_slot *slot, int at,
                              const struct weir_image *image, char text[WEIR_FAULT_TEXT]);
/* Writes the message about a failed frame to text and keeps the fault, unless it is a resource shortage. Returns code,
 * or -ESTALE if the file changed during the read. */
int weir_image_fault(struct weir_worker *worker, const struct weir_image *image, int code, const char *reason,
                     char text[WEIR_FAULT_TEXT]);
/* Applies --on-error to a bad frame. number: index of its image in the batch. Returns true if the frame was
 * substituted, or false if it is lost. */
bool weir_image_recover(struct weir_worker *worker, struct weir_slot *slot, int64_t number,
                        const struct weir_image *image, int code, const char *text);

/* Adds a fetch since the mark to the sources and to the task's clock; see weir_sources_fetched. */
void weir_image_fetched(struct weir_worker *worker, const struct weir_image *first, int frames,
                        const struct weir_source_mark *mark);

/* ---- dedup.c ----
 *
 * Several samples of a batch can need the same frame, if their windows overlap or they are the same sample. One sample
 * can also need a frame several times, if the first or last frame of an episode is repeated. Such a frame is read and
 * decoded once, by the first of these samples in the slot's order, and copied to its other rows. Therefore no task of a
 * batch waits for another. */

struct weir_gpu_source;

/* Describes frame t of a camera, which the sample at this index of the slot's order owns, with its first destination in
 * that order. Returns false if no sample needs the frame. */
bool weir_dedup_image(const struct weir_slots *slots, const struct weir_slot *slot, int at, int camera, int t,
                      struct weir_image *image);
/* Completes a frame that was loaded to its first destination (code 0), or that failed and whose fault was kept. Applies
 * --on-error. Then copies the frame to its other destinations, or drops the samples that need it. */
void weir_dedup_complete(struct weir_worker *worker, struct weir_slot *slot, int at, const struct weir_image *image,
                         int code, const char *text);
/* Marks the frame, which was loaded for the sample at this index, as present on the GPU for all its destinations. */
void weir_dedup_decoded(const struct weir_slots *slots, struct weir_slot *slot, int at, const struct weir_image *image,
                        const struct weir_gpu_source *source);
/* Loads the frames of one camera that the sample owns. Completes them, except those that were submitted to the GPU. */
void weir_dedup_load(struct weir_worker *worker, struct weir_slot *slot, int at, int camera);

#endif
