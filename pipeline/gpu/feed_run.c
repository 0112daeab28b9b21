/* The threads between the slots and the GPU, and what the consumer waits for. */
#include "base/threads.h"
#include "pipeline/gpu/feed.h"
#include "pipeline/loader_stages.h"

#include <errno.h>

enum { POLL_NS = 100 * 1000 * 1000 }; /* a stop from a signal handler wakes nobody: look this often */

void weir_feed_fail(struct weir_feed *feed, const struct weir_err *err)
{
    pthread_mutex_lock(&feed->lock);
    if (!atomic_load_explicit(&feed->failed, memory_order_relaxed))
        feed->err = *err;
    atomic_store_explicit(&feed->failed, true, memory_order_release);
    pthread_mutex_unlock(&feed->lock);
    weir_slots_stop(&feed->shared->slots);
    weir_bell_ring(&feed->bell);
}

int weir_feed_error(struct weir_feed *feed, struct weir_err *err)
{
    if (!atomic_load_explicit(&feed->failed, memory_order_acquire))
        return 0;
    pthread_mutex_lock(&feed->lock);
    int rc = weir_err_set(err, feed->err.code, "%s", feed->err.text);
    pthread_mutex_unlock(&feed->lock);
    return rc;
}

static bool has_ended(const struct weir_feed *feed)
{
    return atomic_load_explicit(&feed->shared->slots.stop, memory_order_relaxed) ||
           atomic_load_explicit(&feed->failed, memory_order_relaxed);
}

/* Waits for *value, which only grows, to pass the batch's number. */
static bool wait_for(struct weir_feed *feed, const _Atomic uint64_t *value, uint64_t sequence)
{
    for (;;) {
        uint32_t turn = weir_bell_turn(&feed->bell);
        if (atomic_load_explicit(value, memory_order_acquire) > sequence)
            return true;
        if (has_ended(feed))
            return false;
        weir_bell_wait(&feed->bell, turn, POLL_NS);
    }
}

static void publish(struct weir_feed *feed, _Atomic uint64_t *value, uint64_t sequence)
{
    atomic_store_explicit(value, sequence + 1, memory_order_release);
    weir_bell_ring(&feed->bell);
}

/* ---- the feeder ---- */

static void say_feeding(struct weir_feed *feed, enum weir_feeding feeding)
{
    atomic_store_explicit(&feed->feeding, feeding, memory_order_relaxed);
}

static bool wait_returned(struct weir_feed *feed, const struct weir_feed_batch *batch)
{
    for (;;) {
        uint32_t turn = weir_bell_turn(&feed->bell);
        if (atomic_load_explicit(&batch->state, memory_order_acquire) != WEIR_FEED_QUEUED)
            return true;
        if (has_ended(feed))
            return false;
        weir_bell_wait(&feed->bell, turn, POLL_NS);
    }
}

/* Gets the output batch that this batch of the run is to be made in: the consumer has returned it, and the GPU is
 * through with it. */
static bool acquire(struct weir_feed *feed, uint64_t sequence)
{
    struct weir_feed_batch *batch = weir_feed_batch_of(feed, sequence);
    struct weir_err err = WEIR_ERR_NONE;
    say_feeding(feed, WEIR_FEEDING_WAIT_BATCH);
    if (!wait_returned(feed, batch))
        return false;
    if (batch->state == WEIR_FEED_RETURNED &&
        (weir_feed_batch_wait(feed, batch, &err) < 0 || weir_feed_times_collect(feed, &err) < 0)) {
        weir_feed_fail(feed, &err);
        return false;
    }
    batch->sequence = sequence;
    atomic_store_explicit(&batch->state, WEIR_FEED_EMPTY, memory_order_relaxed);
    publish(feed, &feed->acquired, sequence);
    return true;
}

static bool feed_batch(struct weir_feed *feed, uint64_t sequence)
{
    struct weir_feed_batch *batch = weir_feed_batch_of(feed, sequence);
    struct weir_slot *slot = weir_slot_of(&feed->shared->slots, sequence);
    struct weir_err err = WEIR_ERR_NONE;
    if (!acquire(feed, sequence))
        return false;
    say_feeding(feed, WEIR_FEEDING_WAIT_SLOT);
    if (!weir_slot_wait_complete(&feed->shared->slots, sequence))
        return false;
    say_feeding(feed, WEIR_FEEDING_QUEUE);
    weir_slot_end_waits(&feed->shared->slots, slot);
    batch->err = slot->err;
    bool bad = slot->failed_image >= 0;
    if (!bad && weir_feed_queue(feed, batch, slot, &err) < 0) {
        weir_feed_fail(feed, &err);
        return false;
    }
    atomic_store_explicit(&batch->state, bad ? WEIR_FEED_EMPTY : WEIR_FEED_QUEUED, memory_order_relaxed);
    publish(feed, &feed->fed, sequence);
    return !bad;
}

static void *feeder_main(void *user)
{
    struct weir_feed *feed = user;
    uint64_t sequence = feed->first;
    pthread_setname_np(pthread_self(), "weir-feed");
    if (feed->shared->recorder)
        weir_thread_attach(feed->shared->recorder, "weir-feed", WEIR_ROLE_OTHER);
    while (sequence < feed->shared->total && feed_batch(feed, sequence))
        sequence++;
    say_feeding(feed, WEIR_FEEDING_NOTHING);
    weir_thread_detach();
    return NULL;
}

/* ---- the reaper ---- */

static bool reap(struct weir_feed *feed, uint64_t sequence)
{
    struct weir_shared *s = feed->shared;
    struct weir_slot *slot = weir_slot_of(&s->slots, sequence);
    struct weir_err err = WEIR_ERR_NONE;
    atomic_store_explicit(&feed->reaped, sequence, memory_order_relaxed);
    atomic_store_explicit(&feed->reaping, WEIR_REAPING_WAIT_FEED, memory_order_relaxed);
    if (!wait_for(feed, &feed->fed, sequence) || slot->failed_image >= 0)
        return false;
    atomic_store_explicit(&feed->reaping, WEIR_REAPING_WAIT_COPY, memory_order_relaxed);
    /* What the GPU decodes goes straight to the staging memory, which has to be free of the batch before. */
    void *event = s->decode ? weir_feed_batch_of(feed, sequence)->ready : feed->slots[slot - s->slots.slot].copied;
    if (feed->device->ops->wait(feed->device->gpu, event, &err) < 0) {
        weir_feed_fail(feed, &err);
        return false;
    }
    weir_slot_release(&s->slots, slot);
    if (sequence + (uint64_t)s->slots.n < s->total)
        weir_slot_arm(&s->slots, s->sampler, sequence + (uint64_t)s->slots.n);
    return true;
}

static void *reaper_main(void *user)
{
    struct weir_feed *feed = user;
    uint64_t sequence = feed->first;
    pthread_setname_np(pthread_self(), "weir-reap");
    while (sequence < feed->shared->total && reap(feed, sequence))
        sequence++;
    atomic_store_explicit(&feed->reaping, WEIR_REAPING_NOTHING, memory_order_relaxed);
    return NULL;
}

int weir_feed_start(struct weir_feed *feed, const struct weir_batch_maker *maker, struct weir_err *err)
{
    if (maker)
        feed->maker = *maker;
    feed->feeder_started = weir_thread_start(&feed->feeder, feeder_main, feed) == 0;
    feed->reaper_started = feed->feeder_started && weir_thread_start(&feed->reaper, reaper_main, feed) == 0;
    return feed->reaper_started ? 0 : weir_err_set(err, -EAGAIN, "the threads that feed the GPU cannot be started");
}

void weir_feed_finish(struct weir_feed *feed)
{
    weir_bell_ring(&feed->bell);
    if (feed->feeder_started)
        pthread_join(feed->feeder, NULL);
    if (feed->reaper_started)
        pthread_join(feed->reaper, NULL);
    feed->feeder_started = feed->reaper_started = false;
    weir_feed_times_collect(feed, NULL);
}

/* ---- the consumer ---- */

/* Data is waited for until the slot is complete; then, while there is no output batch to put it in, the GPU. */
struct weir_feed_batch *weir_feed_wait(struct weir_feed *feed, uint64_t sequence, struct weir_waited *waited)
{
    struct weir_slots *slots = &feed->shared->slots;
    struct weir_feed_batch *batch = weir_feed_batch_of(feed, sequence);
    *waited = (struct weir_waited){0};
    {
        WEIR_ZONE(WEIR_STAGE_WAIT_DATA);
        uint64_t start_ns = weir_clock_monotonic_ns();
        if (feed->maker.make && !weir_slot_wait_armed(slots, sequence))
            return NULL;
        if (feed->maker.make)
            feed->maker.make(feed->maker.user, sequence);
        if (!weir_slot_wait_complete(slots, sequence))
            return NULL;
        bool fed = atomic_load_explicit(&feed->acquired, memory_order_acquire) > sequence &&
                   wait_for(feed, &feed->fed, sequence);
        weir_item_self = fed ? batch->item : 0;
        waited->data_ns = weir_clock_monotonic_ns() - start_ns;
        if (fed)
            return batch;
    }
    WEIR_ZONE(WEIR_STAGE_WAIT_GPU);
    uint64_t start_ns = weir_clock_monotonic_ns();
    bool there = wait_for(feed, &feed->fed, sequence);
    waited->gpu_ns = weir_clock_monotonic_ns() - start_ns;
    return there ? batch : NULL;
}
