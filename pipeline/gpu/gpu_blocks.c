#include "pipeline/gpu/gpu_blocks.h"
#include "base/text.h"
#include "weir/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { SPARES_MAX = 4 }; /* max spare blocks: enough for a loop that keeps a few recent batches */

struct weir_gpu_blocks {
    pthread_mutex_t lock;
    struct weir_device *device;
    size_t bytes;
    int n, spares;                       /* number of allocated blocks; number of spare blocks among them */
    struct weir_gpu_block *first, **end; /* list of spare blocks, in order of release */
    void *gather;                        /* stream that waits for several streams of a release; NULL until needed */
    bool closed;
};

int weir_gpu_blocks_open(struct weir_gpu_blocks **out, struct weir_device *device, size_t bytes, struct weir_err *err)
{
    struct weir_gpu_blocks *blocks = calloc(1, sizeof *blocks);
    *out = blocks;
    if (!blocks)
        return weir_err_set(err, -ENOMEM, "out of memory");
    pthread_mutex_init(&blocks->lock, NULL);
    blocks->device = weir_device_share(device);
    blocks->bytes = bytes;
    blocks->end = &blocks->first;
    return 0;
}

static void free_block(struct weir_gpu_blocks *blocks, struct weir_gpu_block *block)
{
    struct weir_device *device = blocks->device;
    if (block->memory) {
        device->ops->free(device->gpu, block->memory);
        weir_memory_reserved(-(int64_t)blocks->bytes, device->number);
    }
    if (block->released)
        device->ops->event_free(device->gpu, block->released);
    free(block);
}

static void free_blocks(struct weir_gpu_blocks *blocks)
{
    if (blocks->gather)
        blocks->device->ops->stream_free(blocks->device->gpu, blocks->gather);
    weir_device_close(&blocks->device);
    pthread_mutex_destroy(&blocks->lock);
    free(blocks);
}

/* Call with the lock held. */
static struct weir_gpu_block *take_spare(struct weir_gpu_blocks *blocks)
{
    struct weir_gpu_block *block = blocks->first;
    if (!block)
        return NULL;
    blocks->first = block->next;
    if (!blocks->first)
        blocks->end = &blocks->first;
    blocks->spares--;
    block->next = NULL;
    return block;
}

void weir_gpu_blocks_close(struct weir_gpu_blocks **pointer)
{
    struct weir_gpu_blocks *blocks = *pointer;
    if (!blocks)
        return;
    struct weir_gpu_block *block;
    pthread_mutex_lock(&blocks->lock);
    blocks->closed = true;
    while ((block = take_spare(blocks)) != NULL) {
        free_block(blocks, block);
        blocks->n--;
    }
    bool last = blocks->n == 0;
    pthread_mutex_unlock(&blocks->lock);
    if (last)
        free_blocks(blocks);
    *pointer = NULL;
}

static int check_memory(struct weir_gpu_blocks *blocks, struct weir_err *err)
{
    struct weir_device *device = blocks->device;
    uint64_t available = 0, all;
    int rc = device->ops->memory(device->gpu, &available, &all, err);
    if (rc == 0 && blocks->bytes > available / 2)
        rc = weir_err_set(
            err, -ENOMEM,
            "GPU %d: too little memory for another batch while some are kept: it needs %s, but may use only half "
            "of the %s that are free; release kept batches",
            device->number, weir_size((double)blocks->bytes).text, weir_size((double)available).text);
    return rc;
}

static int new_block(struct weir_gpu_blocks *blocks, struct weir_gpu_block **out, struct weir_err *err)
{
    struct weir_device *device = blocks->device;
    struct weir_gpu_block *block = calloc(1, sizeof *block);
    if (!block)
        return weir_err_set(err, -ENOMEM, "out of memory");
    block->blocks = blocks;
    int rc = device->ops->alloc(device->gpu, blocks->bytes, &block->memory, err);
    if (rc == 0) {
        weir_memory_reserved((int64_t)blocks->bytes, device->number);
        rc = device->ops->event_new(device->gpu, true, &block->released, err);
    }
    if (rc < 0) {
        free_block(blocks, block);
        return rc;
    }
    *out = block;
    return 0;
}

int weir_gpu_block_take(struct weir_gpu_blocks *blocks, bool another, struct weir_gpu_block **out, struct weir_err *err)
{
    pthread_mutex_lock(&blocks->lock);
    *out = take_spare(blocks);
    pthread_mutex_unlock(&blocks->lock);
    if (*out)
        return 0;
    int rc = another ? check_memory(blocks, err) : 0;
    if (rc == 0)
        rc = new_block(blocks, out, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&blocks->lock);
    blocks->n++;
    pthread_mutex_unlock(&blocks->lock);
    return 0;
}

/* Records the event after the work of all streams. A separate stream waits for them, so that they do not wait for each
 * other. */
static int gather(struct weir_gpu_blocks *blocks, void *event, void *const *streams, int n, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = blocks->device->ops;
    struct weir_gpu *gpu = blocks->device->gpu;
    int rc = blocks->gather ? 0 : ops->stream_new(gpu, false, &blocks->gather, err);
    for (int i = 0; i < n && rc == 0; i++) {
        rc = ops->record(gpu, event, streams[i], err);
        if (rc == 0) /* waits for this recording of the event; later ones do not affect it */
            rc = ops->stream_wait(gpu, blocks->gather, event, err);
    }
    return rc == 0 ? ops->record(gpu, event, blocks->gather, err) : rc;
}

int weir_gpu_block_release(struct weir_gpu_block *block, void *const *streams, int n, struct weir_err *err)
{
    struct weir_gpu_blocks *blocks = block->blocks;
    int rc = 0;
    if (n == 1) {
        rc = blocks->device->ops->record(blocks->device->gpu, block->released, streams[0], err);
    } else if (n > 1) {
        pthread_mutex_lock(&blocks->lock);
        rc = gather(blocks, block->released, streams, n, err);
        pthread_mutex_unlock(&blocks->lock);
    }
    block->pending = n > 0 && rc == 0;
    return rc;
}

void weir_gpu_block_give(struct weir_gpu_block *block)
{
    if (!block)
        return;
    struct weir_gpu_blocks *blocks = block->blocks;
    pthread_mutex_lock(&blocks->lock);
    bool spare = !blocks->closed && blocks->spares < SPARES_MAX;
    if (spare) {
        *blocks->end = block;
        blocks->end = &block->next;
        blocks->spares++;
    }
    pthread_mutex_unlock(&blocks->lock);
    if (spare)
        return;
    free_block(blocks, block); /* may block, so the lock is not held */
    pthread_mutex_lock(&blocks->lock);
    bool last = --blocks->n == 0 && blocks->closed;
    pthread_mutex_unlock(&blocks->lock);
    if (last)
        free_blocks(blocks);
}

size_t weir_gpu_blocks_bytes(struct weir_gpu_blocks *blocks)
{
    pthread_mutex_lock(&blocks->lock);
    size_t bytes = (size_t)blocks->n * blocks->bytes;
    pthread_mutex_unlock(&blocks->lock);
    return bytes;
}

struct weir_device *weir_gpu_block_device(const struct weir_gpu_block *block)
{
    return block->blocks->device;
}
