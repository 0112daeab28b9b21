/* The threads that move batches from the slots to the GPU, and the consumer's waits. */
#include "base/shortage.h"
#include "base/threads.h"
#include "pipeline/offload/upload.h"
#include "weir/stages.h"

#include <errno.h>

enum { POLL_NS = 100 * 1000 * 1000 }; /* polling interval, since a stop from a signal handler wakes no waiter */

void weir_upload_fail(struct weir_upload *upload, const struct weir_err *err)
{
    pthread_mutex_lock(&upload->lock);
    if (!atomic_load_explicit(&upload->failed, memory_order_relaxed))
        upload->err = *err;
    atomic_store_explicit(&upload->failed, true, memory_order_release);
    pthread_mutex_unlock(&upload->lock);
    weir_slots_stop(&upload->shared->slots);
    weir_eventcount_notify(&upload->wakeup);
}

int weir_upload_error(struct weir_upload *upload, struct weir_err *err)
{
    if (!atomic_load_explicit(&upload->failed, memory_order_acquire))
        return 0;
    pthread_mutex_lock(&upload->lock);
    int rc = weir_err_set(err, upload->err.code, "%s", upload->err.text);
    pthread_mutex_unlock(&upload->lock);
    return rc;
}

static bool has_ended(const struct weir_upload *upload)
{
    return atomic_load_explicit(&upload->shared->slots.stop, memory_order_relaxed) ||
           atomic_load_explicit(&upload->failed, memory_order_relaxed);
}

/* Waits until *value, which only grows, exceeds the batch's number. consumer: the wait can be interrupted. Returns the
 * same values as weir_slot_wait_interruptible. */
static int wait_for(struct weir_upload *upload, const _Atomic uint64_t *value, uint64_t sequence, bool consumer)
{
    const struct weir_loader_config *config = &upload->shared->setup.config;
    for (bool slept = false;; slept = true) {
        uint32_t key = weir_eventcount_prepare(&upload->wakeup);
        if (atomic_load_explicit(value, memory_order_acquire) > sequence)
            return 1;
        if (has_ended(upload))
            return 0;
        if (slept && consumer && config->interrupted && config->interrupted(config->user))
            return -EINTR;
        weir_eventcount_wait(&upload->wakeup, key, POLL_NS);
    }
}

static void publish(struct weir_upload *upload, _Atomic uint64_t *value, uint64_t sequence)
{
    atomic_store_explicit(value, sequence + 1, memory_order_release);
    weir_eventcount_notify(&upload->wakeup);
}

/* ---- the uploader ---- */

static void note_uploading(struct weir_upload *upload, enum weir_uploading uploading)
{
    atomic_store_explicit(&upload->uploading, uploading, memory_order_relaxed);
}

static bool wait_returned(struct weir_upload *upload, const struct weir_upload_batch *batch)
{
    for (;;) {
        uint32_t key = weir_eventcount_prepare(&upload->wakeup);
        if (atomic_load_explicit(&batch->state, memory_order_acquire) != WEIR_UPLOAD_QUEUED)
            return true;
        if (has_ended(upload))
            return false;
        weir_eventcount_wait(&upload->wakeup, key, POLL_NS);
    }
}

/* Waits until the output batch for this batch has been returned by the consumer and is no longer used by the GPU. */
static bool acquire(struct weir_upload *upload, uint64_t sequence)
{
    struct weir_upload_batch *batch = weir_upload_batch_of(upload, sequence);
    struct weir_err err = WEIR_ERR_NONE;
    note_uploading(upload, WEIR_UPLOADING_WAIT_BATCH);
    if (!wait_returned(upload, batch))
        return false;
    if (batch->state == WEIR_UPLOAD_RETURNED &&
        (weir_upload_batch_wait(upload, batch, &err) < 0 || weir_upload_times_collect(upload, &err) < 0)) {
        weir_upload_fail(upload, &err);
        return false;
    }
    batch->sequence = sequence;
    atomic_store_explicit(&batch->state, WEIR_UPLOAD_EMPTY, memory_order_relaxed);
    publish(upload, &upload->acquired, sequence);
    return true;
}

static bool upload_batch(struct weir_upload *upload, uint64_t sequence)
{
    struct weir_upload_batch *batch = weir_upload_batch_of(upload, sequence);
    struct weir_slot *slot = weir_slot_of(&upload->shared->slots, sequence);
    struct weir_err err = WEIR_ERR_NONE;
    if (!acquire(upload, sequence))
        return false;
    note_uploading(upload, WEIR_UPLOADING_WAIT_SLOT);
    if (!weir_slot_wait_complete(&upload->shared->slots, sequence))
        return false;
    note_uploading(upload, WEIR_UPLOADING_QUEUE);
    weir_slot_end_waits(&upload->shared->slots, slot);
    batch->err = slot->err;
    bool bad = slot->failed_image >= 0;
    if (!bad && weir_upload_queue(upload, batch, slot, &err) < 0) {
        weir_upload_fail(upload, &err);
        return false;
    }
    atomic_store_explicit(&batch->state, bad ? WEIR_UPLOAD_EMPTY : WEIR_UPLOAD_QUEUED, memory_order_relaxed);
    publish(upload, &upload->queued, sequence);
    return !bad;
}

static void *uploader_main(void *user)
{
    struct weir_upload *upload = user;
    uint64_t sequence = upload->first;
    pthread_setname_np(pthread_self(), "weir-upload");
    if (upload->shared->recorder)
        weir_thread_attach(upload->shared->recorder, "weir-upload", WEIR_ROLE_OTHER);
    while (sequence < upload->shared->setup.total && upload_batch(upload, sequence))
        sequence++;
    note_uploading(upload, WEIR_UPLOADING_NOTHING);
    weir_thread_detach();
    return NULL;
}

/* ---- the reaper ---- */

static bool reap(struct weir_upload *upload, uint64_t sequence)
{
    struct weir_shared *s = upload->shared;
    struct weir_slot *slot = weir_slot_of(&s->slots, sequence);
    struct weir_err err = WEIR_ERR_NONE;
    atomic_store_explicit(&upload->reaped, sequence, memory_order_relaxed);
    atomic_store_explicit(&upload->reaping, WEIR_REAPING_WAIT_QUEUED, memory_order_relaxed);
    if (wait_for(upload, &upload->queued, sequence, false) == 0 || slot->failed_image >= 0)
        return false;
    atomic_store_explicit(&upload->reaping, WEIR_REAPING_WAIT_COPY, memory_order_relaxed);
    /* If the GPU decodes, it writes directly to the slot's staging memory, so the batch in it must have been converted.
     */
    void *event =
        s->decode ? weir_upload_batch_of(upload, sequence)->ready : upload->slots[slot - s->slots.slot].copied;
    if (upload->device->ops->wait(upload->device->gpu, event, &err) < 0) {
        weir_upload_fail(upload, &err);
        return false;
    }
    weir_slot_release(&s->slots, slot);
    if (sequence + (uint64_t)s->slots.n < s->setup.total)
        weir_slot_arm(&s->slots, s->setup.sampler, sequence + (uint64_t)s->slots.n);
    return true;
}

static void *reaper_main(void *user)
{
    struct weir_upload *upload = user;
    uint64_t sequence = upload->first;
    pthread_setname_np(pthread_self(), "weir-reap");
    while (sequence < upload->shared->setup.total && reap(upload, sequence))
        sequence++;
    atomic_store_explicit(&upload->reaping, WEIR_REAPING_NOTHING, memory_order_relaxed);
    return NULL;
}

int weir_upload_start(struct weir_upload *upload, const struct weir_batch_maker *maker, struct weir_err *err)
{
    if (maker)
        upload->maker = *maker;
    upload->uploader_started = weir_thread_start(&upload->uploader, uploader_main, upload) == 0;
    upload->reaper_started = upload->uploader_started && weir_thread_start(&upload->reaper, reaper_main, upload) == 0;
    return upload->reaper_started
               ? 0
               : weir_err_set(err, -EAGAIN, "the threads that upload batches to the GPU cannot be started; %s",
                              weir_machine_advice(-EAGAIN));
}

void weir_upload_finish(struct weir_upload *upload)
{
    weir_eventcount_notify(&upload->wakeup);
    if (upload->uploader_started)
        pthread_join(upload->uploader, NULL);
    if (upload->reaper_started)
        pthread_join(upload->reaper, NULL);
    upload->uploader_started = upload->reaper_started = false;
    weir_upload_times_collect(upload, NULL);
}

/* ---- the consumer ---- */

/* Makes the batch on the consumer's thread if there are no workers. A wait that is resumed after an interruption does
 * not make it again. Returns false if stopped. */
static bool make(struct weir_upload *upload, uint64_t sequence)
{
    if (!upload->maker.make || upload->made > sequence)
        return true;
    if (!weir_slot_wait_armed(&upload->shared->slots, sequence))
        return false;
    upload->maker.make(upload->maker.user, sequence);
    upload->made = sequence + 1;
    return true;
}

/* Like weir_upload_wait, but returns 1 with *queued false if no output batch is free yet. */
static int wait_data(struct weir_upload *upload, uint64_t sequence, struct weir_wait_times *waited, bool *queued)
{
    WEIR_ZONE(WEIR_STAGE_WAIT_DATA);
    const struct weir_loader_config *config = &upload->shared->setup.config;
    uint64_t start_ns = weir_clock_monotonic_ns();
    *queued = false;
    if (!make(upload, sequence))
        return 0;
    int rc = weir_slot_wait_interruptible(&upload->shared->slots, sequence, config->interrupted, config->user);
    if (rc <= 0)
        return rc;
    *queued = atomic_load_explicit(&upload->acquired, memory_order_acquire) > sequence;
    if (*queued)
        rc = wait_for(upload, &upload->queued, sequence, true);
    weir_item_self = *queued && rc > 0 ? weir_upload_batch_of(upload, sequence)->task_id : 0;
    waited->data_ns = weir_clock_monotonic_ns() - start_ns;
    return rc;
}

/* Until the slot is complete, the time counts as data wait. If no output batch is free by then, the rest counts as GPU
 * wait. */
int weir_upload_wait(struct weir_upload *upload, uint64_t sequence, struct weir_wait_times *waited)
{
    bool queued;
    *waited = (struct weir_wait_times){0};
    int rc = wait_data(upload, sequence, waited, &queued);
    if (rc <= 0 || queued)
        return rc;
    WEIR_ZONE(WEIR_STAGE_WAIT_GPU);
    uint64_t start_ns = weir_clock_monotonic_ns();
    rc = wait_for(upload, &upload->queued, sequence, true);
    waited->gpu_ns = weir_clock_monotonic_ns() - start_ns;
    return rc;
}
