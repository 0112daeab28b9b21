/* gpu_blocks.h: the memory of output batches on a GPU, in blocks of one size.
 *
 * A block is an output batch's, or a consumer's that keeps the batch, or spare. A consumer says behind which streams'
 * work its block may be used again; a batch that is made in it waits for that, the consumer does not. Consumers may
 * have blocks for longer than the loader lives: the last one takes the rest with it. Any thread, each block by one at a
 * time. */
#ifndef WEIR_PIPELINE_GPU_GPU_BLOCKS_H
#define WEIR_PIPELINE_GPU_GPU_BLOCKS_H

#include "pipeline/gpu/gpu_device.h"

#include <stdbool.h>

struct weir_gpu_blocks;

struct weir_gpu_block {
    struct weir_gpu_blocks *blocks;
    struct weir_gpu_block *next; /* spare ones */
    void *memory;
    void *released; /* timed event: consumers are through with it */
    bool pending;   /* it was recorded, and nobody has waited for it yet */
};

/* The device is shared: the caller may close its own. */
int weir_gpu_blocks_open(struct weir_gpu_blocks **out, struct weir_device *device, size_t bytes, struct weir_err *err);
/* Frees what is spare; blocks that are out stay until they are given back. Accepts NULL. */
void weir_gpu_blocks_close(struct weir_gpu_blocks **blocks);

/* A spare block, maybe a pending one, or a new one. another: consumers keep some already, so that a new one is made
 * only while it leaves as much of the GPU's memory as it takes. -ENOMEM. */
int weir_gpu_block_take(struct weir_gpu_blocks *blocks, bool another, struct weir_gpu_block **out,
                        struct weir_err *err);
/* Its memory is used again only behind what is on the n streams now. */
int weir_gpu_block_release(struct weir_gpu_block *block, void *const *streams, int n, struct weir_err *err);
/* Back to its blocks; to be released before, where a stream has work for it. Where there are enough spare ones, or the
 * loader is closed, the memory is freed, for which CUDA waits until all of the GPU's work so far is done. Accepts NULL.
 */
void weir_gpu_block_give(struct weir_gpu_block *block);

/* The GPU's memory that all blocks take, those of consumers too. */
size_t weir_gpu_blocks_bytes(struct weir_gpu_blocks *blocks);
struct weir_device *weir_gpu_block_device(const struct weir_gpu_block *block);

#endif
