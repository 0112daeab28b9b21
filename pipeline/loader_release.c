/* What becomes of a batch's memory when the consumer is done with it, or is not. */
#include "base/memory.h"
#include "pipeline/gpu/upload.h"
#include "pipeline/loader.h"
#include "pipeline/loader_priv.h"

#include <errno.h>

/* The slot of a batch that is not out any more carries the next one. */
static void reuse(struct weir_loader *loader, uint64_t sequence)
{
    struct weir_shared *s = &loader->shared;
    sequence += (uint64_t)s->slots.n;
    loader->lent--;
    if (sequence < s->setup.total && !loader->finished)
        weir_slot_arm(&s->slots, s->setup.sampler, sequence);
}

static void release_uploaded(struct weir_loader *loader, const struct weir_batch *batch, bool ordered, void *stream)
{
    struct weir_upload *upload = loader->shared.upload;
    struct weir_err err = WEIR_ERR_NONE;
    loader->lent--;
    if (weir_upload_return(upload, weir_upload_batch_of(upload, batch->plan.sequence), ordered, stream, &err) < 0)
        weir_upload_fail(upload, &err);
}

void weir_loader_release(struct weir_loader *loader, struct weir_batch *batch)
{
    WEIR_OPERATOR("weir_loader_release");
    struct weir_shared *s = &loader->shared;
    if (s->upload) {
        release_uploaded(loader, batch, false, NULL);
        return;
    }
    weir_slot_release(&s->slots, weir_slot_of(&s->slots, batch->plan.sequence));
    reuse(loader, batch->plan.sequence);
}

int weir_loader_keep(struct weir_loader *loader, struct weir_batch *batch, void **memory, size_t *bytes,
                     struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    uint64_t sequence = batch->plan.sequence;
    *memory = NULL;
    if (s->upload)
        return weir_err_set(err, -ENOTSUP,
                            "the memory of batches on a GPU cannot be kept; copy what is needed of them");
    bool another = !loader->finished && sequence + (uint64_t)s->slots.n < s->setup.total;
    int rc = weir_slot_move(&s->slots, weir_slot_of(&s->slots, sequence), another, memory, err);
    if (rc < 0)
        return rc;
    *bytes = s->slots.slot_bytes;
    reuse(loader, sequence);
    return 0;
}

void weir_loader_free_kept(void *memory, size_t bytes)
{
    weir_memory_unmap(memory, bytes);
}

void weir_loader_release_after(struct weir_loader *loader, struct weir_batch *batch, void *stream)
{
    if (!loader->shared.upload) {
        weir_loader_release(loader, batch);
        return;
    }
    WEIR_OPERATOR("weir_loader_release");
    release_uploaded(loader, batch, true, stream);
}

int weir_loader_wait(struct weir_loader *loader, struct weir_batch *batch, void *stream, struct weir_err *err)
{
    struct weir_upload *upload = loader->shared.upload;
    return upload ? weir_upload_order(upload, weir_upload_batch_of(upload, batch->plan.sequence), stream, err) : 0;
}
