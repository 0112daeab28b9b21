#include "extras/scenario/mock_loader.h"
#include "extras/common/network.h"
#include "extras/common/team.h"
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

enum { LANES = 16 }; /* random generators that run in parallel */

/* The memory of one batch. */
struct slot {
    float *memory; /* all images, followed by all targets */
    bool pinned;
    int done; /* number of finished items */
};

struct weir_mock_loader {
    struct weir_mock_loader_config config;
    size_t item_floats, slot_bytes;
    int batches, ahead, n_slots;
    struct slot *slots; /* batch i uses slot i % n_slots */
    int *order;         /* the shuffled items of this epoch */
    int stage_cpu, stage_io;
    struct weir_mock_loader_batch batch; /* the batch that the caller holds */
    bool lent;
    uint64_t threads_started;

    pthread_mutex_t lock; /* guards the members below and slots[].done; between epochs also order */
    pthread_cond_t work, ready;
    int epoch;
    int taken;          /* batches of this epoch returned so far */
    int64_t begun;      /* items of this epoch started so far */
    uint64_t all_begun; /* items started in all epochs */
    bool closing;
    int n_threads;
    pthread_t threads[WEIR_MOCK_WORKERS_MAX];
};

/* ---- CPU work ---- */

enum { UNIT_NS = 50, TRIALS = 20, TRIAL_ROUNDS = 50000 };

static uint64_t rounds_per_1024_units; /* set once, by calibrate */

/* Each iteration depends on the previous one, so neither the compiler nor the CPU can shorten the loop. */
static uint64_t compute(uint64_t rounds, uint64_t state)
{
    for (uint64_t i = 0; i < rounds; i++)
        state = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9u + i;
    return state;
}

/* Uses the fastest of several trials, because other work on the machine can only slow a trial down. */
static void calibrate(void)
{
    uint64_t least_ns = UINT64_MAX, state = 1;
    for (int i = 0; i < TRIALS; i++) {
        uint64_t start_ns = weir_clock_monotonic_ns();
        state = compute(TRIAL_ROUNDS, state);
        uint64_t ns = weir_clock_monotonic_ns() - start_ns + (state == 0); /* keeps compute from being removed */
        least_ns = ns < least_ns ? ns : least_ns;
    }
    uint64_t rounds = (uint64_t)UNIT_NS * 1024 * TRIAL_ROUNDS / (least_ns ? least_ns : 1);
    rounds_per_1024_units = rounds ? rounds : 1;
}

uint64_t weir_cpu_units(uint64_t units)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, calibrate);
    return compute(units * rounds_per_1024_units / 1024, units + 1);
}

/* ---- items ---- */

/* Fills an array with numbers from 0 to 1. It runs LANES generators (xorshift32, Marsaglia 2003) in parallel so that
 * the compiler can vectorise them, because making an image must be far cheaper than a training step. */
static void fill_random(uint64_t seed, size_t numbers, float *to)
{
    uint32_t lanes[LANES];
    for (int i = 0; i < LANES; i++)
        lanes[i] = (uint32_t)weir_next_random(&seed) | 1;
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

/* Makes item k of this epoch. */
static void make_item(struct weir_mock_loader *loader, int64_t k)
{
    const struct weir_mock_loader_config *config = &loader->config;
    int64_t batch = k / config->batch_size, row = k % config->batch_size;
    float *images = loader->slots[batch % loader->n_slots].memory;
    float *targets = images + (size_t)config->batch_size * config->image_floats;
    uint64_t seed = config->seed ^ ((uint64_t)loader->order[k] + 1) * 0xd1342543de82ef95u;
    if (config->io_ns > 0) {
        WEIR_ZONE(loader->stage_io);
        sleep_for(config->io_ns);
    }
    WEIR_ZONE(loader->stage_cpu);
    weir_cpu_units(config->cpu_units);
    fill_random(weir_next_random(&seed), config->image_floats, images + (size_t)row * config->image_floats);
    fill_random(weir_next_random(&seed), config->target_floats, targets + (size_t)row * config->target_floats);
}

/* Fisher-Yates shuffle. */
static void shuffle(struct weir_mock_loader *loader)
{
    uint64_t state = loader->config.seed * 0x9e3779b97f4a7c15u + (uint64_t)loader->epoch;
    for (int i = 0; i < loader->config.items; i++)
        loader->order[i] = i;
    for (int i = loader->config.items - 1; i > 0; i--) {
        int j = (int)(weir_next_random(&state) % (uint64_t)(i + 1)), item = loader->order[i];
        loader->order[i] = loader->order[j];
        loader->order[j] = item;
    }
}

/* ---- workers ---- */

/* Returns the number of items of this epoch that may have been started by now. The caller must hold the lock. The batch
 * that the caller of next holds does not count, because it has a slot of its own. */
static int64_t items_allowed(const struct weir_mock_loader *loader)
{
    int64_t batches = (int64_t)loader->taken + loader->ahead;
    return (batches < loader->batches ? batches : loader->batches) * loader->config.batch_size;
}

/* Waits until another item may be started and returns its number, or -1 if the workers must stop. */
static int64_t next_item(struct weir_mock_loader *loader)
{
    int64_t k = -1;
    pthread_mutex_lock(&loader->lock);
    if (!loader->closing && loader->begun >= items_allowed(loader)) {
        WEIR_ZONE(WEIR_STAGE_WAIT_SLOT);
        while (!loader->closing && loader->begun >= items_allowed(loader))
            pthread_cond_wait(&loader->work, &loader->lock);
    }
    if (!loader->closing) {
        k = loader->begun++;
        loader->all_begun++;
    }
    pthread_mutex_unlock(&loader->lock);
    return k;
}

static void item_done(struct weir_mock_loader *loader, int64_t k)
{
    pthread_mutex_lock(&loader->lock);
    struct slot *slot = &loader->slots[k / loader->config.batch_size % loader->n_slots];
    if (++slot->done == loader->config.batch_size)
        pthread_cond_signal(&loader->ready);
    pthread_mutex_unlock(&loader->lock);
}

static void *worker_main(void *user)
{
    struct weir_mock_loader *loader = user;
    pthread_setname_np(pthread_self(), "weir-mock");
    if (loader->config.recorder)
        (void)weir_thread_attach(loader->config.recorder, "weir-mock",
                                 WEIR_ROLE_WORKER); /* if this fails, the thread is not recorded */
    weir_zone_begin(WEIR_STAGE_WORKER_LOOP);
    for (int64_t k; (k = next_item(loader)) >= 0;) {
        make_item(loader, k);
        item_done(loader, k);
    }
    weir_zone_end();
    weir_thread_detach();
    return NULL;
}

static void stop_workers(struct weir_mock_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    loader->closing = true;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    while (loader->n_threads > 0)
        pthread_join(loader->threads[--loader->n_threads], NULL);
}

static int start_workers(struct weir_mock_loader *loader, struct weir_err *err)
{
    loader->closing = false;
    for (int i = 0; i < loader->config.workers; i++) {
        int rc = weir_team_thread(&loader->threads[i], worker_main, loader);
        if (rc < 0) {
            stop_workers(loader);
            return weir_err_set(err, rc, "cannot start worker thread %d of %d: %s; use fewer workers", i + 1,
                                loader->config.workers, strerror(-rc));
        }
        loader->n_threads++;
        loader->threads_started++;
    }
    return 0;
}

/* ---- open ---- */

static int check_config(const struct weir_mock_loader_config *config, struct weir_err *err)
{
    if (config->items < 1 || config->batch_size < 1 || config->batch_size > config->items)
        return weir_err_set(err, -EINVAL, "batch size %d: must be from 1 to %d (the items per epoch)",
                            config->batch_size, config->items);
    if (config->workers < 0 || config->workers > WEIR_MOCK_WORKERS_MAX || (config->workers > 0 && config->prefetch < 1))
        return weir_err_set(err, -EINVAL,
                            "%d workers, %d batches to prefetch per worker: use 0 to %d workers and at least 1 batch",
                            config->workers, config->prefetch, WEIR_MOCK_WORKERS_MAX);
    return 0;
}

static int open_slot(struct weir_mock_loader *loader, struct slot *slot, struct weir_err *err)
{
    void *memory = mmap(NULL, loader->slot_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return weir_err_set(err, -ENOMEM, "out of memory for %d batches of %zu bytes; use smaller batches",
                            loader->n_slots, loader->slot_bytes);
    slot->memory = memory;
    int rc = loader->config.pin ? loader->config.pin(loader->config.device, memory, loader->slot_bytes, err) : 0;
    slot->pinned = loader->config.pin && rc == 0;
    return rc;
}

static int open_memory(struct weir_mock_loader *loader, struct weir_err *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (size_t)loader->config.batch_size * loader->item_floats * sizeof(float);
    loader->slot_bytes = (bytes + page - 1) / page * page;
    loader->slots = calloc((size_t)loader->n_slots, sizeof *loader->slots);
    loader->order = calloc((size_t)loader->config.items, sizeof *loader->order);
    if (!loader->slots || !loader->order)
        return weir_err_set(err, -ENOMEM, "out of memory for %d batches", loader->n_slots);
    int rc = 0;
    for (int i = 0; i < loader->n_slots && rc == 0; i++)
        rc = open_slot(loader, &loader->slots[i], err);
    return rc;
}

static void plan(struct weir_mock_loader *loader)
{
    const struct weir_mock_loader_config *config = &loader->config;
    int64_t ahead = (int64_t)config->workers * config->prefetch;
    loader->item_floats = config->image_floats + config->target_floats;
    loader->batches = config->items / config->batch_size;
    loader->ahead = (int)(ahead < loader->batches ? ahead : loader->batches); /* prefetching never crosses an epoch */
    loader->n_slots = loader->ahead + 1;
}

int weir_mock_loader_open(struct weir_mock_loader **out, const struct weir_mock_loader_config *config,
                          struct weir_err *err)
{
    *out = NULL;
    int rc = check_config(config, err);
    if (rc < 0)
        return rc;
    struct weir_mock_loader *loader = calloc(1, sizeof *loader);
    if (!loader)
        return weir_err_set(err, -ENOMEM, "out of memory");
    loader->config = *config;
    plan(loader);
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->ready, NULL);
    weir_loader_stages();
    weir_cpu_units(0); /* calibrates now, so that the first item is not delayed */
    loader->stage_cpu = weir_stage_register("item_cpu_work", WEIR_KIND_WORK, false);
    loader->stage_io = weir_stage_register("item_simulated_io", WEIR_KIND_WAIT, false);
    rc = loader->stage_cpu < 0 || loader->stage_io < 0 ? weir_err_set(err, -ENOSPC, "too many stages are registered")
                                                       : 0;
    if (rc == 0)
        rc = open_memory(loader, err);
    if (rc == 0)
        shuffle(loader);
    if (rc == 0)
        rc = start_workers(loader, err);
    if (rc < 0)
        weir_mock_loader_close(&loader);
    *out = loader;
    return rc;
}

void weir_mock_loader_close(struct weir_mock_loader **out)
{
    struct weir_mock_loader *loader = *out;
    if (!loader)
        return;
    if (loader->lent)
        weir_mock_loader_release(loader);
    stop_workers(loader);
    for (int i = 0; loader->slots && i < loader->n_slots; i++) {
        if (loader->slots[i].pinned)
            loader->config.unpin(loader->config.device, loader->slots[i].memory);
        if (loader->slots[i].memory)
            munmap(loader->slots[i].memory, loader->slot_bytes);
    }
    pthread_cond_destroy(&loader->ready);
    pthread_cond_destroy(&loader->work);
    pthread_mutex_destroy(&loader->lock);
    free(loader->slots);
    free(loader->order);
    free(loader);
    *out = NULL;
}

/* ---- batches ---- */

/* Must be called only when all items of the previous epoch are finished and its workers are waiting. */
static int next_epoch(struct weir_mock_loader *loader, struct weir_err *err)
{
    bool restart = !loader->config.persistent && loader->config.workers > 0;
    if (restart)
        stop_workers(loader);
    pthread_mutex_lock(&loader->lock);
    loader->epoch++;
    loader->begun = 0;
    loader->taken = 0;
    shuffle(loader);
    for (int i = 0; i < loader->n_slots; i++)
        loader->slots[i].done = 0;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    return restart ? start_workers(loader, err) : 0;
}

static void make_batch(struct weir_mock_loader *loader)
{
    for (int row = 0; row < loader->config.batch_size; row++) {
        pthread_mutex_lock(&loader->lock);
        int64_t k = loader->begun++;
        loader->all_begun++;
        pthread_mutex_unlock(&loader->lock);
        make_item(loader, k);
        item_done(loader, k);
    }
}

/* Waits until the next batch is complete, then allows the workers to start another one. */
static struct slot *take_slot(struct weir_mock_loader *loader)
{
    struct slot *slot = &loader->slots[loader->taken % loader->n_slots];
    if (loader->config.workers == 0)
        make_batch(loader);
    pthread_mutex_lock(&loader->lock);
    while (slot->done < loader->config.batch_size)
        pthread_cond_wait(&loader->ready, &loader->lock);
    slot->done = 0;
    loader->taken++;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    return slot;
}

int weir_mock_loader_next(struct weir_mock_loader *loader, const struct weir_mock_loader_batch **batch,
                          struct weir_err *err)
{
    assert(!loader->lent);
    WEIR_ZONE(WEIR_STAGE_WAIT_DATA);
    int rc = loader->taken == loader->batches ? next_epoch(loader, err) : 0;
    *batch = NULL;
    if (rc < 0)
        return rc;
    struct slot *slot = take_slot(loader);
    loader->batch = (struct weir_mock_loader_batch){
        .epoch = loader->epoch,
        .index = loader->taken - 1,
        .images = slot->memory,
        .targets = slot->memory + (size_t)loader->config.batch_size * loader->config.image_floats,
    };
    loader->lent = true;
    weir_memory_allocated(slot->memory, loader->slot_bytes, WEIR_MEMORY_CPU);
    *batch = &loader->batch;
    return 0;
}

void weir_mock_loader_release(struct weir_mock_loader *loader)
{
    assert(loader->lent);
    loader->lent = false;
    weir_memory_freed(loader->batch.images, loader->slot_bytes, WEIR_MEMORY_CPU);
}

uint64_t weir_mock_loader_items_begun(struct weir_mock_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    uint64_t n = loader->all_begun;
    pthread_mutex_unlock(&loader->lock);
    return n;
}

uint64_t weir_mock_loader_threads_started(const struct weir_mock_loader *loader)
{
    return loader->threads_started;
}
