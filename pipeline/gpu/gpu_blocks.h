/* gpu_blocks.h: GPU memory of output batches, in blocks of one size.
 *
 * A block belongs to an output batch, or to a consumer that keeps the batch, or is spare. A consumer states the streams
 * whose work must finish before the block is reused; the next batch in the block waits for that work, the consumer does
 * not. Blocks may outlive the loader: the last one frees the shared state. Any thread, each block by one at a time. */
#ifndef WEIR_PIPELINE_GPU_GPU_BLOCKS_H
#define WEIR_PIPELINE_GPU_GPU_BLOCKS_H

#include "pipeline/gpu/gpu_device.h"

#include <stdbool.h>

struct weir_gpu_blocks;

struct weir_gpu_block {
    struct weir_gpu_blocks *blocks;
    struct weir_gpu_block *next; /* list of spare blocks */
    void *memory;
    void *released; /* timed event: the consumers' work has finished */
    bool pending;   /* the event was recorded and not yet waited for */
};

/* Adds a reference to the device: the caller may close its own. */
int weir_gpu_blocks_open(struct weir_gpu_blocks **out, struct weir_device *device, size_t bytes, struct weir_err *err);
/* Frees the spare blocks; blocks in use remain until they are given back. Accepts NULL. */
void weir_gpu_blocks_close(struct weir_gpu_blocks **blocks);

/* Takes a spare block, which may be pending, or allocates one. another: consumers keep some already; then a new block
 * is allocated only while it leaves as much free GPU memory as it takes. Returns 0 or -ENOMEM. */
int weir_gpu_block_take(struct weir_gpu_blocks *blocks, bool another, struct weir_gpu_block **out,
                        struct weir_err *err);
/* Delays reuse of the block until the present work of the n streams has finished. */
int weir_gpu_block_release(struct weir_gpu_block *block, void *const *streams, int n, struct weir_err *err);
/* Returns the block. Release it first if streams still use it. If there are enough spare blocks, or the loader is
 * closed, the memory is freed, for which CUDA waits for all work queued so far. Accepts NULL. */
void weir_gpu_block_give(struct weir_gpu_block *block);

/* Returns the GPU memory of all blocks, including those that consumers keep. */
size_t weir_gpu_blocks_bytes(struct weir_gpu_blocks *blocks);
struct weir_device *weir_gpu_block_device(const struct weir_gpu_block *block);

#endif
