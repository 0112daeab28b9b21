#include "pipeline/loader.h"
#include "pipeline/loader_priv.h"
#include "prof/cores.h"
#include "prof/hash.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_IN_FLIGHT_PER_WORKER = 4, PREFETCH_MIN = 2, PREFETCH_MAX = 4096 };
/* Where chunks hold several frames: batches in flight share them, so more of them unpack less. */
enum { PREFETCH_SHARED = 16, PREFETCH_SHARED_BYTES = 256 << 20 };
static const double STD_MIN = 1e-2; /* ACT clips at this */

void weir_loader_config_default(struct weir_loader_config *config)
{
    *config = (struct weir_loader_config){
        .batch_size = 8,
        .num_workers = WEIR_WORKERS_AUTO,
        .num_epochs = 1,
        .obs_history = 1,
        .chunk_size = 20,
        .train_split = 0.9,
        .io = "auto",
        .decoder = "turbo",
    };
}

static int check_config(const struct weir_loader_config *c, struct weir_err *err)
{
    if (!c->data || !c->io || !c->decoder)
        return weir_err_set(err, -EINVAL, "data, io and decoder must be given");
    if (c->num_workers < WEIR_WORKERS_AUTO || c->num_workers > WEIR_WORKERS_MAX)
        return weir_err_set(err, -EINVAL, "num_workers is auto or 0..%d", WEIR_WORKERS_MAX);
    if (c->prefetch < 0 || c->prefetch > PREFETCH_MAX)
        return weir_err_set(err, -EINVAL, "prefetch is auto or 1..%d", PREFETCH_MAX);
    if (c->batch_size < 1 || c->batch_size > 65536)
        return weir_err_set(err, -EINVAL, "batch_size is 1..65536");
    if (c->obs_history < 1 || c->obs_history > 1024 || c->chunk_size < 1 || c->chunk_size > 65536)
        return weir_err_set(err, -EINVAL, "obs_history is 1..1024, chunk_size 1..65536");
    if (c->image_width < 0 || c->image_width > WEIR_IMAGE_SIDE_MAX || c->image_height < 0 ||
        c->image_height > WEIR_IMAGE_SIDE_MAX || !c->image_width != !c->image_height)
        return weir_err_set(err, -EINVAL, "image_width and image_height are 1..%d, or both 0", WEIR_IMAGE_SIDE_MAX);
    if (c->io_depth < 0 || c->io_depth > WEIR_IO_DEPTH_MAX)
        return weir_err_set(err, -EINVAL, "io_depth is auto or 1..%d", WEIR_IO_DEPTH_MAX);
    int rc = weir_reading_check(c->io, c->direct, err);
    return rc < 0 ? rc : weir_decoder_check(c->decoder, err);
}

/* ---- opening, in the order of what needs what ---- */

static int most_block_rows(const struct weir_dataset *dataset)
{
    int most = 0, rows;
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        for (int c = 0; c < weir_dataset_cameras(dataset); c++)
            if (weir_shares_blocks(dataset, e, c, &rows) && rows > most)
                most = rows;
    return most;
}

static int open_data(struct weir_shared *s, struct weir_err *err)
{
    const struct weir_loader_config *c = &s->config;
    struct weir_dataset_config config = {.path = c->data,
                                         .cameras = c->cameras,
                                         .qpos_keys = c->qpos_keys,
                                         .action_keys = c->action_keys,
                                         .image_keys = c->image_keys,
                                         .allow_ragged = c->allow_ragged,
                                         .tolerant = c->on_error != WEIR_ON_ERROR_FAIL,
                                         .index = c->index,
                                         .progress = c->on_index,
                                         .user = c->user};
    int rc = weir_dataset_open(&s->dataset, &config, err);
    if (rc == 0)
        rc = weir_probe_cameras(s->dataset, config.tolerant, s->probes, err);
    if (rc == 0)
        rc = weir_views_init(s->views, c, s->dataset, s->probes, err);
    if (rc == 0)
        s->block_rows = most_block_rows(s->dataset);
    if (rc == 0 && weir_fetch_files(s->dataset, &s->files) < 0)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = weir_reading_open(s, err);
    return rc;
}

/* To be freed; NULL without memory. */
static int *steps_of(const struct weir_dataset *dataset)
{
    int episodes = weir_dataset_episodes(dataset);
    int *steps = malloc(sizeof *steps * (size_t)episodes);
    for (int i = 0; steps && i < episodes; i++)
        steps[i] = weir_dataset_steps(dataset, i);
    return steps;
}

static int open_sampler(struct weir_shared *s, struct weir_err *err)
{
    int episodes = weir_dataset_episodes(s->dataset);
    int *steps = steps_of(s->dataset);
    if (!steps)
        return weir_err_set(err, -ENOMEM, "out of memory");
    const struct weir_loader_config *c = &s->config;
    struct weir_sampler_config config = {
        .sampling = c->sampling,
        .seed = c->seed,
        .shuffle = !c->no_shuffle,
        .drop_last = c->drop_last,
        .batch_size = c->batch_size,
        .max_batches = c->max_batches,
        .num_epochs = c->num_epochs,
        .train_split = c->train_split,
        .rank = c->rank,
        .world_size = c->world_size,
        .wrap = c->wrap,
    };
    int rc = weir_sampler_open(&s->sampler, &config, steps, episodes, err);
    free(steps);
    if (rc < 0)
        return rc;
    s->total = weir_sampler_total(s->sampler);
    return 0;
}

/* What the samples of each batch depend on. */
static void state_fields(const struct weir_shared *s, struct weir_state_field fields[WEIR_STATE_FIELDS])
{
    const struct weir_loader_config *c = &s->config;
    uint64_t split = 0, steps = 0;
    int episodes = weir_dataset_episodes(s->dataset);
    memcpy(&split, &c->train_split, sizeof split);
    for (int i = 0; i < episodes; i++) {
        uint64_t pair[2] = {steps, (uint64_t)weir_dataset_steps(s->dataset, i)};
        steps = weir_hash64(pair, sizeof pair);
    }
    const struct weir_state_field all[WEIR_STATE_FIELDS] = {
        {"--seed", c->seed},
        {"--sampling", (uint64_t)c->sampling},
        {"--batch-size", (uint64_t)c->batch_size},
        {"--max-batches", (uint64_t)c->max_batches},
        {"--no-shuffle", c->no_shuffle},
        {"--drop-last", c->drop_last},
        {"--train-split", split},
        {"--rank", (uint64_t)c->rank},
        {"--world-size", (uint64_t)(c->world_size ? c->world_size : 1)},
        {"--wrap", c->wrap},
        {"number-of-episodes", (uint64_t)episodes},
        {"lengths-of-episodes", steps},
    };
    memcpy(fields, all, sizeof all);
}

/* Where the run begins. */
static int resume(struct weir_loader *loader, struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    struct weir_state_field fields[WEIR_STATE_FIELDS];
    if (!s->config.resume.given)
        return 0;
    state_fields(s, fields);
    int rc = weir_state_check(&s->config.resume, fields, err);
    if (rc == 0 && s->config.resume.next > s->total)
        rc = weir_err_set(err, -EINVAL,
                          "the run that left its state was %llu batches long already, this one has %llu; give "
                          "a larger --num-epochs",
                          (unsigned long long)s->config.resume.next, (unsigned long long)s->total);
    loader->next = s->config.resume.next;
    return rc;
}

static int open_norm(struct weir_shared *s, bool actions, struct weir_err *err)
{
    struct weir_norm *norm = actions ? &s->actions : &s->qpos;
    norm->dim = actions ? weir_dataset_action_dim(s->dataset) : weir_dataset_qpos_dim(s->dataset);
    size_t dim = (size_t)norm->dim;
    double *mean = malloc(2 * dim * sizeof *mean);
    norm->mean = malloc(dim * sizeof *norm->mean);
    norm->std = malloc(dim * sizeof *norm->std);
    int n, rc = mean && norm->mean && norm->std ? 0 : -ENOMEM;
    const int *episodes = weir_sampler_episodes(s->sampler, WEIR_SPLIT_TRAIN, &n);
    if (rc == 0)
        rc = weir_dataset_stats(s->dataset, episodes, n, actions, mean, mean + dim);
    for (size_t d = 0; d < dim && rc == 0; d++) {
        norm->mean[d] = (float)mean[d];
        norm->std[d] = (float)(mean[dim + d] > STD_MIN ? mean[dim + d] : STD_MIN);
    }
    free(mean);
    return rc < 0 ? weir_err_set(err, rc, "the statistics of state and actions cannot be computed") : 0;
}

static int auto_prefetch(const struct weir_loader *loader)
{
    const struct weir_shared *s = &loader->shared;
    int64_t frames = (int64_t)s->config.batch_size * s->layout.n_cameras * s->layout.history;
    int64_t wanted = FRAMES_IN_FLIGHT_PER_WORKER * loader->n_workers;
    int64_t batches = (wanted + frames - 1) / frames;
    if (s->block_rows > 1) {
        int64_t fitting = (int64_t)(PREFETCH_SHARED_BYTES / s->layout.slot_bytes);
        fitting = fitting < PREFETCH_SHARED ? fitting : PREFETCH_SHARED;
        batches = batches > fitting ? batches : fitting;
    }
    return batches > PREFETCH_MIN ? (int)batches : PREFETCH_MIN;
}

static int open_slots(struct weir_loader *loader, struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    int rc = weir_batch_layout_init(&s->layout, &s->config, s->dataset, s->probes, s->views, err);
    if (rc < 0)
        return rc;
    s->tasks_per_sample = s->layout.n_cameras + 1;
    if (s->config.prefetch == 0)
        s->config.prefetch = auto_prefetch(loader);
    uint64_t slots = (uint64_t)s->config.prefetch + 1, left = s->total - loader->next; /* one is with the consumer */
    slots = slots < left ? slots : left > 0 ? left : 1;
    rc = weir_slots_open(&s->slots, (int)slots, s->config.batch_size * s->tasks_per_sample, &s->layout,
                         s->block_rows > 0, err);
    for (uint64_t i = 0; i < slots && i < left && rc == 0; i++)
        weir_slot_arm(&s->slots, s->sampler, loader->next + i, s->tasks_per_sample);
    s->next_ticket = loader->next * (uint64_t)s->config.batch_size * (uint64_t)s->tasks_per_sample;
    return rc;
}

/* After the slots, so that what they take is not free any more. */
static int open_cache(struct weir_shared *s, struct weir_err *err)
{
    int *steps = steps_of(s->dataset);
    if (!steps)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = weir_frame_cache_open(&s->cache, s->config.decode_cache_bytes, steps, weir_dataset_episodes(s->dataset),
                                   s->layout.image_bytes, s->layout.n_cameras, err);
    free(steps);
    return rc;
}

static int open_recorder(struct weir_loader *loader, struct weir_err *err)
{
    weir_clock_init();
    loader->shared.item_wait = weir_name_intern("wait_in_batch", WEIR_CAT_LOADER_ITEM);
    if (loader->shared.config.no_timing)
        return 0;
    if (weir_recorder_open(&loader->shared.recorder) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    weir_zone_cost_ns(); /* measured before anything runs */
    if (weir_thread_self)
        return 0; /* the caller times this thread for somebody else */
    if (weir_thread_attach(loader->shared.recorder, "consumer", WEIR_ROLE_CONSUMER) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    loader->consumer = weir_thread_self;
    return 0;
}

static int start_workers(struct weir_loader *loader, struct weir_err *err)
{
    loader->n_contexts = loader->n_workers > 0 ? loader->n_workers : 1;
    size_t bytes = sizeof *loader->workers * (size_t)loader->n_contexts;
    loader->workers = aligned_alloc(alignof(struct weir_worker), bytes);
    if (!loader->workers)
        return weir_err_set(err, -ENOMEM, "out of memory");
    memset(loader->workers, 0, bytes);
    int rc = 0;
    if (loader->next < loader->shared.total)
        rc = weir_read_ahead_open(&loader->shared, err);
    for (int i = 0; i < loader->n_contexts && rc == 0; i++)
        rc = weir_worker_open(&loader->workers[i], &loader->shared, i, err);
    for (int i = 0; i < loader->n_workers && rc == 0; i++)
        if (weir_worker_start(&loader->workers[i]) < 0)
            rc = weir_err_set(err, -EAGAIN, "worker thread %d of %d cannot be started; use a smaller --num-workers",
                              i + 1, loader->n_workers);
    if (rc == 0 && weir_watchdog_start(&loader->watchdog, &loader->shared, loader->workers, loader->n_contexts) < 0)
        rc = weir_err_set(err, -EAGAIN, "the watchdog thread cannot be started");
    return rc;
}

int weir_loader_open(struct weir_loader **out, const struct weir_loader_config *config, struct weir_err *err)
{
    *out = NULL;
    int rc = check_config(config, err);
    if (rc < 0)
        return rc;
    size_t bytes = (sizeof(struct weir_loader) + 63) / 64 * 64;
    struct weir_loader *loader = aligned_alloc(64, bytes);
    if (!loader)
        return weir_err_set(err, -ENOMEM, "out of memory");
    memset(loader, 0, bytes);
    struct weir_shared *s = &loader->shared;
    s->config = *config;
    loader->start_ns = weir_clock_monotonic_ns();
    loader->depth = (struct weir_queue_depth){.min = INT_MAX, .max = -1};
    pthread_mutex_init(&loader->depth_lock, NULL);
    weir_faults_init(&s->faults);
    loader->n_workers = config->num_workers == WEIR_WORKERS_AUTO ? weir_cores_usable() : config->num_workers;
    s->config.num_workers = loader->n_workers;
    rc = open_data(s, err);
    loader->indexed_ns = weir_clock_monotonic_ns();
    if (rc == 0)
        rc = open_sampler(s, err);
    if (rc == 0)
        rc = resume(loader, err);
    if (rc == 0)
        rc = open_norm(s, false, err);
    if (rc == 0)
        rc = open_norm(s, true, err);
    if (rc == 0)
        rc = open_slots(loader, err);
    if (rc == 0)
        rc = open_cache(s, err);
    if (rc == 0)
        rc = open_recorder(loader, err);
    if (rc == 0)
        rc = start_workers(loader, err);
    loader->opened_ns = weir_clock_monotonic_ns();
    if (rc < 0)
        weir_loader_close(&loader);
    *out = loader;
    return rc;
}

void weir_loader_finish(struct weir_loader *loader)
{
    if (loader->finished)
        return;
    loader->finished = true;
    if (loader->shared.slots.n)
        weir_slots_stop(&loader->shared.slots);
    for (int i = 0; i < loader->n_workers && loader->workers; i++)
        if (loader->workers[i].started)
            pthread_join(loader->workers[i].thread, NULL);
    weir_watchdog_stop(&loader->watchdog);
    if (loader->consumer && loader->consumer == weir_thread_self)
        weir_thread_detach();
    loader->consumer = NULL;
}

void weir_loader_close(struct weir_loader **loader)
{
    struct weir_loader *l = *loader;
    if (!l)
        return;
    struct weir_shared *s = &l->shared;
    weir_loader_finish(l);
    for (int i = 0; i < l->n_contexts && l->workers; i++)
        weir_worker_close(&l->workers[i]);
    free(l->workers);
    weir_reading_close(s);
    weir_slots_close(&s->slots);
    weir_frame_cache_close(&s->cache);
    weir_recorder_close(&s->recorder);
    weir_faults_destroy(&s->faults);
    pthread_mutex_destroy(&l->depth_lock);
    free(s->qpos.mean);
    free(s->qpos.std);
    free(s->actions.mean);
    free(s->actions.std);
    weir_sampler_close(&s->sampler);
    weir_file_set_close(&s->files);
    weir_dataset_close(&s->dataset);
    free(l);
    *loader = NULL;
}

/* ---- batches ---- */

static void note_depth(struct weir_loader *loader)
{
    const struct weir_shared *s = &loader->shared;
    int ready = (int)(atomic_load_explicit(&s->slots.completed, memory_order_relaxed) - loader->taken);
    pthread_mutex_lock(&loader->depth_lock);
    struct weir_queue_depth *depth = &loader->depth;
    depth->sum += (uint64_t)ready;
    depth->samples++;
    depth->min = ready < depth->min ? ready : depth->min;
    depth->max = ready > depth->max ? ready : depth->max;
    pthread_mutex_unlock(&loader->depth_lock);
}

static bool obtain(struct weir_loader *loader, uint64_t sequence)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_DATA);
    if (loader->n_workers == 0)
        weir_worker_do_batch(&loader->workers[0], sequence);
    bool there = weir_slot_wait_complete(&loader->shared.slots, sequence);
    struct weir_slot *slot = weir_slot_of(&loader->shared.slots, sequence);
    if (there)
        weir_slot_lend(&loader->shared.slots, slot);
    weir_item_self = there ? slot->last_item : 0; /* what was waited for */
    return there;
}

/* What each task made has waited from its end until now for the others, and for the consumer. */
static void end_item_waits(const struct weir_shared *shared, const struct weir_slot *slot)
{
    int tasks = slot->plan.n * shared->tasks_per_sample;
    for (int task = 0; task < tasks && weir_recording(); task++)
        weir_async_end(&slot->done[task], weir_item_of(shared, slot->plan.sequence, (uint64_t)task));
}

int weir_loader_next(struct weir_loader *loader, struct weir_batch **batch, struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    *batch = NULL;
    if (loader->next >= s->total || atomic_load_explicit(&s->slots.stop, memory_order_relaxed))
        return 0;
    if (loader->lent == s->slots.n)
        return weir_err_set(err, -EBUSY, "all %d batches are lent out; release one first", s->slots.n);
    struct weir_slot *slot = weir_slot_of(&s->slots, loader->next);
    if (slot->lent)
        return weir_err_set(err, -EBUSY, "batch %llu is still lent out; its slot is the next one",
                            (unsigned long long)slot->plan.sequence);
    note_depth(loader);
    uint64_t start_ns = weir_clock_monotonic_ns();
    atomic_store_explicit(&loader->watchdog.waiting_for, loader->next, memory_order_relaxed);
    atomic_store_explicit(&loader->watchdog.waiting, true, memory_order_relaxed);
    bool there = obtain(loader, loader->next);
    weir_item_self = 0;
    atomic_store_explicit(&loader->watchdog.waiting, false, memory_order_relaxed);
    if (!there)
        return 0;
    if (slot->failed_image >= 0) {
        weir_slots_stop(&s->slots);
        return weir_err_set(err, slot->err.code, "%s", slot->err.text);
    }
    uint64_t now_ns = weir_clock_monotonic_ns();
    slot->batch.wait_ns = now_ns - start_ns;
    if (!loader->first_batch_ns)
        loader->first_batch_ns = now_ns;
    end_item_waits(s, slot);
    loader->lent++;
    loader->next++;
    loader->taken++;
    *batch = &slot->batch;
    return 1;
}

void weir_loader_release(struct weir_loader *loader, struct weir_batch *batch)
{
    WEIR_OPERATOR("weir_loader_release");
    struct weir_shared *s = &loader->shared;
    struct weir_slot *slot = weir_slot_of(&s->slots, batch->plan.sequence);
    weir_slot_release(&s->slots, slot);
    loader->lent--;
    uint64_t sequence = batch->plan.sequence + (uint64_t)s->slots.n;
    if (sequence < s->total)
        weir_slot_arm(&s->slots, s->sampler, sequence, s->tasks_per_sample);
}

int weir_loader_save(const struct weir_loader *loader, const char *path, struct weir_err *err)
{
    struct weir_state_field fields[WEIR_STATE_FIELDS];
    state_fields(&loader->shared, fields);
    return weir_state_write(path, loader->next, fields, err);
}

int weir_loader_restore(struct weir_loader_config *config, const char *path, struct weir_err *err)
{
    return weir_state_read(path, &config->resume, err);
}

uint64_t weir_loader_position(const struct weir_loader *loader)
{
    return loader->next;
}

void weir_loader_stop(struct weir_loader *loader)
{
    atomic_store_explicit(&loader->shared.slots.stop, true, memory_order_relaxed); /* waiters look 10 times a second */
}
