/* mock_loader.h: a substitute for PyTorch's DataLoader. It returns batches of synthetic items, which a pool of threads
 * prefetches. Each item costs a configured amount of CPU work and a sleep that simulates I/O.
 *
 *     struct weir_mock_loader_config config = {.items = 2048, .batch_size = 64, .workers = 2, .prefetch = 2, ...};
 *     weir_mock_loader_open(&loader, &config, &err);
 *     for (...) { weir_mock_loader_next(loader, &batch, &err); train(batch); weir_mock_loader_release(loader); }
 *     weir_mock_loader_close(&loader);
 *
 * The order and contents of the items depend only on the seed. open, next, release and close must be called on the same
 * thread. */
#ifndef WEIR_EXTRAS_SCENARIO_MOCK_LOADER_H
#define WEIR_EXTRAS_SCENARIO_MOCK_LOADER_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_device;
struct weir_mock_loader;
struct weir_recorder;

/* Does CPU work on the calling thread for about units * 50 ns. Returns the result of the work so that the compiler
 * cannot remove it. The first call in a process also measures the speed of the core, for 2 ms. Thread-safe. */
uint64_t weir_cpu_units(uint64_t units);

enum { WEIR_MOCK_WORKERS_MAX = 256 };

struct weir_mock_loader_config {
    int items;                          /* items per epoch, shuffled; an incomplete last batch is dropped */
    int batch_size;                     /* at most "items" */
    int workers;                        /* threads, up to WEIR_MOCK_WORKERS_MAX; 0: next makes the batch itself */
    int prefetch;                       /* batches to prefetch per worker, at least 1; ignored without workers */
    bool persistent;                    /* keep the threads across epochs instead of starting new ones */
    size_t image_floats, target_floats; /* number of floats per item */
    uint64_t cpu_units;                 /* CPU work per item, in weir_cpu_units */
    uint64_t io_ns;                     /* sleep per item, to simulate I/O */
    uint64_t seed;
    struct weir_device *device; /* passed to the next two functions; borrowed until close */
    /* Pin and unpin a batch. NULL: pageable memory. */
    int (*pin)(struct weir_device *device, void *memory, size_t bytes, struct weir_err *err);
    void (*unpin)(struct weir_device *device, void *memory);
    struct weir_recorder *recorder; /* records the worker threads; NULL: not recorded. Borrowed until close */
};

/* Valid until release. The images of successive items are contiguous, and so are their targets. */
struct weir_mock_loader_batch {
    int epoch, index; /* from 0 */
    float *images, *targets;
};

/* 0, -EINVAL (invalid config), -ENOMEM (no memory for the batches, or pinning failed) or -EAGAIN (cannot start
 * threads). */
int weir_mock_loader_open(struct weir_mock_loader **out, const struct weir_mock_loader_config *config,
                          struct weir_err *err);
/* Waits for the next batch, in a zone of stage 08_wait_for_data. After the last batch of an epoch, starts the next
 * epoch. The previous batch must have been released. 0 or -EAGAIN (cannot start threads). */
int weir_mock_loader_next(struct weir_mock_loader *loader, const struct weir_mock_loader_batch **batch,
                          struct weir_err *err);
/* Returns the batch to the loader. GPU work that reads the batch must have finished. */
void weir_mock_loader_release(struct weir_mock_loader *loader);
/* Waits for items in progress. Accepts a pointer to NULL. */
void weir_mock_loader_close(struct weir_mock_loader **loader);

/* Returns the number of items started since open. Thread-safe. */
uint64_t weir_mock_loader_items_begun(struct weir_mock_loader *loader);
/* Returns the number of threads started since open. */
uint64_t weir_mock_loader_threads_started(const struct weir_mock_loader *loader);

#endif
