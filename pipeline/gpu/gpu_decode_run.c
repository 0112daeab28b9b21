/* The threads that hand groups of JPEGs to an engine of the GPU. */
#include "base/clock.h"
#include "pipeline/gpu/feed.h"
#include "pipeline/gpu/gpu_decode.h"
#include "pipeline/loader_stages.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* Fewer wait until the other thread is through with its group, which takes about as long as gathering some more. */
enum { GROUP_SMALL = WEIR_DECODE_GROUP / 4 };
enum { PATIENCE_NS = 5 * 1000 * 1000 }; /* for a group that is not full */
enum { POLL_NS = 100 * 1000 * 1000 };   /* a stop from a signal handler wakes nobody: look this often */

static bool has_ended(const struct weir_gpu_decode *decode)
{
    return atomic_load_explicit(&decode->shared->slots.stop, memory_order_relaxed);
}

static int take_waiting(struct weir_decode_engine *engine, struct weir_handed *items, int least)
{
    size_t capacity = engine->decode->capacity;
    pthread_mutex_lock(&engine->lock);
    size_t waiting = atomic_load_explicit(&engine->waiting, memory_order_relaxed);
    int n = waiting < WEIR_DECODE_GROUP ? (int)waiting : WEIR_DECODE_GROUP;
    n = n < least ? 0 : n;
    for (int i = 0; i < n; i++)
        items[i] = engine->queue[(engine->first + (size_t)i) % capacity];
    engine->first = (engine->first + (size_t)n) % capacity;
    atomic_store_explicit(&engine->waiting, waiting - (size_t)n, memory_order_relaxed);
    pthread_mutex_unlock(&engine->lock);
    if (n > 0 && !engine->patient) /* which takes more when it is through: end_turn */
        weir_bell_ring(&engine->decode->room);
    return n;
}

static bool is_second(const struct weir_decode_group *group)
{
    return group != &group->engine->groups[0];
}

/* A full group waits, and who could take it is busy with another. All that is in flight at the beginning comes at once,
 * which says nothing: the decoder is worth opening when full groups do not end. */
static bool is_behind(const struct weir_decode_engine *engine, bool is_open)
{
    if (!is_open && atomic_load_explicit(&engine->in_full, memory_order_relaxed) < 2 * engine->decode->capacity)
        return false;
    return atomic_load_explicit(&engine->waiting, memory_order_relaxed) >= engine->full &&
           atomic_load_explicit(&engine->n_decoding, memory_order_relaxed) > 0;
}

/* Whether the second engine is to work beside the first. */
static void try_second_engine(struct weir_gpu_decode *decode)
{
    if (decode->n_engines < 2)
        return;
    struct weir_decode_engine *helper = &decode->engines[1];
    pthread_mutex_lock(&decode->figures_lock);
    struct weir_trial_counts counts = {atomic_load_explicit(&decode->decoded, memory_order_relaxed),
                                       helper->frames_done};
    bool works = weir_trial_step(&decode->trial, weir_clock_monotonic_ns(), counts);
    atomic_store_explicit(&helper->rests, !works, memory_order_relaxed);
    pthread_mutex_unlock(&decode->figures_lock);
}

/* A thread has a group in hand. */
static void begin_turn(struct weir_decode_engine *engine, const struct weir_decode_group *group)
{
    size_t before = atomic_load_explicit(&engine->in_full, memory_order_relaxed), n = (size_t)group->n;
    if (!is_second(group))
        atomic_store_explicit(&engine->in_full, n >= engine->full ? before + n : 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&engine->decoding, group->n, memory_order_relaxed);
    atomic_fetch_add_explicit(&engine->n_decoding, 1, memory_order_relaxed);
    weir_bell_ring(&engine->full_bell); /* the first is busy now */
    if (!engine->patient)
        try_second_engine(engine->decode);
}

/* A thread has no group in hand any more: who gathers may take what there is. */
static void end_turn(struct weir_decode_engine *engine, struct weir_decode_group *group)
{
    atomic_fetch_sub_explicit(&engine->decoding, group->n, memory_order_relaxed);
    atomic_fetch_sub_explicit(&engine->n_decoding, 1, memory_order_relaxed);
    group->n = 0;
    weir_bell_ring(&engine->bell);
    if (engine->patient)
        weir_bell_ring(&engine->decode->room);
}

/* As many frames, or more, go now; *since_ns: when the first was seen to wait, 0 before. */
static int least_of(const struct weir_decode_group *group, uint64_t *since_ns)
{
    const struct weir_decode_engine *engine = group->engine;
    if (is_second(group))
        return is_behind(engine, group->decoder) ? (int)engine->full : INT_MAX;
    if (!engine->patient)
        return atomic_load_explicit(&engine->n_decoding, memory_order_relaxed) > 0 ? GROUP_SMALL : 1;
    uint64_t now_ns = weir_clock_monotonic_ns();
    if (*since_ns == 0 && atomic_load_explicit(&engine->waiting, memory_order_relaxed) > 0)
        *since_ns = now_ns;
    return *since_ns && now_ns - *since_ns >= PATIENCE_NS ? 1 : WEIR_DECODE_GROUP;
}

/* None when the run has ended. */
static void gather(struct weir_decode_engine *engine, struct weir_decode_group *group)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_WORK);
    struct weir_bell *bell = is_second(group) ? &engine->full_bell : &engine->bell;
    uint64_t since_ns = 0;
    do {
        uint32_t turn = weir_bell_turn(bell);
        group->n = take_waiting(engine, group->items, least_of(group, &since_ns));
        if (group->n == 0 && !has_ended(engine->decode))
            weir_bell_wait(bell, turn, since_ns ? PATIENCE_NS : POLL_NS);
    } while (group->n == 0 && !has_ended(engine->decode));
}

int weir_gpu_decode_open_decoder(struct weir_decode_group *group, struct weir_err *err)
{
    struct weir_decode_engine *engine = group->engine;
    size_t capacity = engine->decode->capacity;
    int most = capacity < WEIR_DECODE_GROUP ? (int)capacity : WEIR_DECODE_GROUP;
    return weir_gpu_jpeg_open(&group->decoder, engine->decode->device->number, engine->kind, most, err);
}

/* The second thread has no decoder, or met the end of the GPU's memory: the first decodes its frames, next of all. */
static void give_back(struct weir_decode_engine *engine, struct weir_decode_group *group)
{
    size_t capacity = engine->decode->capacity, n = (size_t)group->n;
    weir_gpu_jpeg_close(&group->decoder); /* waits for what it has begun */
    pthread_mutex_lock(&engine->lock);
    engine->first = (engine->first + capacity - n) % capacity;
    for (size_t i = 0; i < n; i++)
        engine->queue[(engine->first + i) % capacity] = group->items[i];
    atomic_fetch_add_explicit(&engine->waiting, n, memory_order_relaxed);
    pthread_mutex_unlock(&engine->lock);
    end_turn(engine, group);
}

static int submit(struct weir_decode_engine *engine, struct weir_decode_group *group, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_GPU_DECODE);
    const struct weir_gpu_ops *ops = engine->decode->device->ops;
    struct weir_gpu *gpu = engine->decode->device->gpu;
    for (int i = 0; i < group->n; i++)
        group->frames[i] = group->items[i].frame;
    group->turn = 1 - group->turn;
    int rc = ops->record(gpu, group->begin, group->stream, err);
    if (rc == 0)
        rc = weir_gpu_jpeg_decode(group->decoder, group->frames, group->n, group->stream, group->results, err);
    return rc == 0 ? ops->record(gpu, group->ends[group->turn], group->stream, err) : rc;
}

static void add_counts(struct weir_decode_engine *engine, struct weir_decode_group *group)
{
    struct weir_gpu_jpeg_counts now;
    weir_gpu_jpeg_counts(group->decoder, &now);
    engine->frames_done += now.frames - group->counted.frames;
    engine->groups_done += now.batches - group->counted.batches;
    group->counted = now;
}

/* Groups overlap, and need not end in the order in which they began. */
static void add_busy(struct weir_decode_engine *engine, void *end, int64_t own_ns, int64_t since_ns)
{
    int64_t end_ns = engine->last_end_ns + since_ns;
    engine->busy_ns += (uint64_t)weir_intervals_add(&engine->busy, end_ns - own_ns, end_ns);
    if (since_ns < 0)
        return;
    engine->last_end = end;
    engine->last_end_ns = end_ns;
}

static int note_group_locked(struct weir_decode_engine *engine, struct weir_decode_group *group, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = engine->decode->device->ops;
    struct weir_gpu *gpu = engine->decode->device->gpu;
    void *end = group->ends[group->turn];
    int64_t own_ns, since_ns;
    int rc = ops->elapsed(gpu, group->begin, end, &own_ns, err);
    since_ns = own_ns;
    if (rc == 0 && engine->last_end)
        rc = ops->elapsed(gpu, engine->last_end, end, &since_ns, err);
    if (rc < 0)
        return rc;
    weir_stage_stats_add(&engine->decode->groups, own_ns > 0 ? (uint64_t)own_ns : 0);
    add_busy(engine, end, own_ns, since_ns);
    add_counts(engine, group);
    return 0;
}

/* The group has passed. */
static int note_group(struct weir_decode_engine *engine, struct weir_decode_group *group, struct weir_err *err)
{
    pthread_mutex_lock(&engine->decode->figures_lock);
    int rc = note_group_locked(engine, group, err);
    pthread_mutex_unlock(&engine->decode->figures_lock);
    return rc;
}

static int end_group(struct weir_decode_engine *engine, struct weir_decode_group *group, struct weir_err *err)
{
    struct weir_gpu_decode *decode = engine->decode;
    int rc;
    {
        WEIR_ZONE(WEIR_STAGE_WAIT_GPU_DECODE);
        rc = decode->device->ops->wait(decode->device->gpu, group->ends[group->turn], err);
    }
    if (rc == 0)
        rc = note_group(engine, group, err);
    if (rc == 0)
        rc = weir_gpu_decode_settle(decode, group, err);
    end_turn(engine, group);
    return rc;
}

static void name_thread(const struct weir_gpu_decode *decode, const struct weir_decode_group *group)
{
    char name[16];
    int engine = (int)(group->engine - decode->engines), number = (int)(group - group->engine->groups);
    snprintf(name, sizeof name, "weir-jpeg%d", WEIR_DECODE_THREADS * engine + number);
    pthread_setname_np(pthread_self(), name);
    if (decode->shared->recorder)
        weir_thread_attach(decode->shared->recorder, name, WEIR_ROLE_OTHER);
}

/* The engine does not say which of them it was. */
static void name_group(const struct weir_decode_group *group, int n, struct weir_err *err)
{
    const struct weir_image *first = &group->items[0].image;
    char name[256];
    weir_frame_name(group->engine->decode->shared->dataset, first->episode, first->camera, first->t, name, sizeof name);
    weir_err_prefix(err, "in a group of %d JPEGs, the first of them %s", n, name);
}

/* The multiprocessors, which are a help, met the end of the GPU's memory: the CPU decodes the group, and what comes of
 * its kinds. */
static int refuse_group(struct weir_decode_engine *engine, struct weir_decode_group *group, struct weir_err *err)
{
    for (int i = 0; i < group->n; i++)
        group->results[i] = WEIR_JPEG_ENGINE_REFUSED;
    *err = (struct weir_err)WEIR_ERR_NONE;
    int rc = weir_gpu_decode_settle(engine->decode, group, err);
    end_turn(engine, group);
    return rc;
}

/* False: the run has ended, or goes on without this thread. */
static bool decode_group(struct weir_decode_engine *engine, struct weir_decode_group *group)
{
    struct weir_err err = WEIR_ERR_NONE;
    gather(engine, group);
    int n = group->n;
    if (n == 0)
        return false;
    begin_turn(engine, group);
    int rc = group->decoder ? 0 : weir_gpu_decode_open_decoder(group, &err);
    bool opened = rc == 0;
    if (opened)
        rc = submit(engine, group, &err);
    if (is_second(group) && (!opened || rc == -ENOMEM)) {
        give_back(engine, group);
        return false;
    }
    if (rc == -ENOMEM && engine->patient)
        rc = refuse_group(engine, group, &err);
    else if (rc == 0)
        rc = end_group(engine, group, &err);
    if (rc < 0) {
        name_group(group, n, &err);
        weir_feed_fail(engine->decode->shared->feed, &err);
    }
    return rc == 0;
}

void *weir_gpu_decode_main(void *user)
{
    struct weir_decode_group *group = user;
    struct weir_decode_engine *engine = group->engine;
    name_thread(engine->decode, group);
    while (decode_group(engine, group))
        continue;
    weir_item_self = 0;
    weir_thread_detach();
    return NULL;
}
