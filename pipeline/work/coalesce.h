/* coalesce.h: frames that lie in chunks together are loaded together: each chunk of a block is read and unpacked once
 * for all samples of the batch (and all frames of their histories) that need it, and for samples of batches behind it.
 */
#ifndef WEIR_PIPELINE_WORK_COALESCE_H
#define WEIR_PIPELINE_WORK_COALESCE_H

#include "pipeline/work/image.h"

/* Chunk coalescing: what frames of one block need while they are loaded together; sized at open, for a whole batch and
 * what may join. */
struct weir_gather {
    struct weir_member {
        struct weir_slot *slot;
        int at;  /* in the slot's order */
    } * members; /* loaded together: those of its batch first, then of later ones */
    int n_members, n_current;
    int capacity, n_again; /* of frames; those at their end that are to wait: see weir_coalesce_load */
    struct weir_gather_frame {
        struct weir_image image;
        struct weir_slot *slot;
        int at; /* in the slot's order: the sample that owns it */
    } * frames;
    int *ts;
    uint8_t **rows, *scratch;
    size_t scratch_bytes;
};

bool weir_coalesce_applies(const struct weir_shared *shared, const struct weir_slot *slot, int sample, int camera);
/* Takes the samples that are to be loaded together with this one: those of its batch whose frames of the camera lie in
 * the same blocks, and of later batches some that need nothing but these blocks. They are in worker->gather; none when
 * somebody else has the sample. Each sample of a later batch is one more task of its slot, which the caller owes. */
void weir_coalesce_claim(struct weir_worker *worker, struct weir_slot *slot, int sample, int camera);
/* Loads what was claimed. */
void weir_coalesce_load(struct weir_worker *worker, int camera);
int weir_gather_open(struct weir_gather *gather, const struct weir_shared *shared);
void weir_gather_close(struct weir_gather *gather);

#endif
