/* slot.h: the batches in flight. A slot is the memory of one batch. Batch `sequence` uses slot `sequence % n`. A slot
 * is armed (planned and ready for tasks), filled by the workers, complete, lent to the consumer, and then armed again
 * for batch `sequence + n`.
 *
 * Access: from arming to completion, only the workers use a slot, and only one worker writes to each destination. From
 * completion to release, only the consumer uses the slot. Counters transfer the ownership: the last task's decrement
 * and the store to `complete` release the written data, and the consumer's load acquires it. `armed` does the same in
 * the other direction. */
#ifndef WEIR_PIPELINE_SAMPLES_SLOT_H
#define WEIR_PIPELINE_SAMPLES_SLOT_H

#include "base/threads.h"
#include "pipeline/samples/batch_layout.h"
#include "pipeline/samples/steps.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

/* One image of a batch: a frame and its destination. */
struct weir_image {
    int episode, camera, t;
    void *destination;
};

/* One sample of a slot: the time when it began, and its remaining parts (completion.h). */
struct weir_slot_sample {
    _Atomic uint64_t start_ticks, images_start_ticks;
    _Atomic int parts_left, images_left;
    _Atomic bool bad; /* omitted from the batch */
};

/* Samples are sorted by (episode, t), so that samples with common frames or blocks of chunks are neighbours. */
struct weir_slot_order {
    int episode, t, sample;
    int steps; /* of the episode */
    /* Number of tasks per camera that load images of this sample: its own, and those of earlier samples with common
     * frames. */
    int parts;
};

struct weir_slot {
    alignas(64) _Atomic uint64_t armed; /* 1 + number of the batch whose tasks may run */
    struct weir_eventcount arming;      /* wakes only workers that have a task of this slot's next batch */
    _Atomic uint64_t complete;          /* 1 + number of the batch that is complete */
    _Atomic int tasks_left;
    _Atomic bool lent;       /* lent to the consumer */
    _Atomic bool begun;      /* set from the first task to the release */
    uint64_t last_task_id;   /* task that completed the batch */
    struct weir_async *done; /* per task, the async range from its end to the batch's delivery */
    struct weir_plan plan;
    struct weir_sample *samples;
    struct weir_slot_sample *progress;
    struct weir_slot_order *order;
    int *rank; /* per sample, its index in `order` */
    /* Protected by the slots' claims lock; used only if frames share blocks: */
    bool open;        /* armed but not complete, so samples may be claimed */
    uint8_t *claimed; /* per sample and camera, whether a task has claimed it */
    /* Used only if a GPU decodes. The arrays are owned by gpu_decode.c. */
    int n_images, n_tasks, n_samples;
    struct weir_gpu_source *decoded; /* per image (weir_layout_number); plane[0] NULL = the image is in host memory */
    int *row; /* per sample of the batch, the row of its images, which are not moved if samples are skipped */
    _Atomic int *deferred; /* per task, the number of frames that the GPU is decoding, plus 1 for the worker */
    uint8_t *memory;
    bool moved; /* the slot's original memory belongs to a consumer */
    struct weir_batch batch;
    /* The error of the failed image with the lowest index, so that all runs report the same error. Protected by the
     * slots' lock. */
    int64_t failed_image; /* -1 = none */
    struct weir_err err;
    struct weir_last_task last; /* the batch's last task */
};

struct weir_slots {
    pthread_mutex_t lock, claims;          /* lock protects errors; claims protects claims */
    struct weir_eventcount done, stopping; /* done: a batch is complete; stopping: the slots stop */
    _Atomic uint64_t completed;            /* number of batches completed since open */
    int n;
    const struct weir_batch_layout *layout; /* borrowed */
    int tasks_per_sample;                   /* one per camera, plus one for the state */
    int tasks_per_batch;                    /* number of tasks of a full batch */
    struct weir_slot *slot;
    uint8_t *memory;
    size_t memory_bytes, slot_bytes;
    _Atomic bool stop;
};

/* Allocates n slots and touches their memory. layout must outlive the slots. claims: tasks may claim samples, including
 * those of later batches. processes: number of processes on this machine that each allocate this much memory; 0
 * means 1. */
int weir_slots_open(struct weir_slots *slots, int n, const struct weir_batch_layout *layout, bool claims, int processes,
                    struct weir_err *err);
void weir_slots_close(struct weir_slots *slots);

/* Fills `order` with the n samples of a batch, sorted, and `rank` with the index of each sample in it. */
void weir_order_sort(struct weir_slot_order *order, int *rank, const struct weir_sample *samples, int n,
                     const struct weir_sampler *sampler);

/* Plans batch `sequence` in its unused slot and opens the slot to workers. */
void weir_slot_arm(struct weir_slots *slots, const struct weir_sampler *sampler, uint64_t sequence);
static inline struct weir_slot *weir_slot_of(struct weir_slots *slots, uint64_t sequence)
{
    return &slots->slot[sequence % (uint64_t)slots->n];
}

/* Returns the task's id: its number in the run, counted from 1. The recorded work and waits of the task carry this id.
 */
static inline uint64_t weir_task_id(const struct weir_slots *slots, uint64_t sequence, uint64_t task)
{
    return sequence * (uint64_t)slots->tasks_per_batch + task + 1;
}

/* Ends the async waits of a complete batch's tasks. Each began at the end of its task and lasts until delivery to the
 * consumer. */
void weir_slot_end_waits(const struct weir_slots *slots, const struct weir_slot *slot);

/* Marks all images of the slot as not decoded by the GPU, and as being in the rows of their own samples. */
void weir_slot_forget_decoded(struct weir_slot *slot);

/* Lends the batch and its memory to the consumer, until weir_slot_release. */
void weir_slot_lend(struct weir_slots *slots, struct weir_slot *slot);
void weir_slot_release(struct weir_slots *slots, struct weir_slot *slot);
/* Releases the slot and transfers its memory (slot_bytes) to the consumer, who must free *memory with
 * weir_memory_unmap. another: gives the slot new memory for its next batch. If this returns -ENOMEM, nothing has
 * changed. */
int weir_slot_move(struct weir_slots *slots, struct weir_slot *slot, bool another, void **memory, struct weir_err *err);

/* Block until batch `sequence` is armed, or complete. Return false if stopped. */
bool weir_slot_wait_armed(struct weir_slots *slots, uint64_t sequence);
bool weir_slot_wait_complete(struct weir_slots *slots, uint64_t sequence);
/* Interruptible variant of weir_slot_wait_complete. Calls interrupted(user) at least 10 times a second, and after each
 * signal to the thread. Returns 1 if complete, 0 if stopped, or -EINTR if interrupted returned true. interrupted may be
 * NULL. */
int weir_slot_wait_interruptible(struct weir_slots *slots, uint64_t sequence, bool (*interrupted)(void *user),
                                 void *user);
void weir_slot_finish(struct weir_slots *slots, struct weir_slot *slot);

/* Blocks until the slots are stopped. */
void weir_slots_wait_stop(struct weir_slots *slots);
/* Stops the slots and wakes all waiters, whose waits then return false. */
void weir_slots_stop(struct weir_slots *slots);

/* Keeps the error if its image has the lowest index so far. image: index in the batch, ordered by task and then by
 * position in the window. */
void weir_slot_fail(struct weir_slots *slots, struct weir_slot *slot, int64_t image, const struct weir_err *err);

/* For each camera, the sample at this index of the order needs some of the frames weir_order_first() ..
 * weir_order_last(). Earlier samples may need some of them too. The sample owns frames weir_order_first_owned() ..
 * weir_order_last(), which are in the range of no earlier sample. It owns none if the first exceeds the last. */
static inline int weir_order_first(const struct weir_slots *slots, const struct weir_slot *slot, int at)
{
    const struct weir_slot_order *order = &slot->order[at];
    return weir_window_clamp((int64_t)order->t + slots->layout->windows->first, order->steps);
}

static inline int weir_order_last(const struct weir_slots *slots, const struct weir_slot *slot, int at)
{
    const struct weir_slot_order *order = &slot->order[at];
    return weir_window_clamp((int64_t)order->t + slots->layout->windows->last, order->steps);
}

static inline int weir_order_first_owned(const struct weir_slots *slots, const struct weir_slot *slot, int at)
{
    int first = weir_order_first(slots, slot, at), before;
    if (at == 0 || slot->order[at - 1].episode != slot->order[at].episode)
        return first;
    before = weir_order_last(slots, slot, at - 1);
    return before >= first ? before + 1 : first;
}

static inline bool weir_order_owns_any(const struct weir_slots *slots, const struct weir_slot *slot, int at)
{
    return weir_order_first_owned(slots, slot, at) <= weir_order_last(slots, slot, at);
}

/* Returns whether frame t, which the sample at index `at` owns, is in the range of the sample at index `later`. */
static inline bool weir_order_covers(const struct weir_slots *slots, const struct weir_slot *slot, int at, int t,
                                     int later)
{
    return later < slot->plan.n && slot->order[later].episode == slot->order[at].episode &&
           weir_order_first(slots, slot, later) <= t;
}

/* Returns the frame at position i of a camera's window, for the sample at this index. */
static inline int weir_order_frame(const struct weir_slots *slots, const struct weir_slot *slot, int at, int camera,
                                   int i)
{
    const struct weir_slot_order *order = &slot->order[at];
    return weir_window_step(&slots->layout->windows->cameras[camera], i, order->t, order->steps);
}

/* ---- sharing.c: samples of a batch whose frames are in the same blocks, and are therefore loaded by one task. */

struct weir_setup;

/* Return the number of the first and the last block that the window of a sample touches. */
int weir_sharing_first_block(const struct weir_setup *setup, const struct weir_slot_order *at, int camera);
int weir_sharing_last_block(const struct weir_setup *setup, const struct weir_slot_order *at, int camera);

/* Finds the samples that share blocks with the sample at index `at` of the order, directly or through others: those at
 * *from .. *to - 1. n: number of samples in the batch. */
void weir_sharing_group(const struct weir_setup *setup, const struct weir_slot_order *order, int n, int at, int camera,
                        int *from, int *to);

#endif
