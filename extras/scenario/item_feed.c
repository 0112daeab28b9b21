#include "extras/scenario/item_feed.h"
#include "base/threads.h"
#include "extras/scenario/cpu_units.h"
#include "pipeline/gpu/gpu.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LANES = 16 }; /* of an item's random numbers: so many are made side by side */

/* Memory of one batch. */
struct slot {
    float *memory; /* images, then targets */
    bool pinned;
    int done; /* items that are made */
};

struct weir_feed {
    struct weir_feed_config config;
    size_t item_floats, slot_bytes;
    int batches, ahead, n_slots;
    struct slot *slots; /* of batch i: i % n_slots */
    int *order;         /* the items of this epoch */
    int stage_cpu, stage_io;
    struct weir_feed_batch batch; /* the one that is lent */
    bool lent;
    uint64_t threads_started;

    pthread_mutex_t lock; /* what is below, done of the slots, and order between epochs */
    pthread_cond_t work, ready;
    int epoch;
    int taken;          /* batches of this epoch */
    int64_t begun;      /* items of this epoch */
    uint64_t all_begun; /* of all epochs */
    bool closing;
    int n_threads;
    pthread_t threads[WEIR_FEED_WORKERS_MAX];
};

/* ---- items ---- */

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* From 0 to 1, by LANES generators side by side (xorshift32, Marsaglia 2003), which the compiler turns into vectors: an
 * image has to cost far less than a step. */
static void fill_random(uint64_t seed, size_t numbers, float *to)
{
    uint32_t lanes[LANES];
    for (int i = 0; i < LANES; i++)
        lanes[i] = (uint32_t)next_random(&seed) | 1;
    for (size_t at = 0; at < numbers; at += LANES) {
        float block[LANES];
        for (int i = 0; i < LANES; i++) {
            lanes[i] ^= lanes[i] << 13;
            lanes[i] ^= lanes[i] >> 17;
            lanes[i] ^= lanes[i] << 5;
            block[i] = (float)(int32_t)(lanes[i] >> 8) * 0x1p-24f;
        }
        size_t n = numbers - at < LANES ? numbers - at : LANES;
        memcpy(to + at, block, n * sizeof *to);
    }
}

static void sleep_for(uint64_t ns)
{
    struct timespec rest = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (ns > 0 && nanosleep(&rest, &rest) != 0 && errno == EINTR)
        continue;
}

/* Item number k of this epoch. */
static void make_item(struct weir_feed *feed, int64_t k)
{
    const struct weir_feed_config *config = &feed->config;
    int64_t batch = k / config->batch_size, row = k % config->batch_size;
    float *images = feed->slots[batch % feed->n_slots].memory;
    float *targets = images + (size_t)config->batch_size * config->image_floats;
    uint64_t seed = config->seed ^ ((uint64_t)feed->order[k] + 1) * 0xd1342543de82ef95u;
    if (config->io_ns > 0) {
        WEIR_ZONE(feed->stage_io);
        sleep_for(config->io_ns);
    }
    WEIR_ZONE(feed->stage_cpu);
    weir_cpu_units(config->cpu_units);
    fill_random(next_random(&seed), config->image_floats, images + (size_t)row * config->image_floats);
    fill_random(next_random(&seed), config->target_floats, targets + (size_t)row * config->target_floats);
}

/* Fisher and Yates. */
static void shuffle(struct weir_feed *feed)
{
    uint64_t state = feed->config.seed * 0x9e3779b97f4a7c15u + (uint64_t)feed->epoch;
    for (int i = 0; i < feed->config.items; i++)
        feed->order[i] = i;
    for (int i = feed->config.items - 1; i > 0; i--) {
        int j = (int)(next_random(&state) % (uint64_t)(i + 1)), item = feed->order[i];
        feed->order[i] = feed->order[j];
        feed->order[j] = item;
    }
}

/* ---- workers ---- */

/* Under the lock: items that may be begun now. One batch more than those ahead has a slot: the one that is lent. */
static int64_t items_allowed(const struct weir_feed *feed)
{
    int64_t batches = (int64_t)feed->taken + feed->ahead;
    return (batches < feed->batches ? batches : feed->batches) * feed->config.batch_size;
}

/* The number of the next item; -1: the pool is closed. */
static int64_t next_item(struct weir_feed *feed)
{
    int64_t k = -1;
    pthread_mutex_lock(&feed->lock);
    if (!feed->closing && feed->begun >= items_allowed(feed)) {
        WEIR_ZONE(WEIR_STAGE_WAIT_SLOT);
        while (!feed->closing && feed->begun >= items_allowed(feed))
            pthread_cond_wait(&feed->work, &feed->lock);
    }
    if (!feed->closing) {
        k = feed->begun++;
        feed->all_begun++;
    }
    pthread_mutex_unlock(&feed->lock);
    return k;
}

static void item_done(struct weir_feed *feed, int64_t k)
{
    pthread_mutex_lock(&feed->lock);
    struct slot *slot = &feed->slots[k / feed->config.batch_size % feed->n_slots];
    if (++slot->done == feed->config.batch_size)
        pthread_cond_signal(&feed->ready);
    pthread_mutex_unlock(&feed->lock);
}

static void *worker_main(void *user)
{
    struct weir_feed *feed = user;
    pthread_setname_np(pthread_self(), "weir-feed");
    if (feed->config.recorder)
        (void)weir_thread_attach(feed->config.recorder, "weir-feed", WEIR_ROLE_WORKER); /* else it is not recorded */
    weir_zone_begin(WEIR_STAGE_WORKER_LOOP);
    for (int64_t k; (k = next_item(feed)) >= 0;) {
        make_item(feed, k);
        item_done(feed, k);
    }
    weir_zone_end();
    weir_thread_detach();
    return NULL;
}

static void stop_workers(struct weir_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    feed->closing = true;
    pthread_cond_broadcast(&feed->work);
    pthread_mutex_unlock(&feed->lock);
    while (feed->n_threads > 0)
        pthread_join(feed->threads[--feed->n_threads], NULL);
}

static int start_workers(struct weir_feed *feed, struct weir_err *err)
{
    feed->closing = false;
    for (int i = 0; i < feed->config.workers; i++) {
        int rc = weir_thread_start(&feed->threads[i], worker_main, feed);
        if (rc < 0) {
            stop_workers(feed);
            return weir_err_set(err, rc, "thread %d of %d that make items cannot be started: %s; take fewer workers",
                                i + 1, feed->config.workers, strerror(-rc));
        }
        feed->n_threads++;
        feed->threads_started++;
    }
    return 0;
}

/* ---- open ---- */

static int check_config(const struct weir_feed_config *config, struct weir_err *err)
{
    if (config->items < 1 || config->batch_size < 1 || config->batch_size > config->items)
        return weir_err_set(err, -EINVAL, "a batch of %d: an epoch has %d items, and what fills no batch is dropped",
                            config->batch_size, config->items);
    if (config->workers < 0 || config->workers > WEIR_FEED_WORKERS_MAX || (config->workers > 0 && config->prefetch < 1))
        return weir_err_set(err, -EINVAL, "%d workers that prefetch %d batches: 0 to %d workers can be had",
                            config->workers, config->prefetch, WEIR_FEED_WORKERS_MAX);
    return 0;
}

static int open_slot(struct weir_feed *feed, struct slot *slot, struct weir_err *err)
{
    void *memory = mmap(NULL, feed->slot_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return weir_err_set(err, -ENOMEM, "out of memory for %d batches of %zu bytes; take smaller batches",
                            feed->n_slots, feed->slot_bytes);
    slot->memory = memory;
    int rc = feed->config.device ? weir_device_pin(feed->config.device, memory, feed->slot_bytes, err) : 0;
    slot->pinned = feed->config.device && rc == 0;
    return rc;
}

static int open_memory(struct weir_feed *feed, struct weir_err *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (size_t)feed->config.batch_size * feed->item_floats * sizeof(float);
    feed->slot_bytes = (bytes + page - 1) / page * page;
    feed->slots = calloc((size_t)feed->n_slots, sizeof *feed->slots);
    feed->order = calloc((size_t)feed->config.items, sizeof *feed->order);
    if (!feed->slots || !feed->order)
        return weir_err_set(err, -ENOMEM, "out of memory for %d batches", feed->n_slots);
    int rc = 0;
    for (int i = 0; i < feed->n_slots && rc == 0; i++)
        rc = open_slot(feed, &feed->slots[i], err);
    return rc;
}

static void plan(struct weir_feed *feed)
{
    const struct weir_feed_config *config = &feed->config;
    int64_t ahead = (int64_t)config->workers * config->prefetch;
    feed->item_floats = config->image_floats + config->target_floats;
    feed->batches = config->items / config->batch_size;
    feed->ahead = (int)(ahead < feed->batches ? ahead : feed->batches); /* of this epoch: the next one begins later */
    feed->n_slots = feed->ahead + 1;
}

int weir_feed_open(struct weir_feed **out, const struct weir_feed_config *config, struct weir_err *err)
{
    *out = NULL;
    int rc = check_config(config, err);
    if (rc < 0)
        return rc;
    struct weir_feed *feed = calloc(1, sizeof *feed);
    if (!feed)
        return weir_err_set(err, -ENOMEM, "out of memory");
    feed->config = *config;
    plan(feed);
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->work, NULL);
    pthread_cond_init(&feed->ready, NULL);
    weir_loader_stages();
    weir_cpu_units(0); /* measures how long a unit is, before anything waits for one */
    feed->stage_cpu = weir_stage_register("item_cpu_work", WEIR_KIND_WORK, false);
    feed->stage_io = weir_stage_register("item_simulated_io", WEIR_KIND_WORK, false);
    rc = feed->stage_cpu < 0 || feed->stage_io < 0 ? weir_err_set(err, -ENOSPC, "there are too many stages") : 0;
    if (rc == 0)
        rc = open_memory(feed, err);
    if (rc == 0)
        shuffle(feed);
    if (rc == 0)
        rc = start_workers(feed, err);
    if (rc < 0)
        weir_feed_close(&feed);
    *out = feed;
    return rc;
}

void weir_feed_close(struct weir_feed **out)
{
    struct weir_feed *feed = *out;
    if (!feed)
        return;
    if (feed->lent)
        weir_feed_release(feed);
    stop_workers(feed);
    for (int i = 0; feed->slots && i < feed->n_slots; i++) {
        if (feed->slots[i].pinned)
            weir_device_unpin(feed->config.device, feed->slots[i].memory);
        if (feed->slots[i].memory)
            munmap(feed->slots[i].memory, feed->slot_bytes);
    }
    pthread_cond_destroy(&feed->ready);
    pthread_cond_destroy(&feed->work);
    pthread_mutex_destroy(&feed->lock);
    free(feed->slots);
    free(feed->order);
    free(feed);
    *out = NULL;
}

/* ---- batches ---- */

/* All items of the epoch before are made, and its workers wait. */
static int next_epoch(struct weir_feed *feed, struct weir_err *err)
{
    bool restart = !feed->config.persistent && feed->config.workers > 0;
    if (restart)
        stop_workers(feed);
    pthread_mutex_lock(&feed->lock);
    feed->epoch++;
    feed->begun = 0;
    feed->taken = 0;
    shuffle(feed);
    for (int i = 0; i < feed->n_slots; i++)
        feed->slots[i].done = 0;
    pthread_cond_broadcast(&feed->work);
    pthread_mutex_unlock(&feed->lock);
    return restart ? start_workers(feed, err) : 0;
}

static void make_batch(struct weir_feed *feed)
{
    for (int row = 0; row < feed->config.batch_size; row++) {
        pthread_mutex_lock(&feed->lock);
        int64_t k = feed->begun++;
        feed->all_begun++;
        pthread_mutex_unlock(&feed->lock);
        make_item(feed, k);
        item_done(feed, k);
    }
}

/* Waits until the batch is whole, and lets the workers begin one more. */
static struct slot *take_slot(struct weir_feed *feed)
{
    struct slot *slot = &feed->slots[feed->taken % feed->n_slots];
    if (feed->config.workers == 0)
        make_batch(feed);
    pthread_mutex_lock(&feed->lock);
    while (slot->done < feed->config.batch_size)
        pthread_cond_wait(&feed->ready, &feed->lock);
    slot->done = 0;
    feed->taken++;
    pthread_cond_broadcast(&feed->work);
    pthread_mutex_unlock(&feed->lock);
    return slot;
}

int weir_feed_next(struct weir_feed *feed, const struct weir_feed_batch **batch, struct weir_err *err)
{
    assert(!feed->lent);
    WEIR_ZONE(WEIR_STAGE_WAIT_DATA);
    int rc = feed->taken == feed->batches ? next_epoch(feed, err) : 0;
    *batch = NULL;
    if (rc < 0)
        return rc;
    struct slot *slot = take_slot(feed);
    feed->batch = (struct weir_feed_batch){
        .epoch = feed->epoch,
        .index = feed->taken - 1,
        .images = slot->memory,
        .targets = slot->memory + (size_t)feed->config.batch_size * feed->config.image_floats,
    };
    feed->lent = true;
    weir_memory_allocated(slot->memory, feed->slot_bytes, WEIR_MEMORY_CPU);
    *batch = &feed->batch;
    return 0;
}

void weir_feed_release(struct weir_feed *feed)
{
    assert(feed->lent);
    feed->lent = false;
    weir_memory_freed(feed->batch.images, feed->slot_bytes, WEIR_MEMORY_CPU);
}

int weir_feed_batches(const struct weir_feed *feed)
{
    return feed->batches;
}

int weir_feed_ahead(const struct weir_feed *feed)
{
    return feed->ahead;
}

uint64_t weir_feed_items_begun(struct weir_feed *feed)
{
    pthread_mutex_lock(&feed->lock);
    uint64_t n = feed->all_begun;
    pthread_mutex_unlock(&feed->lock);
    return n;
}

uint64_t weir_feed_threads_started(const struct weir_feed *feed)
{
    return feed->threads_started;
}
