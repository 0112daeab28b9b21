#include "pipeline/offload/gpu_decode.h"
#include "base/hash.h"
#include "base/shortage.h"
#include "base/threads.h"
#include "pipeline/offload/upload.h"
#include "pipeline/samples/completion.h"
#include "pipeline/samples/defaults.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Limits of engine->ahead and engine->full, in waiting frames. */
enum { AHEAD_MAX = 2 * WEIR_DECODE_BATCH_MAX, FULL_LEAST = WEIR_DECODE_BATCH_MAX / 4 };
enum { POLL_NS = 10 * 1000 * 1000 }; /* polling interval, since neither a stop nor a free core wakes waiters */

/* ---- submission ---- */

/* Returns whether the GPU decodes the frame. The result is the same in every run. */
static bool is_for_gpu(const struct weir_gpu_decode *decode, const struct weir_image *image)
{
    const uint64_t key[3] = {(uint64_t)image->episode, (uint64_t)image->camera, (uint64_t)image->t};
    return (double)(weir_hash64(key, sizeof key) >> 11) * 0x1p-53 < decode->gpu_fraction;
}

/* A patient engine (the SMs) accepts no frames while it decodes a batch. */
static bool has_capacity(const struct weir_decode_engine *engine)
{
    if (atomic_load_explicit(&engine->waiting, memory_order_relaxed) >= engine->ahead)
        return false;
    return !engine->patient || atomic_load_explicit(&engine->n_decoding, memory_order_relaxed) == 0;
}

static bool may_decode_here(struct weir_gpu_decode *decode)
{
    if (atomic_fetch_add_explicit(&decode->here, 1, memory_order_relaxed) < decode->here_max)
        return true;
    atomic_fetch_sub_explicit(&decode->here, 1, memory_order_relaxed);
    return false;
}

/* Finds a decoder for the frame: *engine, or the calling worker (*engine NULL), which is then counted in decode->here.
 * Returns false if all decoders are busy. */
static bool offer(struct weir_gpu_decode *decode, struct weir_decode_engine **engine)
{
    for (int i = 0; i < decode->n_engines; i++) {
        *engine = &decode->engines[i];
        if (has_capacity(*engine))
            return true;
    }
    *engine = NULL;
    return may_decode_here(decode);
}

/* Waits until a decoder can accept the frame. Without this wait, frames would queue at an engine while idle cores have
 * none. A worker that finishes a frame does not wake the waiters, because it usually takes the next frame itself and
 * they would wake in vain. */
static struct weir_decode_engine *wait_for_capacity(struct weir_gpu_decode *decode)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_GPU_DECODE);
    struct weir_decode_engine *engine;
    for (;;) {
        uint32_t key = weir_eventcount_prepare(&decode->capacity_freed);
        if (offer(decode, &engine))
            return engine;
        if (atomic_load_explicit(&decode->shared->slots.stop, memory_order_relaxed))
            return &decode->engines[0]; /* the run has stopped, so the choice does not matter */
        weir_eventcount_wait(&decode->capacity_freed, key, POLL_NS);
    }
}

/* Returns the engine for the frame. NULL means that the calling worker must decode it and has been counted in
 * decode->here. */
static struct weir_decode_engine *choose(struct weir_gpu_decode *decode, const struct weir_image *image)
{
    struct weir_decode_engine *first = &decode->engines[0];
    if (!decode->hybrid || (decode->gpu_fraction > 0 && is_for_gpu(decode, image)))
        return first;
    if (decode->gpu_fraction > 0) {
        atomic_fetch_add_explicit(&decode->here, 1, memory_order_relaxed);
        return NULL;
    }
    struct weir_decode_engine *engine;
    return offer(decode, &engine) ? engine : wait_for_capacity(decode);
}

void weir_gpu_decode_done_here(struct weir_gpu_decode *decode, uint64_t took_ns)
{
    atomic_fetch_add_explicit(&decode->here_ns, took_ns, memory_order_relaxed);
    atomic_fetch_sub_explicit(&decode->here, 1, memory_order_relaxed);
}

void weir_gpu_decode_set_planes(struct weir_gpu_jpeg_frame *frame, const struct weir_jpeg_header *header,
                                uint8_t *memory)
{
    for (int i = 0; i < 3; i++) { /* also for gray images, because an engine may write all planes */
        int width, height;
        weir_gpu_jpeg_plane(header, i, &width, &height);
        frame->plane[i] = memory;
        frame->pitch[i] = (size_t)width;
        memory += (size_t)width * (size_t)height;
    }
}

static void enqueue(struct weir_decode_engine *engine, const struct weir_decode_job *job)
{
    pthread_mutex_lock(&engine->lock);
    size_t waiting = atomic_load_explicit(&engine->waiting, memory_order_relaxed);
    engine->queue[(engine->first + waiting) % engine->decode->capacity] = *job;
    atomic_store_explicit(&engine->waiting, waiting + 1, memory_order_relaxed);
    pthread_mutex_unlock(&engine->lock);
    weir_eventcount_notify(&engine->wakeup);
    if (waiting + 1 >= engine->full)
        weir_eventcount_notify(&engine->full_wakeup);
}

/* Frames of the wrong size are left to the CPU, which reports the error. */
static enum weir_jpeg_refusal look(struct weir_decode_engine *engine, const struct weir_image *image,
                                   const uint8_t *bytes, size_t length, struct weir_jpeg_header *header,
                                   struct weir_gpu_jpeg_frame *frame)
{
    struct weir_gpu_decode *decode = engine->decode;
    const struct weir_shared *shared = decode->shared;
    const struct weir_camera_probe *probe = &shared->setup.probes[image->camera];
    const struct weir_frame_rules rules = weir_dataset_frame_rules(shared->setup.dataset);
    enum weir_jpeg_refusal refusal = weir_gpu_jpeg_look(bytes, length, engine->kind, header, frame);
    if (refusal == WEIR_JPEG_TAKEN)
        refusal = weir_gpu_jpeg_marks(bytes, length, &rules);
    if (refusal != WEIR_JPEG_TAKEN)
        return refusal;
    if (header->width != probe->width || header->height != probe->height)
        return WEIR_JPEG_BAD_HEADER;
    if (frame->length > shared->setup.layout.image_bytes[image->camera])
        return WEIR_JPEG_TOO_LARGE;
    return weir_psnr_check_refusal(decode->psnr_check, engine->kind, header->kind);
}

static bool hand_over(struct weir_decode_engine *engine, struct weir_slot *slot, int at, const struct weir_image *image,
                      const uint8_t *bytes, size_t length)
{
    WEIR_ZONE(WEIR_STAGE_HAND_OVER);
    struct weir_shared *shared = engine->decode->shared;
    struct weir_decode_job job = {.slot = slot, .at = at, .image = *image};
    struct weir_jpeg_header header;
    enum weir_jpeg_refusal refusal = look(engine, image, bytes, length, &header, &job.frame);
    weir_gpu_jpeg_note(&engine->decode->tally, refusal);
    if (refusal != WEIR_JPEG_TAKEN)
        return false;
    uint8_t *staging = shared->upload->slots[slot - shared->slots.slot].staging;
    memcpy(image->destination, bytes, job.frame.length);
    job.frame.bytes = image->destination;
    job.task = slot->order[at].sample * shared->slots.tasks_per_sample + image->camera;
    job.sampling = header.sampling;
    job.kind = header.kind;
    weir_gpu_decode_set_planes(&job.frame, &header, staging + ((uint8_t *)image->destination - slot->memory));
    weir_completion_defer(slot, job.task);
    enqueue(engine, &job);
    return true;
}

bool weir_gpu_decode_take(struct weir_gpu_decode *decode, struct weir_slot *slot, int at,
                          const struct weir_image *image, const uint8_t *bytes, size_t length)
{
    enum weir_frame_kind kind = weir_dataset_kind(decode->shared->setup.dataset, image->episode, image->camera);
    bool jpeg = kind == WEIR_FRAME_IMAGE;
    struct weir_decode_engine *engine = jpeg ? choose(decode, image) : NULL;
    if (engine && hand_over(engine, slot, at, image, bytes, length))
        return true;
    if (engine || !jpeg) /* the worker decodes the frame, but choose has not counted it */
        atomic_fetch_add_explicit(&decode->here, 1, memory_order_relaxed);
    return false;
}

/* ---- threads ---- */

int weir_gpu_decode_start(struct weir_gpu_decode *decode, struct weir_decoder *decoder,
                          const struct weir_decode_client *client, struct weir_err *err)
{
    decode->decoder = decoder;
    decode->client = *client;
    for (int i = 0; i < decode->n_engines; i++)
        for (int k = 0; k < decode->engines[i].n_batches; k++) {
            struct weir_decode_batch *batch = &decode->engines[i].batches[k];
            batch->started = weir_thread_start(&batch->thread, weir_gpu_decode_main, batch) == 0;
            if (!batch->started)
                return weir_err_set(err, -EAGAIN, "a thread that submits JPEGs to the GPU cannot be started; %s",
                                    weir_machine_advice(-EAGAIN));
        }
    return 0;
}

static void join(struct weir_decode_batch *batch)
{
    if (batch->started)
        pthread_join(batch->thread, NULL);
    batch->started = false;
}

void weir_gpu_decode_finish(struct weir_gpu_decode *decode)
{
    for (int i = 0; i < decode->n_engines; i++) {
        weir_eventcount_notify(&decode->engines[i].wakeup);
        weir_eventcount_notify(&decode->engines[i].full_wakeup);
    }
    for (int i = 0; i < decode->n_engines; i++)
        for (int k = 0; k < decode->engines[i].n_batches; k++)
            join(&decode->engines[i].batches[k]);
}

/* ---- opening ---- */

static int open_batch(struct weir_decode_engine *engine, struct weir_decode_batch *batch, struct weir_err *err)
{
    const struct weir_device *device = engine->decode->device;
    const struct weir_gpu_ops *ops = device->ops;
    batch->engine = engine;
    batch->jobs = calloc(WEIR_DECODE_BATCH_MAX, sizeof *batch->jobs);
    batch->frames = calloc(WEIR_DECODE_BATCH_MAX, sizeof *batch->frames);
    batch->results = calloc(WEIR_DECODE_BATCH_MAX, sizeof *batch->results);
    if (!batch->jobs || !batch->frames || !batch->results)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = ops->stream_new(device->gpu, false, &batch->stream, err);
    if (rc == 0)
        rc = ops->event_new(device->gpu, true, &batch->begin, err);
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = ops->event_new(device->gpu, true, &batch->ends[i], err);
    return rc;
}

static void close_batch(struct weir_gpu_decode *decode, struct weir_decode_batch *batch)
{
    const struct weir_gpu_ops *ops = decode->device->ops;
    weir_gpu_jpeg_close(&batch->decoder);
    void *events[] = {batch->begin, batch->ends[0], batch->ends[1]};
    for (int i = 0; i < 3; i++)
        if (events[i])
            ops->event_free(decode->device->gpu, events[i]);
    if (batch->stream)
        ops->stream_free(decode->device->gpu, batch->stream);
    free(batch->jobs);
    free(batch->frames);
    free(batch->results);
}

static void close_engine(struct weir_decode_engine *engine)
{
    for (int i = 0; i < engine->n_batches; i++)
        close_batch(engine->decode, &engine->batches[i]);
    pthread_mutex_destroy(&engine->lock);
    free(engine->queue);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Opens the next engine, with this many threads. Call it in order of preference. */
static int open_engine(struct weir_gpu_decode *decode, enum weir_gpu_jpeg_engine kind, size_t ahead, int threads,
                       struct weir_err *err)
{
    struct weir_decode_engine *engine = &decode->engines[decode->n_engines++];
    engine->decode = decode;
    engine->kind = kind;
    engine->ahead = ahead;
    engine->full = least(most(decode->capacity / 4, FULL_LEAST), WEIR_DECODE_BATCH_MAX);
    engine->n_batches = threads;
    pthread_mutex_init(&engine->lock, NULL);
    engine->queue = calloc(decode->capacity, sizeof *engine->queue);
    if (!engine->queue)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = 0;
    for (int i = 0; i < threads && rc == 0; i++)
        rc = open_batch(engine, &engine->batches[i], err);
    return rc == 0 ? weir_gpu_decode_open_decoder(&engine->batches[0], err) : rc;
}

/* Allocates each slot's tables of images and tasks. No thread may use the slots yet. */
static int open_slots(struct weir_shared *shared, struct weir_err *err)
{
    const struct weir_batch_layout *layout = &shared->setup.layout;
    size_t tasks = (size_t)shared->slots.tasks_per_batch;
    size_t images = weir_layout_numbers(layout);
    for (int i = 0; i < shared->slots.n; i++) {
        struct weir_slot *slot = &shared->slots.slot[i];
        slot->n_images = (int)images;
        slot->n_tasks = (int)tasks;
        slot->n_samples = shared->setup.config.batch_size;
        slot->row = calloc((size_t)slot->n_samples, sizeof *slot->row);
        slot->decoded = calloc(images, sizeof *slot->decoded);
        slot->deferred = calloc(tasks, sizeof *slot->deferred);
        if (!slot->decoded || !slot->deferred || !slot->row)
            return weir_err_set(err, -ENOMEM, "out of memory");
        weir_completion_forget_deferred(slot);
        weir_slot_forget_decoded(slot);
    }
    return 0;
}

static int open_pictures(struct weir_gpu_decode *decode, struct weir_err *err)
{
    const struct weir_batch_layout *layout = &decode->shared->setup.layout;
    for (int c = 0; c < layout->n_cameras; c++)
        if (layout->image_bytes[c] > decode->picture_bytes)
            decode->picture_bytes = layout->image_bytes[c];
    for (int i = 0; i < 2; i++) {
        decode->pictures[i] = malloc(decode->picture_bytes);
        if (!decode->pictures[i])
            return weir_err_set(err, -ENOMEM, "out of memory");
    }
    struct weir_upload *upload = decode->shared->upload;
    int rc = weir_upload_alloc(upload, decode->picture_bytes, &decode->gpu_picture, err);
    if (rc == 0)
        rc = weir_upload_alloc(upload, sizeof(struct weir_gpu_source), &decode->gpu_source, err);
    return rc == 0 ? decode->device->ops->event_new(decode->device->gpu, false, &decode->compared, err) : rc;
}

/* Chooses the JPEG engines, or the SMs on a GPU without them. */
static int choose_first(struct weir_gpu_decode *decode, enum weir_gpu_jpeg_engine *kind, struct weir_err *err)
{
    struct weir_err none = WEIR_ERR_NONE;
    int gpu = decode->device->number;
    *kind = WEIR_GPU_JPEG_HARDWARE;
    int rc = weir_gpu_jpeg_check(gpu, *kind, &decode->hardware, &none);
    if (rc == -ENODEV && decode->hardware == 0) {
        *kind = WEIR_GPU_JPEG_SM;
        if (decode->shared->setup.config.deterministic)
            return weir_err_set(err, -EINVAL,
                                "--deterministic: GPU %d has no JPEG engines, and images decoded by its SMs may differ "
                                "between runs; use --decoder turbo",
                                gpu);
        return weir_gpu_jpeg_check(gpu, *kind, NULL, err);
    }
    return rc < 0 ? weir_err_set(err, rc, "%s", none.text) : 0;
}

bool weir_gpu_decode_wants_sms(const struct weir_shared *shared)
{
    return weir_decoder_where(shared->setup.config.decoder) == WEIR_DECODE_ON_BOTH &&
           strcmp(shared->setup.decoder.requested, shared->setup.config.decoder) == 0 &&
           !shared->setup.config.deterministic;
}

static bool takes_sms(const struct weir_gpu_decode *decode)
{
    return weir_gpu_decode_wants_sms(decode->shared) && decode->capacity >= WEIR_DECODE_SMS_FRAMES &&
           weir_gpu_jpeg_check(decode->device->number, WEIR_GPU_JPEG_SM, NULL, NULL) == 0;
}

/* The SMs are optional: if there is no memory for them, the run continues without them. */
static void open_sms(struct weir_gpu_decode *decode)
{
    struct weir_decode_engine *engine = &decode->engines[decode->n_engines];
    if (open_engine(decode, WEIR_GPU_JPEG_SM, WEIR_DECODE_BATCH_MAX, 1, NULL) == 0) {
        engine->patient = true;
        return;
    }
    close_engine(engine);
    *engine = (struct weir_decode_engine){0};
    decode->n_engines--;
}

static int open_engines(struct weir_gpu_decode *decode, struct weir_err *err)
{
    const struct weir_shared *shared = decode->shared;
    enum weir_gpu_jpeg_engine first;
    decode->capacity = (size_t)shared->slots.n * (size_t)shared->slots.slot[0].n_images;
    int rc = choose_first(decode, &first, err);
    if (rc == 0)
        rc = open_engine(decode, first, least(most(decode->capacity / 3, 1), AHEAD_MAX), WEIR_DECODE_THREADS, err);
    if (rc == 0 && first == WEIR_GPU_JPEG_HARDWARE && takes_sms(decode))
        open_sms(decode);
    return rc;
}

int weir_gpu_decode_workers(int workers, int cores)
{
    int left = cores - WEIR_DECODE_CORES_LEFT;
    return workers < left ? workers : left > 1 ? left : 1;
}

static void divide(struct weir_gpu_decode *decode)
{
    int workers = decode->shared->setup.config.num_workers > 0 ? decode->shared->setup.config.num_workers : 1;
    decode->here_max = weir_gpu_decode_workers(workers, decode->shared->setup.placement.cores);
    double gpu = WEIR_DECODE_ENGINE_RATE * decode->hardware;
    decode->gpu_fraction =
        decode->shared->setup.config.deterministic ? gpu / (gpu + WEIR_DECODE_CORE_RATE * workers) : 0;
}

int weir_gpu_decode_open(struct weir_shared *shared, struct weir_err *err)
{
    struct weir_gpu_decode *decode = calloc(1, sizeof *decode);
    if (!decode)
        return weir_err_set(err, -ENOMEM, "out of memory");
    shared->decode = decode;
    decode->shared = shared;
    decode->device = shared->upload->device;
    decode->hybrid = weir_decoder_where(shared->setup.config.decoder) == WEIR_DECODE_ON_BOTH;
    pthread_mutex_init(&decode->lock, NULL);
    pthread_mutex_init(&decode->figures_lock, NULL);
    int rc = weir_psnr_check_open(&decode->psnr_check, err);
    if (rc == 0)
        rc = open_slots(shared, err);
    if (rc == 0)
        rc = open_engines(decode, err);
    if (rc == 0)
        rc = open_pictures(decode, err);
    divide(decode);
    return rc;
}

void weir_gpu_decode_close(struct weir_gpu_decode **decode)
{
    struct weir_gpu_decode *d = *decode;
    if (!d)
        return;
    for (int i = 0; i < d->n_engines; i++)
        close_engine(&d->engines[i]);
    void *memory[] = {d->gpu_picture, d->gpu_source};
    for (int i = 0; i < 2; i++)
        if (memory[i])
            d->device->ops->free(d->device->gpu, memory[i]);
    if (d->compared)
        d->device->ops->event_free(d->device->gpu, d->compared);
    for (int i = 0; i < d->shared->slots.n; i++) {
        free(d->shared->slots.slot[i].decoded);
        free(d->shared->slots.slot[i].deferred);
        free(d->shared->slots.slot[i].row);
        d->shared->slots.slot[i].row = NULL;
        d->shared->slots.slot[i].decoded = NULL;
        d->shared->slots.slot[i].deferred = NULL;
    }
    weir_psnr_check_close(&d->psnr_check);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->figures_lock);
    free(d->bytes);
    free(d->pictures[0]);
    free(d->pictures[1]);
    free(d);
    *decode = NULL;
}
