/* gpu_blocks.h: GPU memory for output batches, in blocks of equal size.
 *
 * A block belongs to an output batch or to a consumer that keeps the batch, or it is spare. A consumer names the
 * streams whose work must finish before the block is reused. The next batch in the block waits for that work, but the
 * consumer does not. Blocks may outlive the loader; freeing the last block frees the shared state. Any thread may call
 * these functions, but only one thread at a time may use a block. */
#ifndef WEIR_PIPELINE_GPU_GPU_BLOCKS_H
#define WEIR_PIPELINE_GPU_GPU_BLOCKS_H

#include "pipeline/gpu/gpu_device.h"

#include <stdbool.h>

struct weir_gpu_blocks;

struct weir_gpu_block {
    struct weir_gpu_blocks *blocks;
    struct weir_gpu_block *next; /* in the list of spare blocks */
    void *memory;
    void *released; /* timed event after the consumers' work on the block */
    bool pending;   /* the event was recorded, but not yet waited for */
};

/* Adds a reference to the device, so the caller may close its own. */
int weir_gpu_blocks_open(struct weir_gpu_blocks **out, struct weir_device *device, size_t bytes, struct weir_err *err);
/* Frees the spare blocks. Blocks in use remain valid until they are given back. Accepts NULL. */
void weir_gpu_blocks_close(struct weir_gpu_blocks **blocks);

/* Takes a spare block, which may be pending, or allocates one. another: consumers already keep blocks, so a new block
 * may use at most half of the free GPU memory. Returns 0 or -ENOMEM. */
int weir_gpu_block_take(struct weir_gpu_blocks *blocks, bool another, struct weir_gpu_block **out,
                        struct weir_err *err);
/* Delays reuse of the block until the work queued so far on the n streams has finished. */
int weir_gpu_block_release(struct weir_gpu_block *block, void *const *streams, int n, struct weir_err *err);
/* Gives the block back. Call weir_gpu_block_release first if streams still use it. If there are enough spare blocks or
 * the loader is closed, the memory is freed, and CUDA then waits for all work queued so far. Accepts NULL. */
void weir_gpu_block_give(struct weir_gpu_block *block);

/* Returns the size of all blocks, including those that consumers keep. */
size_t weir_gpu_blocks_bytes(struct weir_gpu_blocks *blocks);
struct weir_device *weir_gpu_block_device(const struct weir_gpu_block *block);

#endif
