#include "weir/loader.h"
#include "base/shortage.h"
#include "datasets/scan_remote.h"
#include "pipeline/loader_priv.h"
#include "pipeline/offload/gpu_decode.h"
#include "pipeline/offload/upload.h"
#include "pipeline/samples/sampler.h"
#include "weir/stages.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening, in dependency order ---- */

static int most_block_rows(const struct weir_dataset *dataset)
{
    int most = 0, rows;
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        for (int c = 0; c < weir_dataset_cameras(dataset); c++)
            if (weir_shares_blocks(dataset, e, c, &rows) && rows > most)
                most = rows;
    return most;
}

/* Images that the GPU may decode keep their stored size until they are on the GPU, which then crops and resizes them.
 */
static void choose_views(struct weir_shared *s)
{
    memcpy(s->setup.out_views, s->setup.views, sizeof s->setup.views);
    for (int c = 0; c < weir_dataset_cameras(s->setup.dataset) && weir_decoder_on_gpu(s->setup.config.decoder); c++) {
        const struct weir_camera_probe *probe = &s->setup.probes[c];
        if (!weir_frame_is_depth(probe->kind))
            s->setup.views[c] = (struct weir_view){0, 0, probe->width, probe->height, probe->width, probe->height};
    }
}

static void choose_decoder(struct weir_shared *s)
{
    struct weir_decoder_choice *choice = &s->setup.decoder;
    if (strcmp(s->setup.config.decoder, "auto") != 0) {
        if (weir_decoder_on_gpu(s->setup.config.decoder) && !weir_has_jpegs(s))
            snprintf(choice->why, sizeof choice->why, "the dataset has no JPEGs for the GPU to decode");
        if (weir_dataset_cameras(s->setup.dataset) == 0)
            s->setup.config.decoder = "turbo"; /* the GPU decoder cannot be opened for batches without images */
        return;
    }
    weir_choose_decoder(choice, s, s->setup.placement.gpu);
    s->setup.config.decoder = choice->decoder;
}

static int open_dataset(struct weir_shared *s, struct weir_err *err)
{
    const struct weir_loader_config *c = &s->setup.config;
    struct weir_dataset_config config = {.size = sizeof config,
                                         .path = c->data,
                                         .cameras = c->cameras,
                                         .qpos_keys = c->qpos_keys,
                                         .action_keys = c->action_keys,
                                         .image_keys = c->image_keys,
                                         .allow_ragged = c->allow_ragged,
                                         .allow_external = c->allow_external,
                                         .split = c->split,
                                         .tolerant = c->on_error != WEIR_ON_ERROR_FAIL,
                                         .index = c->index,
                                         .threads = s->setup.placement.cores,
                                         .progress = c->on_index,
                                         .interrupted = c->interrupted,
                                         .user = c->user,
                                         .episodes = c->episodes,
                                         .endpoint = c->endpoint,
                                         .anonymous = c->anonymous,
                                         .cache = c->cache,
                                         .filter_key = c->filter_key,
                                         .columns = c->columns,
                                         .depth = c->columns};
    int rc = weir_dataset_open(&s->setup.dataset, &config, err);
    if (rc < 0)
        return rc;
    weir_dataset_watch(s->setup.dataset, c->interrupted, c->user);
    rc = weir_probe_cameras(s->setup.dataset, config.tolerant, s->setup.placement.video_gpu, s->setup.probes, err);
    if (rc == 0)
        rc = weir_windows_init(&s->setup.windows, c, s->setup.dataset, err);
    if (rc == 0)
        rc = weir_views_init(s->setup.views, c, s->setup.dataset, s->setup.probes, err);
    weir_dataset_watch(s->setup.dataset, NULL, NULL);
    return rc;
}

static int open_data(struct weir_loader *loader, struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    int rc = open_dataset(s, err);
    loader->indexed_ns = weir_clock_monotonic_ns();
    if (rc < 0)
        return rc;
    choose_decoder(s);
    choose_views(s);
    s->setup.block_rows = most_block_rows(s->setup.dataset);
    if (weir_fetch_files(s->setup.dataset, &s->files) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    return weir_reading_open(s, err);
}

/* Returns an array that the caller must free, or NULL if out of memory. */
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
    int episodes = weir_dataset_episodes(s->setup.dataset);
    int *steps = steps_of(s->setup.dataset);
    if (!steps)
        return weir_err_set(err, -ENOMEM, "out of memory");
    const struct weir_loader_config *c = &s->setup.config;
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
        .splits = c->splits,
    };
    int rc = weir_sampler_open(&s->setup.sampler, &config, steps, episodes, err);
    free(steps);
    if (rc < 0)
        return rc;
    s->setup.total = weir_sampler_total(s->setup.sampler);
    return 0;
}

/* Returns the format that the decoder must produce so that batches have the wanted format. If red and blue are swapped
 * in the stored frames, the decoder's red channel contains blue. */
static struct weir_pixel_format source_format(const struct weir_pixel_format *wanted, bool is_bgr)
{
    struct weir_pixel_format format = *wanted;
    if (!is_bgr)
        return format;
    format.color = wanted->color == WEIR_COLOR_RGB ? WEIR_COLOR_BGR : WEIR_COLOR_RGB;
    for (int i = 0; i < 3; i++) {
        format.mean[i] = wanted->mean[2 - i];
        format.std[i] = wanted->std[2 - i];
    }
    return format;
}

static int open_slots(struct weir_loader *loader, struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    int number = s->setup.placement.gpu;
    struct weir_pixel_format format = source_format(&s->setup.config.format, weir_dataset_is_bgr(s->setup.dataset));
    s->setup.config.format = number < 0 ? format : weir_upload_slot_format(&format, s->setup.config.decoder);
    int rc = number < 0 ? weir_batch_layout_init(&s->setup.layout, &s->setup.windows, &s->setup.config,
                                                 s->setup.dataset, s->setup.probes, s->setup.views, err)
                        : weir_upload_layout(&s->setup.layout, s, s->setup.views, &s->setup.config.format, err);
    if (rc < 0) {
        weir_probe_blame(s->setup.dataset, s->setup.probes, err);
        return rc;
    }
    if (s->setup.config.prefetch == 0)
        s->setup.config.prefetch = weir_prefetch_auto(s);
    /* The consumer holds one batch in addition to the prefetched ones. */
    uint64_t slots = (uint64_t)s->setup.config.prefetch + 1, left = s->setup.total - loader->next;
    slots = slots < left ? slots : left > 0 ? left : 1;
    rc = weir_slots_open(&s->slots, (int)slots, &s->setup.layout, s->setup.block_rows > 0, s->setup.config.local_size,
                         err);
    if (rc < 0)
        weir_probe_blame(s->setup.dataset, s->setup.probes, err);
    bool skips = s->setup.config.on_error != WEIR_ON_ERROR_FAIL;
    s->completion.slots = &s->slots;
    s->completion.layout = &s->setup.layout;
    s->completion.dataset = s->setup.dataset;
    s->completion.skipped_samples = skips ? &s->faults.skipped_samples : NULL;
    for (uint64_t i = 0; i < slots && i < left && rc == 0; i++)
        weir_slot_arm(&s->slots, s->setup.sampler, loader->next + i);
    s->next_task = loader->next * (uint64_t)s->slots.tasks_per_batch;
    if (rc == 0 && number >= 0)
        rc = weir_upload_open(s, number, &format, loader->next, err);
    return rc == 0 && weir_decoder_on_gpu(s->setup.config.decoder) ? weir_gpu_decode_open(s, err) : rc;
}

/* Call after allocating the slots, so that the free memory does not include them. */
static int open_cache(struct weir_shared *s, struct weir_err *err)
{
    int *steps = steps_of(s->setup.dataset);
    if (!steps)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = weir_frame_cache_open(&s->cache, s->setup.config.decode_cache_bytes, steps,
                                   weir_dataset_episodes(s->setup.dataset), s->setup.layout.image_bytes,
                                   s->setup.layout.n_cameras, s->setup.config.local_size, err);
    free(steps);
    return rc;
}

static int open_recorder(struct weir_loader *loader, struct weir_err *err)
{
    weir_clock_init();
    int rc = weir_loader_stages();
    if (rc < 0)
        return weir_err_set(
            err, rc,
            "the program registered a table of its own stages, which leaves no numbers for the loader's stages; "
            "register stages one by one with weir_stage_register");
    loader->shared.completion.wait_name = weir_name_intern("wait_in_batch", WEIR_CAT_LOADER_ITEM);
    if (loader->shared.setup.config.no_timing)
        return 0;
    loader->shared.recorder = loader->shared.setup.config.recorder;
    if (!loader->shared.recorder && weir_recorder_open(&loader->shared.recorder) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    weir_zone_cost_ns(); /* measures the cost now, before any thread runs */
    return 0;
}

/* Call last, so that the consumer's times do not include opening the loader. */
static int attach_consumer(struct weir_loader *loader, struct weir_err *err)
{
    if (!loader->shared.recorder || weir_thread_self)
        return 0; /* the caller already records this thread */
    if (weir_thread_attach(loader->shared.recorder, "consumer", WEIR_ROLE_CONSUMER) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory");
    loader->consumer = weir_thread_self;
    return 0;
}

static int start_decoding(struct weir_gpu_decode *decode, struct weir_worker *context, struct weir_err *err)
{
    struct weir_decode_client client = {context, weir_task_frame_decoded};
    return weir_gpu_decode_start(decode, context->decoder, &client, err);
}

static void make_batch(void *worker, uint64_t sequence)
{
    weir_worker_do_batch(worker, sequence);
}

static int start_upload(struct weir_loader *loader, struct weir_err *err)
{
    struct weir_batch_maker here = {&loader->workers[0], make_batch};
    return weir_upload_start(loader->shared.upload, loader->n_workers == 0 ? &here : NULL, err);
}

static int start_workers(struct weir_loader *loader, struct weir_err *err)
{
    struct weir_gpu_decode *decode = loader->shared.decode;
    int working = loader->n_workers > 0 ? loader->n_workers : 1;
    loader->n_contexts = working + (decode ? 1 : 0); /* the last one is for the threads that submit JPEGs to the GPU */
    size_t bytes = sizeof *loader->workers * (size_t)loader->n_contexts;
    loader->workers = aligned_alloc(alignof(struct weir_worker), bytes);
    if (!loader->workers)
        return weir_err_set(err, -ENOMEM, "out of memory");
    memset(loader->workers, 0, bytes);
    struct weir_shared *s = &loader->shared;
    bool fail = s->setup.config.on_error == WEIR_ON_ERROR_FAIL;
    const struct weir_frame_rules rules = weir_dataset_frame_rules(s->setup.dataset);
    int rc = weir_sources_open(&s->sources, loader->n_contexts, s->setup.layout.n_cameras,
                               weir_dataset_files(s->setup.dataset));
    if (rc < 0)
        return weir_err_set(err, rc, "out of memory");
    rc = weir_steps_open(&loader->steps, s->setup.layout.n_cameras, weir_dataset_files(s->setup.dataset),
                         loader->n_workers);
    if (rc < 0)
        return weir_err_set(err, rc, "out of memory");
    rc = weir_file_watch_start(&s->watch, s->files, &s->faults, fail, err);
    if (rc == 0 && loader->next < loader->shared.setup.total)
        rc = weir_read_ahead_open(&loader->shared, err);
    for (int i = 0; i < loader->n_contexts && rc == 0; i++) {
        rc = weir_worker_open(&loader->workers[i], &loader->shared, i, err);
        if (rc < 0)
            break;
        weir_decoder_set_rules(loader->workers[i].decoder, &rules);
        weir_decoder_set_on_warning(loader->workers[i].decoder, s->setup.config.on_warning);
    }
    for (int i = 0; i < loader->n_workers && rc == 0; i++)
        if (weir_worker_start(&loader->workers[i]) < 0)
            rc = weir_err_set(err, -EAGAIN,
                              "worker thread %d of %d cannot be started; use a smaller --num-workers, or %s", i + 1,
                              loader->n_workers, weir_machine_advice(-EAGAIN));
    if (rc == 0 && weir_watchdog_start(&loader->watchdog, &loader->shared, loader->workers, working) < 0)
        rc = weir_err_set(err, -EAGAIN, "the watchdog thread cannot be started; %s", weir_machine_advice(-EAGAIN));
    if (rc == 0 && decode)
        rc = start_decoding(decode, &loader->workers[working], err);
    return rc == 0 && loader->shared.upload ? start_upload(loader, err) : rc;
}

int weir_loader_open(struct weir_loader **out, const struct weir_loader_config *given, struct weir_err *err)
{
    *out = NULL;
    struct weir_loader_config full;
    const struct weir_loader_config *config = &full;
    int rc = weir_config_take(&full, given, err);
    if (rc == 0)
        rc = weir_loader_config_check(config, err);
    if (rc < 0)
        return rc;
    size_t bytes = (sizeof(struct weir_loader) + 63) / 64 * 64;
    struct weir_loader *loader = aligned_alloc(64, bytes);
    if (!loader)
        return weir_err_set(err, -ENOMEM, "out of memory");
    memset(loader, 0, bytes);
    struct weir_shared *s = &loader->shared;
    s->setup.config = *config;
    s->setup.decoder.requested = config->decoder;
    loader->start_ns = weir_clock_monotonic_ns();
    loader->depth = (struct weir_queue_depth){.min = INT_MAX, .max = -1};
    pthread_mutex_init(&loader->depth_lock, NULL);
    weir_faults_init(&s->faults);
    weir_placement_find(&s->setup.placement, config);
    loader->n_workers = config->num_workers == WEIR_WORKERS_AUTO ? s->setup.placement.cores : config->num_workers;
    s->setup.config.num_workers = loader->n_workers;
    rc = open_data(loader, err);
    if (rc == 0)
        rc = open_sampler(s, err);
    if (rc == 0)
        rc = weir_resume_loader(loader, err);
    if (rc == 0)
        rc = weir_norm_open(&s->setup.qpos, s->setup.dataset, s->setup.sampler, false, config->raw_state, err);
    if (rc == 0)
        rc = weir_norm_open(&s->setup.actions, s->setup.dataset, s->setup.sampler, true, config->raw_state, err);
    if (rc == 0)
        rc = open_slots(loader, err);
    if (rc == 0)
        rc = open_cache(s, err);
    if (rc == 0)
        rc = open_recorder(loader, err);
    if (rc == 0)
        rc = start_workers(loader, err);
    if (rc == 0)
        rc = attach_consumer(loader, err);
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
    weir_steps_asked(&loader->steps, weir_clock_monotonic_ns());
    if (loader->consumer && loader->consumer == weir_thread_self)
        weir_thread_detach(); /* detach first, so that joining the other threads does not count as a data wait */
    loader->consumer = NULL;
    if (loader->shared.slots.n)
        weir_slots_stop(&loader->shared.slots);
    for (int i = 0; i < loader->n_workers && loader->workers; i++)
        if (loader->workers[i].started)
            pthread_join(loader->workers[i].thread, NULL);
    if (loader->shared.decode)
        weir_gpu_decode_finish(loader->shared.decode);
    if (loader->shared.upload)
        weir_upload_finish(loader->shared.upload);
    weir_file_watch_stop(&loader->shared.watch);
    weir_watchdog_stop(&loader->watchdog);
}

void weir_loader_close(struct weir_loader **loader)
{
    struct weir_loader *l = *loader;
    if (!l)
        return;
    struct weir_shared *s = &l->shared;
    if (!l->finished && s->setup.dataset)
        weir_loader_stop(l); /* a silent server must not delay the end */
    weir_loader_finish(l);
    for (int i = 0; i < l->n_contexts && l->workers; i++)
        weir_worker_close(&l->workers[i]);
    free(l->workers);
    weir_reading_close(s);
    weir_gpu_decode_close(&s->decode);
    weir_upload_close(&s->upload); /* before the slots, because it unpins them */
    weir_slots_close(&s->slots);
    weir_frame_cache_close(&s->cache);
    weir_sources_close(&s->sources);
    weir_steps_close(&l->steps);
    if (!s->setup.config.recorder)
        weir_recorder_close(&s->recorder);
    weir_faults_destroy(&s->faults);
    pthread_mutex_destroy(&l->depth_lock);
    weir_norm_close(&s->setup.qpos);
    weir_norm_close(&s->setup.actions);
    weir_sampler_close(&s->setup.sampler);
    weir_windows_close(&s->setup.windows);
    weir_file_set_close(&s->files);
    weir_dataset_close(&s->setup.dataset);
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

/* A complete batch, ready for the consumer. */
struct obtained {
    struct weir_batch *batch;
    const struct weir_err *err;        /* error of a failed batch */
    const struct weir_last_task *last; /* the task that completed it; NULL = unknown */
    struct weir_wait_times waited;
};

/* Waits for a batch's slot. Returns 1, 0 if stopped, or -EINTR; obtain_uploaded returns the same values. */
static int obtain_slot(struct weir_loader *loader, uint64_t sequence, struct obtained *to)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_DATA);
    uint64_t start_ns = weir_clock_monotonic_ns();
    struct weir_slots *slots = &loader->shared.slots;
    if (loader->n_workers == 0)
        weir_worker_do_batch(&loader->workers[0], sequence);
    const struct weir_loader_config *config = &loader->shared.setup.config;
    int rc = weir_slot_wait_interruptible(slots, sequence, config->interrupted, config->user);
    if (rc <= 0)
        return rc;
    struct weir_slot *slot = weir_slot_of(slots, sequence);
    weir_slot_lend(slots, slot);
    weir_item_self = slot->last_task_id; /* the consumer waited for this task */
    weir_slot_end_waits(slots, slot);
    *to = (struct obtained){&slot->batch, slot->failed_image >= 0 ? &slot->err : NULL, &slot->last, {0}};
    to->waited.data_ns = weir_clock_monotonic_ns() - start_ns;
    return 1;
}

static int obtain_uploaded(struct weir_loader *loader, uint64_t sequence, struct obtained *to)
{
    struct weir_upload *upload = loader->shared.upload;
    struct weir_wait_times waited;
    int rc = weir_upload_wait(upload, sequence, &waited);
    if (rc <= 0)
        return rc;
    struct weir_upload_batch *batch = weir_upload_batch_of(upload, sequence);
    *to = (struct obtained){&batch->batch, batch->err.code < 0 ? &batch->err : NULL, NULL, waited};
    if (!to->err)
        weir_upload_lend(upload, batch);
    return 1;
}

/* Returns -EBUSY if the caller still holds the buffer that the next batch needs. */
static int check_lent(const struct weir_loader *loader, struct weir_err *err)
{
    const struct weir_shared *s = &loader->shared;
    int lendable = s->upload ? s->upload->n_batches : s->slots.n;
    uint64_t sequence = loader->next;
    if (loader->lent == lendable)
        return weir_err_set(err, -EBUSY, "the caller holds all %d batches; release one first", lendable);
    bool lent = s->upload ? s->upload->batches[sequence % (uint64_t)lendable].lent
                          : s->slots.slot[sequence % (uint64_t)lendable].lent;
    if (lent)
        return weir_err_set(err, -EBUSY,
                            "the caller holds batch %llu, whose slot is needed next; release that batch first",
                            (unsigned long long)(sequence - (uint64_t)lendable));
    return 0;
}

static int obtain(struct weir_loader *loader, struct obtained *to)
{
    struct weir_watchdog *dog = &loader->watchdog;
    atomic_store_explicit(&dog->waiting_for, loader->next, memory_order_relaxed);
    atomic_store_explicit(&dog->waiting, true, memory_order_relaxed);
    int rc = loader->shared.upload ? obtain_uploaded(loader, loader->next, to) : obtain_slot(loader, loader->next, to);
    weir_item_self = 0;
    atomic_store_explicit(&dog->waiting, false, memory_order_relaxed);
    return rc;
}

/* Requests a check of the files at the end of each epoch, when all its files have been read. */
static void note_epoch(struct weir_loader *loader, const struct weir_batch *batch)
{
    bool first = loader->taken == 0, last = loader->next + 1 == loader->shared.setup.total;
    if (last || (!first && batch->plan.epoch != loader->epoch))
        weir_file_watch_ask(&loader->shared.watch);
    loader->epoch = batch->plan.epoch;
}

/* Returns whether the run has ended, and stores its result in *rc. */
static bool is_over(struct weir_loader *loader, int *rc, struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    *rc = s->upload ? weir_upload_error(s->upload, err) : 0;
    if (*rc < 0)
        return true;
    *rc = weir_file_watch_error(&s->watch, err);
    if (*rc < 0) {
        weir_slots_stop(&s->slots);
        return true;
    }
    if (loader->next < s->setup.total)
        return atomic_load_explicit(&s->slots.stop, memory_order_relaxed);
    *rc = weir_file_watch_wait(&s->watch, &s->slots.stop, err);
    return true;
}

int weir_loader_next(struct weir_loader *loader, struct weir_batch **batch, struct weir_err *err)
{
    struct weir_shared *s = &loader->shared;
    struct obtained got = {0};
    *batch = NULL;
    int rc;
    weir_steps_asked(&loader->steps, weir_clock_monotonic_ns());
    if (is_over(loader, &rc, err))
        return rc;
    rc = check_lent(loader, err);
    if (rc < 0)
        return rc;
    note_depth(loader);
    rc = obtain(loader, &got);
    if (rc < 0)
        return weir_err_set(err, rc, "interrupted while waiting for a batch; call again to resume");
    if (rc == 0)
        return s->upload ? weir_upload_error(s->upload, err) : 0;
    if (got.err) {
        weir_slots_stop(&s->slots);
        return weir_err_set(err, got.err->code, "%s", got.err->text);
    }
    got.batch->gpu_wait_ns = got.waited.gpu_ns;
    got.batch->wait_ns = got.waited.data_ns;
    if (!loader->first_batch_ns)
        loader->first_batch_ns = weir_clock_monotonic_ns();
    note_epoch(loader, got.batch);
    weir_steps_given(&loader->steps, got.batch, weir_windows_images(&s->setup.windows), got.last);
    loader->lent++;
    loader->next++;
    loader->taken++;
    *batch = got.batch;
    return 1;
}

void weir_loader_stop(struct weir_loader *loader)
{
    atomic_store_explicit(&loader->shared.slots.stop, true, memory_order_relaxed); /* waiters poll 10 times a second */
    weir_dataset_cancel_reads(loader->shared.setup.dataset);
}
