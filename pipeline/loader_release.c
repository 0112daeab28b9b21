/* Returns, reuses and hands over the memory of batches. */
#include "base/resources.h"
#include "pipeline/loader_priv.h"
#include "pipeline/offload/upload.h"
#include "weir/loader.h"

#include <errno.h>

/* Arms the slot of a returned batch for its next batch. */
static void reuse(struct weir_loader *loader, uint64_t sequence)
{
    struct weir_shared *s = &loader->shared;
    sequence += (uint64_t)s->slots.n;
    loader->lent--;
    if (sequence < s->setup.total && !loader->finished)
        weir_slot_arm(&s->slots, s->setup.sampler, sequence);
}

static void release_uploaded(struct weir_loader *loader, const struct weir_batch *batch, void *const *streams, int n)
{
    struct weir_upload *upload = loader->shared.upload;
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_upload_return(upload, weir_upload_batch_of(upload, batch->plan.sequence), streams, n, &err) < 0)
        weir_upload_fail(upload, &err);
    loader->lent--;
}

void weir_loader_release(struct weir_loader *loader, struct weir_batch *batch)
{
    WEIR_OPERATOR("weir_loader_release");
    struct weir_shared *s = &loader->shared;
    if (s->upload) {
        release_uploaded(loader, batch, NULL, 0);
        return;
    }
    weir_slot_release(&s->slots, weir_slot_of(&s->slots, batch->plan.sequence));
    reuse(loader, batch->plan.sequence);
}

static int keep_uploaded(struct weir_loader *loader, uint64_t sequence, struct weir_kept *kept, struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    struct weir_upload *upload = s->upload;
    bool another = !loader->finished && sequence + (uint64_t)upload->n_batches < s->setup.total;
    int rc = weir_upload_keep(upload, weir_upload_batch_of(upload, sequence), another, &kept->block, err);
    if (rc < 0)
        return rc;
    kept->memory = kept->block->memory;
    kept->bytes = upload->layout.slot_bytes;
    loader->lent--;
    return 0;
}

int weir_loader_keep(struct weir_loader *loader, struct weir_batch *batch, struct weir_kept *kept, struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    uint64_t sequence = batch->plan.sequence;
    *kept = (struct weir_kept){0};
    if (s->upload)
        return keep_uploaded(loader, sequence, kept, err);
    bool another = !loader->finished && sequence + (uint64_t)s->slots.n < s->setup.total;
    int rc = weir_slot_move(&s->slots, weir_slot_of(&s->slots, sequence), another, &kept->memory, err);
    if (rc < 0)
        return rc;
    kept->bytes = s->slots.slot_bytes;
    reuse(loader, sequence);
    return 0;
}

void weir_loader_free_kept(const struct weir_kept *kept, void *const *streams, int n)
{
    if (!kept->block) {
        weir_memory_unmap(kept->memory, kept->bytes);
        return;
    }
    weir_gpu_block_release(kept->block, streams, n, NULL); /* errors are ignored, since a lost GPU is idle */
    weir_gpu_block_give(kept->block);
}

void weir_loader_release_after(struct weir_loader *loader, struct weir_batch *batch, void *stream)
{
    weir_loader_release_after_all(loader, batch, &stream, 1);
}

void weir_loader_release_after_all(struct weir_loader *loader, struct weir_batch *batch, void *const *streams, int n)
{
    if (!loader->shared.upload) {
        weir_loader_release(loader, batch);
        return;
    }
    WEIR_OPERATOR("weir_loader_release");
    release_uploaded(loader, batch, streams, n);
}

int weir_loader_wait(struct weir_loader *loader, struct weir_batch *batch, void *stream, struct weir_err *err)
{
    struct weir_upload *upload = loader->shared.upload;
    return upload ? weir_upload_order(upload, weir_upload_batch_of(upload, batch->plan.sequence), stream, err) : 0;
}

int weir_loader_mark(struct weir_loader *loader, const struct weir_batch *batch, int stage, void *stream,
                     struct weir_err *err)
{
    struct weir_upload *upload = loader->shared.upload;
    if (!upload)
        return 0;
    return weir_upload_mark(upload, weir_upload_batch_of(upload, batch->plan.sequence), stage, stream, err);
}

int weir_loader_step_end(struct weir_loader *loader, struct weir_batch *batch, void *stream, struct weir_err *err)
{
    struct weir_upload *upload = loader->shared.upload;
    return upload ? weir_upload_step_end(upload, weir_upload_batch_of(upload, batch->plan.sequence), stream, err) : 0;
}
