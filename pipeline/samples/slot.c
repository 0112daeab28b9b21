#include "pipeline/samples/slot.h"
#include "base/resources.h"
#include "base/text.h"
#include "base/threads.h"
#include "pipeline/gpu/gpu_ops.h"
#include "pipeline/samples/completion.h"
#include "pipeline/samples/sampler.h"
#include "weir/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { POLL_NS = 100 * 1000 * 1000 }; /* polling interval, since a stop from a signal handler wakes no waiter */

static int map_memory(struct weir_slots *slots, int n, const struct weir_batch_layout *layout, int processes,
                      struct weir_err *err)
{
    uint64_t bytes, available = weir_memory_available_each(processes);
    if (__builtin_mul_overflow((uint64_t)n, (uint64_t)layout->slot_bytes, &bytes) || (available && bytes > available))
        return weir_err_set(err, -ENOMEM,
                            "%d batches of %s need %s, but only %s are free%s; use a smaller --batch-size or "
                            "--prefetch",
                            n, weir_size((double)layout->slot_bytes).text,
                            weir_size((double)n * (double)layout->slot_bytes).text, weir_size((double)available).text,
                            processes > 1 ? " for each local rank" : "");
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return weir_err_set(err, -ENOMEM, "out of memory for %d batches of %s", n,
                            weir_size((double)layout->slot_bytes).text);
    madvise(memory, bytes, MADV_HUGEPAGE);
    memset(memory, 0, bytes); /* so that page faults occur here and not in a stage */
    slots->memory = memory;
    slots->memory_bytes = bytes;
    slots->slot_bytes = layout->slot_bytes;
    weir_memory_reserved((int64_t)bytes, WEIR_MEMORY_CPU);
    return 0;
}

static int init_slot(struct weir_slot *slot, size_t tasks, uint8_t *memory, const struct weir_batch_layout *layout,
                     bool claims)
{
    size_t n = (size_t)layout->batch_size;
    slot->memory = memory;
    slot->samples = calloc(n, sizeof *slot->samples);
    slot->progress = calloc(n, sizeof *slot->progress);
    slot->done = calloc(tasks, sizeof *slot->done);
    slot->order = calloc(n, sizeof *slot->order);
    slot->rank = calloc(n, sizeof *slot->rank);
    slot->failed_image = -1;
    slot->batch.n_tensors = layout->n_tensors;
    for (int i = 0; i < layout->n_tensors; i++) {
        slot->batch.tensors[i] = layout->tensors[i];
        slot->batch.tensors[i].data = memory + layout->offsets[i];
    }
    slot->batch.samples = slot->samples;
    slot->batch.device = -1;
    if (claims)
        slot->claimed = calloc(tasks, sizeof *slot->claimed);
    bool fine = slot->samples && slot->progress && slot->done && slot->order && slot->rank;
    return fine && (!claims || slot->claimed) ? 0 : -ENOMEM;
}

int weir_slots_open(struct weir_slots *slots, int n, const struct weir_batch_layout *layout, bool claims, int processes,
                    struct weir_err *err)
{
    pthread_mutex_init(&slots->lock, NULL);
    pthread_mutex_init(&slots->claims, NULL);
    slots->n = n;
    slots->layout = layout;
    slots->tasks_per_sample = layout->n_cameras + 1;
    slots->tasks_per_batch = layout->batch_size * slots->tasks_per_sample;
    slots->slot = aligned_alloc(alignof(struct weir_slot), sizeof *slots->slot * (size_t)n);
    if (!slots->slot)
        return weir_err_set(err, -ENOMEM, "out of memory");
    memset(slots->slot, 0, sizeof *slots->slot * (size_t)n);
    int rc = map_memory(slots, n, layout, processes, err);
    for (int i = 0; i < n && rc == 0; i++)
        if (init_slot(&slots->slot[i], (size_t)slots->tasks_per_batch, slots->memory + (size_t)i * layout->slot_bytes,
                      layout, claims) < 0)
            rc = weir_err_set(err, -ENOMEM, "out of memory");
    return rc;
}

/* Unmaps all memory except buffers that consumers keep. */
static void unmap_memory(struct weir_slots *slots)
{
    if (!slots->memory)
        return;
    for (int i = 0; i < slots->n; i++) {
        struct weir_slot *slot = slots->slot ? &slots->slot[i] : NULL;
        if (!slot || !slot->moved)
            weir_memory_unmap(slots->memory + (size_t)i * slots->slot_bytes, slots->slot_bytes);
        else if (slot->memory)
            weir_memory_unmap(slot->memory, slots->slot_bytes);
    }
    weir_memory_reserved(-(int64_t)slots->memory_bytes, WEIR_MEMORY_CPU);
}

void weir_slots_close(struct weir_slots *slots)
{
    if (slots->n == 0)
        return;
    for (int i = 0; slots->slot && i < slots->n; i++) {
        weir_slot_release(slots, &slots->slot[i]);
        free(slots->slot[i].samples);
        free(slots->slot[i].progress);
        free(slots->slot[i].done);
        free(slots->slot[i].order);
        free(slots->slot[i].rank);
        free(slots->slot[i].claimed);
    }
    unmap_memory(slots);
    free(slots->slot);
    pthread_mutex_destroy(&slots->lock);
    pthread_mutex_destroy(&slots->claims);
    *slots = (struct weir_slots){0};
}

static bool is_before(const struct weir_slot_order *a, const struct weir_slot_order *b)
{
    if (a->episode != b->episode)
        return a->episode < b->episode;
    if (a->t != b->t)
        return a->t < b->t;
    return a->sample < b->sample; /* makes the order unique if a batch contains a sample twice */
}

/* qsort would allocate memory for large batches. */
static void shell_sort(struct weir_slot_order *order, int n)
{
    int gap = 1;
    while (gap < n / 9)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (int i = gap; i < n; i++) {
            struct weir_slot_order moved = order[i];
            int to = i;
            for (; to >= gap && is_before(&moved, &order[to - gap]); to -= gap)
                order[to] = order[to - gap];
            order[to] = moved;
        }
}

/* Counts the parts of each sample: one for the sample itself, and one for each earlier owner whose frames are in its
 * range. These owners are at indexes from `from` up to the sample's, and `from` only increases. */
static void count_parts(const struct weir_slots *slots, struct weir_slot *slot)
{
    struct weir_slot_order *order = slot->order;
    int from = 0, owners = 0;
    for (int i = 0; i < slot->plan.n; i++) {
        int first = weir_order_first(slots, slot, i);
        while (from < i && (order[from].episode != order[i].episode || weir_order_last(slots, slot, from) < first))
            owners -= weir_order_owns_any(slots, slot, from++);
        order[i].parts = 1 + owners;
        owners += weir_order_owns_any(slots, slot, i);
    }
}

void weir_order_sort(struct weir_slot_order *order, int *rank, const struct weir_sample *samples, int n,
                     const struct weir_sampler *sampler)
{
    for (int i = 0; i < n; i++) {
        struct weir_sample of = samples[i];
        order[i] = (struct weir_slot_order){of.episode, of.t, i, weir_sampler_steps(sampler, of.episode), 1};
    }
    shell_sort(order, n);
    for (int i = 0; i < n; i++)
        rank[order[i].sample] = i;
}

static void set_open(struct weir_slots *slots, struct weir_slot *slot, bool open)
{
    if (!slot->claimed)
        return;
    pthread_mutex_lock(&slots->claims);
    slot->open = open;
    pthread_mutex_unlock(&slots->claims);
}

void weir_slot_forget_decoded(struct weir_slot *slot)
{
    memset(slot->decoded, 0, (size_t)slot->n_images * sizeof *slot->decoded);
    for (int i = 0; i < slot->n_samples; i++)
        slot->row[i] = i;
}

void weir_slot_arm(struct weir_slots *slots, const struct weir_sampler *sampler, uint64_t sequence)
{
    struct weir_slot *slot = weir_slot_of(slots, sequence);
    weir_sampler_plan(sampler, sequence, &slot->plan, slot->samples);
    weir_order_sort(slot->order, slot->rank, slot->samples, slot->plan.n, sampler);
    count_parts(slots, slot);
    if (slot->claimed) /* no lock is needed, because the slot is not open */
        memset(slot->claimed, 0, (size_t)slot->plan.n * (size_t)slots->tasks_per_sample);
    weir_completion_arm(slots, slot);
    if (slot->decoded)
        weir_slot_forget_decoded(slot);
    slot->failed_image = -1;
    slot->err = WEIR_ERR_NONE;
    slot->batch.plan = slot->plan;
    slot->batch.n = slot->plan.n;
    set_open(slots, slot, true);
    atomic_store_explicit(&slot->armed, sequence + 1,
                          memory_order_release); /* makes all of the above visible to workers */
    weir_eventcount_notify(&slot->arming);
}

void weir_slot_lend(struct weir_slots *slots, struct weir_slot *slot)
{
    atomic_store_explicit(&slot->lent, true, memory_order_relaxed);
    weir_memory_allocated(slot->memory, slots->slot_bytes, WEIR_MEMORY_CPU);
}

void weir_slot_release(struct weir_slots *slots, struct weir_slot *slot)
{
    atomic_store_explicit(&slot->begun, false, memory_order_relaxed);
    if (atomic_exchange_explicit(&slot->lent, false, memory_order_relaxed))
        weir_memory_freed(slot->memory, slots->slot_bytes, WEIR_MEMORY_CPU);
}

int weir_slot_move(struct weir_slots *slots, struct weir_slot *slot, bool another, void **memory, struct weir_err *err)
{
    size_t bytes = slots->slot_bytes;
    uint64_t available = another ? weir_memory_available_bytes() : 0;
    if (available && bytes > available / 2) /* leaves half of the free memory to other uses */
        return weir_err_set(err, -ENOMEM,
                            "too little memory for another batch while some are kept: it needs %s, but may use "
                            "only half of the %s that are free; release kept batches",
                            weir_size((double)bytes).text, weir_size((double)available).text);
    void *fresh = another ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
    if (fresh == MAP_FAILED)
        return weir_err_set(err, -ENOMEM, "out of memory for a batch of %s while others are kept",
                            weir_size((double)bytes).text);
    if (fresh)
        madvise(fresh, bytes, MADV_HUGEPAGE);
    for (int i = 0; fresh && i < slot->batch.n_tensors; i++) {
        struct weir_tensor *tensor = &slot->batch.tensors[i];
        tensor->data = (uint8_t *)fresh + ((uint8_t *)tensor->data - slot->memory);
    }
    weir_slot_release(slots, slot);
    *memory = slot->memory;
    slot->memory = fresh;
    slot->moved = true;
    return 0;
}

static bool stopped(const struct weir_slots *slots)
{
    return atomic_load_explicit(&slots->stop, memory_order_relaxed);
}

/* Waits until *value, which only grows, reaches sequence + 1. The acquire load makes the earlier writes of the other
 * thread visible. There is no spinning before the wait, because it can take as long as decoding and a worker may need
 * this core. */
static int wait_for(const struct weir_slots *slots, struct weir_eventcount *wakeup, const _Atomic uint64_t *value,
                    uint64_t sequence, bool (*interrupted)(void *user), void *user)
{
    for (bool slept = false;; slept = true) {
        uint32_t key = weir_eventcount_prepare(wakeup);
        if (atomic_load_explicit(value, memory_order_acquire) > sequence)
            return 1;
        if (stopped(slots))
            return 0;
        if (slept && interrupted && interrupted(user))
            return -EINTR;
        weir_eventcount_wait(wakeup, key, POLL_NS);
    }
}

bool weir_slot_wait_armed(struct weir_slots *slots, uint64_t sequence)
{
    struct weir_slot *slot = weir_slot_of(slots, sequence);
    return wait_for(slots, &slot->arming, &slot->armed, sequence, NULL, NULL) > 0;
}

bool weir_slot_wait_complete(struct weir_slots *slots, uint64_t sequence)
{
    return weir_slot_wait_interruptible(slots, sequence, NULL, NULL) > 0;
}

int weir_slot_wait_interruptible(struct weir_slots *slots, uint64_t sequence, bool (*interrupted)(void *user),
                                 void *user)
{
    return wait_for(slots, &slots->done, &weir_slot_of(slots, sequence)->complete, sequence, interrupted, user);
}

void weir_slot_finish(struct weir_slots *slots, struct weir_slot *slot)
{
    set_open(slots, slot, false);
    atomic_fetch_add_explicit(&slots->completed, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->complete, slot->plan.sequence + 1, memory_order_release);
    weir_eventcount_notify(&slots->done);
}

void weir_slot_end_waits(const struct weir_slots *slots, const struct weir_slot *slot)
{
    int tasks = slot->plan.n * slots->tasks_per_sample;
    for (int task = 0; task < tasks && weir_recording(); task++)
        weir_async_end(&slot->done[task], weir_task_id(slots, slot->plan.sequence, (uint64_t)task));
}

void weir_slots_wait_stop(struct weir_slots *slots)
{
    static const _Atomic uint64_t never = 0;
    wait_for(slots, &slots->stopping, &never, 0, NULL, NULL);
}

void weir_slots_stop(struct weir_slots *slots)
{
    atomic_store_explicit(&slots->stop, true, memory_order_release);
    for (int i = 0; slots->slot && i < slots->n; i++)
        weir_eventcount_notify(&slots->slot[i].arming);
    weir_eventcount_notify(&slots->done);
    weir_eventcount_notify(&slots->stopping);
}

void weir_slot_fail(struct weir_slots *slots, struct weir_slot *slot, int64_t image, const struct weir_err *err)
{
    pthread_mutex_lock(&slots->lock);
    if (slot->failed_image < 0 || image < slot->failed_image) {
        slot->failed_image = image;
        slot->err = *err;
    }
    pthread_mutex_unlock(&slots->lock);
}
