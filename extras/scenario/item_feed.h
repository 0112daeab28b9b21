/* item_feed.h: batches of made-up items, as torch's DataLoader would give them: a pool of threads makes the items of
 * the batches to come, each by some CPU work and some time asleep, which stands for I/O.
 *
 *     struct weir_feed_config config = {.items = 2048, .batch_size = 64, .workers = 2, .prefetch = 2, ...};
 *     weir_feed_open(&feed, &config, &err);
 *     for (...) { weir_feed_next(feed, &batch, &err); train(batch); weir_feed_release(feed); }
 *     weir_feed_close(&feed);
 *
 * Which items a batch has, and what they hold, depends on the seed alone. One thread opens, takes, releases and closes.
 */
#ifndef WEIR_EXTRAS_SCENARIO_ITEM_FEED_H
#define WEIR_EXTRAS_SCENARIO_ITEM_FEED_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_device;
struct weir_feed;
struct weir_recorder;

enum { WEIR_FEED_WORKERS_MAX = 256 };

struct weir_feed_config {
    int items;      /* of an epoch, in an order of its own each time; those that fill no batch are dropped */
    int batch_size; /* at most items */
    int workers;    /* threads, at most WEIR_FEED_WORKERS_MAX; 0: weir_feed_next makes the batch itself */
    int prefetch;   /* batches per worker that are begun before they are asked for, at least 1; not used without workers
                     */
    bool persistent;                    /* threads stay from epoch to epoch; else each epoch has threads of its own */
    size_t image_floats, target_floats; /* of an item */
    uint64_t cpu_units;                 /* of an item (cpu_units.h) */
    uint64_t io_ns;                     /* of an item: how long it sleeps */
    uint64_t seed;
    struct weir_device *device;     /* batches are pinned for it; NULL: they are pageable. Borrowed until close */
    struct weir_recorder *recorder; /* threads attach to it; NULL: none. Borrowed until close */
};

/* Lent until its release. Images and targets of the items lie one after another. */
struct weir_feed_batch {
    int epoch, index; /* from 0 */
    float *images, *targets;
};

/* 0; -EINVAL: numbers that cannot be; -ENOMEM: no memory for the batches, or it cannot be pinned; -EAGAIN: no threads.
 */
int weir_feed_open(struct weir_feed **out, const struct weir_feed_config *config, struct weir_err *err);
/* Waits for the next batch, within a zone of 08_wait_for_data; after the last of an epoch the next epoch begins. The
 * batch before was released. 0 or -EAGAIN. */
int weir_feed_next(struct weir_feed *feed, const struct weir_feed_batch **batch, struct weir_err *err);
/* Nothing that is queued on a GPU reads the batch any more. */
void weir_feed_release(struct weir_feed *feed);
/* Waits for the items that are being made. Accepts NULL. */
void weir_feed_close(struct weir_feed **feed);

/* Batches of an epoch, and how many of them may be begun before they are asked for. */
int weir_feed_batches(const struct weir_feed *feed);
int weir_feed_ahead(const struct weir_feed *feed);
/* Items that were begun since the open; any thread. */
uint64_t weir_feed_items_begun(struct weir_feed *feed);
/* Threads that were started since the open. */
uint64_t weir_feed_threads_started(const struct weir_feed *feed);

#endif
