/* mock_loader.h: a stand-in for torch's DataLoader: batches of synthetic items, which a pool of threads makes ahead of
 * time. An item costs a given amount of CPU work and of sleep, which stands for I/O.
 *
 *     struct weir_mock_loader_config config = {.items = 2048, .batch_size = 64, .workers = 2, .prefetch = 2, ...};
 *     weir_mock_loader_open(&loader, &config, &err);
 *     for (...) { weir_mock_loader_next(loader, &batch, &err); train(batch); weir_mock_loader_release(loader); }
 *     weir_mock_loader_close(&loader);
 *
 * The order and the contents of the items depend on the seed alone. Open, next, release and close on one thread. */
#ifndef WEIR_EXTRAS_SCENARIO_MOCK_LOADER_H
#define WEIR_EXTRAS_SCENARIO_MOCK_LOADER_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_device;
struct weir_mock_loader;
struct weir_recorder;

/* Runs CPU work of about units x 50 ns on the calling thread. Returns its result, so that it is not optimised away. The
 * first call of a process measures the speed of the core, for 2 ms. Any thread. */
uint64_t weir_cpu_units(uint64_t units);

enum { WEIR_MOCK_WORKERS_MAX = 256 };

struct weir_mock_loader_config {
    int items;                          /* per epoch, shuffled; a partial batch at the end is dropped */
    int batch_size;                     /* at most items */
    int workers;                        /* threads, up to WEIR_MOCK_WORKERS_MAX; 0: next makes the batch */
    int prefetch;                       /* batches to prefetch per worker, at least 1; unused without workers */
    bool persistent;                    /* keep the threads across epochs instead of starting new ones */
    size_t image_floats, target_floats; /* per item */
    uint64_t cpu_units;                 /* CPU work per item (weir_cpu_units) */
    uint64_t io_ns;                     /* sleep per item */
    uint64_t seed;
    struct weir_device *device;     /* batches are pinned for it; NULL: pageable. Borrowed until close */
    struct weir_recorder *recorder; /* records the threads; NULL: none. Borrowed until close */
};

/* Lent until release. Images, and targets, of successive items are contiguous. */
struct weir_mock_loader_batch {
    int epoch, index; /* from 0 */
    float *images, *targets;
};

/* 0, -EINVAL (config), -ENOMEM (memory for batches, or pinning it) or -EAGAIN (threads). */
int weir_mock_loader_open(struct weir_mock_loader **out, const struct weir_mock_loader_config *config,
                          struct weir_err *err);
/* Waits for the next batch, in a zone of 08_wait_for_data, and starts the next epoch after the last one. Release the
 * previous batch first. 0 or -EAGAIN. */
int weir_mock_loader_next(struct weir_mock_loader *loader, const struct weir_mock_loader_batch **batch,
                          struct weir_err *err);
/* Returns the batch; no queued GPU work may read it any more. */
void weir_mock_loader_release(struct weir_mock_loader *loader);
/* Waits for items in progress. Accepts NULL. */
void weir_mock_loader_close(struct weir_mock_loader **loader);

/* Batches per epoch, and the number of batches to prefetch. */
int weir_mock_loader_batches(const struct weir_mock_loader *loader);
int weir_mock_loader_ahead(const struct weir_mock_loader *loader);
/* Items started since open. Any thread. */
uint64_t weir_mock_loader_items_begun(struct weir_mock_loader *loader);
/* Threads started since open. */
uint64_t weir_mock_loader_threads_started(const struct weir_mock_loader *loader);

#endif
