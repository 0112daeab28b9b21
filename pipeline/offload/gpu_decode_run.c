/* Threads that submit decode batches of JPEGs to one of the GPU's engines. */
#include "pipeline/offload/gpu_decode.h"
#include "pipeline/offload/upload.h"
#include "weir/base.h"
#include "weir/stages.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

enum { POLL_NS = 100 * 1000 * 1000 }; /* polling interval, since a stop from a signal handler wakes no waiter */

static bool has_ended(const struct weir_gpu_decode *decode)
{
    return atomic_load_explicit(&decode->shared->slots.stop, memory_order_relaxed);
}

static int take_waiting(struct weir_decode_engine *engine, struct weir_decode_job *jobs, int least)
{
    size_t capacity = engine->decode->capacity;
    pthread_mutex_lock(&engine->lock);
    size_t waiting = atomic_load_explicit(&engine->waiting, memory_order_relaxed);
    int n = waiting < WEIR_DECODE_BATCH_MAX ? (int)waiting : WEIR_DECODE_BATCH_MAX;
    n = n < least ? 0 : n;
    for (int i = 0; i < n; i++)
        jobs[i] = engine->queue[(engine->first + (size_t)i) % capacity];
    engine->first = (engine->first + (size_t)n) % capacity;
    atomic_store_explicit(&engine->waiting, waiting - (size_t)n, memory_order_relaxed);
    pthread_mutex_unlock(&engine->lock);
    if (n > 0 && !engine->patient) /* a patient engine accepts frames again only at the end of its batch (end_turn) */
        weir_eventcount_notify(&engine->decode->capacity_freed);
    return n;
}

static bool is_second(const struct weir_decode_batch *batch)
{
    return batch != &batch->engine->batches[0];
}

/* Returns whether a full decode batch waits while the first thread is busy. At the start of a run all frames in flight
 * arrive together, so one full batch proves nothing. The second decoder is opened only after many full batches in a
 * row. */
static bool is_behind(const struct weir_decode_engine *engine, bool is_open)
{
    if (!is_open && atomic_load_explicit(&engine->in_full, memory_order_relaxed) < 2 * engine->decode->capacity)
        return false;
    return atomic_load_explicit(&engine->waiting, memory_order_relaxed) >= engine->full &&
           atomic_load_explicit(&engine->n_decoding, memory_order_relaxed) > 0;
}

/* Call this when the thread has taken a decode batch. */
static void begin_turn(struct weir_decode_engine *engine, const struct weir_decode_batch *batch)
{
    size_t before = atomic_load_explicit(&engine->in_full, memory_order_relaxed), n = (size_t)batch->n;
    if (!is_second(batch))
        atomic_store_explicit(&engine->in_full, n >= engine->full ? before + n : 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&engine->decoding, batch->n, memory_order_relaxed);
    atomic_fetch_add_explicit(&engine->n_decoding, 1, memory_order_relaxed);
    weir_eventcount_notify(&engine->full_wakeup); /* the second thread may be needed, because the first is busy now */
}

/* Call this when the thread has finished its decode batch. A thread that is gathering frames may then take those in the
 * queue. */
static void end_turn(struct weir_decode_engine *engine, struct weir_decode_batch *batch)
{
    atomic_fetch_sub_explicit(&engine->decoding, batch->n, memory_order_relaxed);
    atomic_fetch_sub_explicit(&engine->n_decoding, 1, memory_order_relaxed);
    batch->n = 0;
    weir_eventcount_notify(&engine->wakeup);
    if (engine->patient)
        weir_eventcount_notify(&engine->decode->capacity_freed);
}

/* Returns how many waiting frames are enough to submit now. *since_ns is the time when a frame was first seen waiting;
 * the caller initialises it to 0. */
static int least_of(const struct weir_decode_batch *batch, uint64_t *since_ns)
{
    const struct weir_decode_engine *engine = batch->engine;
    if (is_second(batch))
        return is_behind(engine, batch->decoder) ? (int)engine->full : INT_MAX;
    if (!engine->patient)
        return atomic_load_explicit(&engine->n_decoding, memory_order_relaxed) > 0 ? WEIR_DECODE_BATCH_SMALL : 1;
    uint64_t now_ns = weir_clock_monotonic_ns();
    if (*since_ns == 0 && atomic_load_explicit(&engine->waiting, memory_order_relaxed) > 0)
        *since_ns = now_ns;
    return *since_ns && now_ns - *since_ns >= WEIR_DECODE_PATIENCE_NS ? 1 : WEIR_DECODE_BATCH_MAX;
}

/* Gathers a decode batch, which is empty if the run has ended. */
static void gather(struct weir_decode_engine *engine, struct weir_decode_batch *batch)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_WORK);
    struct weir_eventcount *wakeup = is_second(batch) ? &engine->full_wakeup : &engine->wakeup;
    uint64_t since_ns = 0;
    do {
        uint32_t key = weir_eventcount_prepare(wakeup);
        batch->n = take_waiting(engine, batch->jobs, least_of(batch, &since_ns));
        if (batch->n == 0 && !has_ended(engine->decode))
            weir_eventcount_wait(wakeup, key, since_ns ? WEIR_DECODE_PATIENCE_NS : POLL_NS);
    } while (batch->n == 0 && !has_ended(engine->decode));
}

int weir_gpu_decode_open_decoder(struct weir_decode_batch *batch, struct weir_err *err)
{
    struct weir_decode_engine *engine = batch->engine;
    size_t capacity = engine->decode->capacity;
    int most = capacity < WEIR_DECODE_BATCH_MAX ? (int)capacity : WEIR_DECODE_BATCH_MAX;
    return weir_gpu_jpeg_open(&batch->decoder, engine->decode->device->number, engine->kind, most, err);
}

/* Called if the second thread has no decoder or no GPU memory. Puts its frames back at the front of the queue, for the
 * first thread. */
static void give_back(struct weir_decode_engine *engine, struct weir_decode_batch *batch)
{
    size_t capacity = engine->decode->capacity, n = (size_t)batch->n;
    weir_gpu_jpeg_close(&batch->decoder); /* waits for submitted work */
    pthread_mutex_lock(&engine->lock);
    engine->first = (engine->first + capacity - n) % capacity;
    for (size_t i = 0; i < n; i++)
        engine->queue[(engine->first + i) % capacity] = batch->jobs[i];
    atomic_fetch_add_explicit(&engine->waiting, n, memory_order_relaxed);
    pthread_mutex_unlock(&engine->lock);
    end_turn(engine, batch);
}

static int submit(struct weir_decode_engine *engine, struct weir_decode_batch *batch, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_GPU_DECODE);
    const struct weir_gpu_ops *ops = engine->decode->device->ops;
    struct weir_gpu *gpu = engine->decode->device->gpu;
    for (int i = 0; i < batch->n; i++)
        batch->frames[i] = batch->jobs[i].frame;
    batch->turn = 1 - batch->turn;
    int rc = ops->record(gpu, batch->begin, batch->stream, err);
    if (rc == 0)
        rc = weir_gpu_jpeg_decode(batch->decoder, batch->frames, batch->n, batch->stream, batch->results, err);
    return rc == 0 ? ops->record(gpu, batch->ends[batch->turn], batch->stream, err) : rc;
}

static void add_counts(struct weir_decode_engine *engine, struct weir_decode_batch *batch)
{
    struct weir_gpu_jpeg_counts now;
    weir_gpu_jpeg_counts(batch->decoder, &now);
    engine->frames_done += now.frames - batch->counted.frames;
    engine->batches_done += now.batches - batch->counted.batches;
    batch->counted = now;
}

/* Decode batches overlap, and need not end in the order in which they began. */
static void add_busy(struct weir_decode_engine *engine, void *end, int64_t took_ns, int64_t since_ns)
{
    int64_t end_ns = engine->last_end_ns + since_ns;
    engine->busy_ns += (uint64_t)weir_intervals_add(&engine->busy, end_ns - took_ns, end_ns);
    if (since_ns < 0)
        return;
    engine->last_end = end;
    engine->last_end_ns = end_ns;
}

static int note_batch_locked(struct weir_decode_engine *engine, struct weir_decode_batch *batch, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = engine->decode->device->ops;
    struct weir_gpu *gpu = engine->decode->device->gpu;
    void *end = batch->ends[batch->turn];
    int64_t took_ns, since_ns;
    int rc = ops->elapsed(gpu, batch->begin, end, &took_ns, err);
    since_ns = took_ns;
    if (rc == 0 && engine->last_end)
        rc = ops->elapsed(gpu, engine->last_end, end, &since_ns, err);
    if (rc < 0)
        return rc;
    weir_stage_stats_add(&engine->decode->batch_times, took_ns > 0 ? (uint64_t)took_ns : 0);
    add_busy(engine, end, took_ns, since_ns);
    add_counts(engine, batch);
    return 0;
}

/* Records the times of a finished decode batch. */
static int note_batch(struct weir_decode_engine *engine, struct weir_decode_batch *batch, struct weir_err *err)
{
    pthread_mutex_lock(&engine->decode->figures_lock);
    int rc = note_batch_locked(engine, batch, err);
    pthread_mutex_unlock(&engine->decode->figures_lock);
    return rc;
}

static int end_batch(struct weir_decode_engine *engine, struct weir_decode_batch *batch, struct weir_err *err)
{
    struct weir_gpu_decode *decode = engine->decode;
    int rc;
    {
        WEIR_ZONE(WEIR_STAGE_WAIT_GPU_DECODE);
        rc = decode->device->ops->wait(decode->device->gpu, batch->ends[batch->turn], err);
    }
    if (rc == 0)
        rc = note_batch(engine, batch, err);
    if (rc == 0)
        rc = weir_gpu_decode_complete(decode, batch, err);
    end_turn(engine, batch);
    return rc;
}

static void name_thread(const struct weir_gpu_decode *decode, const struct weir_decode_batch *batch)
{
    char name[16];
    int engine = (int)(batch->engine - decode->engines), number = (int)(batch - batch->engine->batches);
    snprintf(name, sizeof name, "weir-jpeg%d", WEIR_DECODE_THREADS * engine + number);
    pthread_setname_np(pthread_self(), name);
    if (decode->shared->recorder)
        weir_thread_attach(decode->shared->recorder, name, WEIR_ROLE_OTHER);
}

/* The error names the whole batch, because the engine does not report which frame failed. */
static void name_batch(const struct weir_decode_batch *batch, int n, struct weir_err *err)
{
    const struct weir_image *first = &batch->jobs[0].image;
    char name[256];
    weir_frame_name(batch->engine->decode->shared->setup.dataset, first->episode, first->camera, first->t, name,
                    sizeof name);
    weir_err_prefix(err, "in a decode batch of %d JPEGs that starts with %s", n, name);
}

/* The SMs are optional. If they run out of GPU memory, the CPU decodes this batch and later frames of the same kinds.
 */
static int refuse_batch(struct weir_decode_engine *engine, struct weir_decode_batch *batch, struct weir_err *err)
{
    for (int i = 0; i < batch->n; i++)
        batch->results[i] = WEIR_JPEG_ENGINE_REFUSED;
    *err = (struct weir_err)WEIR_ERR_NONE;
    int rc = weir_gpu_decode_complete(engine->decode, batch, err);
    end_turn(engine, batch);
    return rc;
}

/* Returns false if the thread must end, because the run has ended or continues without this thread. */
static bool decode_batch(struct weir_decode_engine *engine, struct weir_decode_batch *batch)
{
    struct weir_err err = WEIR_ERR_NONE;
    gather(engine, batch);
    int n = batch->n;
    if (n == 0)
        return false;
    begin_turn(engine, batch);
    int rc = batch->decoder ? 0 : weir_gpu_decode_open_decoder(batch, &err);
    bool opened = rc == 0;
    if (opened)
        rc = submit(engine, batch, &err);
    if (is_second(batch) && (!opened || rc == -ENOMEM)) {
        give_back(engine, batch);
        return false;
    }
    if (rc == -ENOMEM && engine->patient)
        rc = refuse_batch(engine, batch, &err);
    else if (rc == 0)
        rc = end_batch(engine, batch, &err);
    if (rc < 0) {
        name_batch(batch, n, &err);
        weir_upload_fail(engine->decode->shared->upload, &err);
    }
    return rc == 0;
}

void *weir_gpu_decode_main(void *user)
{
    struct weir_decode_batch *batch = user;
    struct weir_decode_engine *engine = batch->engine;
    name_thread(engine->decode, batch);
    while (decode_batch(engine, batch))
        continue;
    weir_item_self = 0;
    weir_thread_detach();
    return NULL;
}
