/* coalesce.h: loads frames that share chunks together. Each chunk of a block is read and unpacked once for all samples
 * of the batch that need it (with all frames of their histories), and for samples of later batches. */
#ifndef WEIR_PIPELINE_WORK_COALESCE_H
#define WEIR_PIPELINE_WORK_COALESCE_H

#include "pipeline/work/image.h"

/* Frames of one block that are loaded together. Allocated at open, for a whole batch and samples of later batches. */
struct weir_gather {
    struct weir_member {
        struct weir_slot *slot;
        int at;  /* index of the sample in the slot's order */
    } * members; /* samples loaded together: first those of the task's batch, then those of later batches */
    int n_members, n_current;
    int capacity, n_again; /* length of the array frames; number of frames set aside at its end (gather_frame) */
    struct weir_gather_frame {
        struct weir_image image;
        struct weir_slot *slot;
        int at;   /* index, in the slot's order, of the sample that owns the frame */
        int code; /* result of decoding a video's frame */
    } * frames;
    int *ts;
    uint8_t **rows, *scratch;
    size_t scratch_bytes;
};

bool weir_coalesce_applies(const struct weir_shared *shared, const struct weir_slot *slot, int sample, int camera);
/* Claims the samples to load together with this one: those of its batch whose frames of the camera are in the same
 * blocks, and some of later batches that need only these blocks. Stores them in worker->gather, which stays empty if
 * another task has claimed this sample. Each sample of a later batch adds a task to its slot, which the caller must
 * end. */
void weir_coalesce_claim(struct weir_worker *worker, struct weir_slot *slot, int sample, int camera);
/* Loads the claimed samples. */
void weir_coalesce_load(struct weir_worker *worker, int camera);
int weir_gather_open(struct weir_gather *gather, const struct weir_shared *shared);
void weir_gather_close(struct weir_gather *gather);

#endif
