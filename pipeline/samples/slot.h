/* slot.h: the batches in flight. A slot is memory for one batch; slot `sequence % n` carries batch `sequence`. It is
 * armed (planned, ready for tasks), worked on, complete, lent to the consumer, and armed again for the batch n later.
 *
 * Access: between arming and completion the workers, each destination by one of them; from completion to release the
 * consumer. The counters transfer ownership: the last task's decrement and the store to `complete` release the written
 * data, and the consumer's load acquires it; `armed` does the same in the other direction. */
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

/* One sample of a slot: when it began, and the parts left (work/completion.h). */
struct weir_slot_sample {
    _Atomic uint64_t start_ticks, images_start_ticks;
    _Atomic int parts_left, images_left;
    _Atomic bool bad; /* omitted from the batch */
};

/* Samples sorted by (episode, t), so that samples with common frames or blocks of chunks are neighbours. */
struct weir_slot_order {
    int episode, t, sample;
    int parts; /* number of tasks per camera that load this sample's images: its own, and those of earlier samples with
                  frames in common */
};

struct weir_slot {
    alignas(64) _Atomic uint64_t armed; /* batch + 1 whose tasks may run */
    struct weir_eventcount arming;      /* wakes only the workers that have a task of this slot's next batch */
    _Atomic uint64_t complete;          /* batch + 1 that is complete */
    _Atomic int tasks_left;
    _Atomic bool lent;       /* to the consumer */
    _Atomic bool begun;      /* from the first task to the release */
    uint64_t last_task_id;   /* the task that completed it */
    struct weir_async *done; /* per task, async range from its end to the batch's delivery */
    struct weir_plan plan;
    struct weir_sample *samples;
    struct weir_slot_sample *progress;
    struct weir_slot_order *order;
    int *rank; /* per sample, its index in order */
    /* Protected by the slots' claims lock; used only if frames share blocks: */
    bool open;        /* armed and not complete: samples may be claimed */
    uint8_t *claimed; /* per sample and camera: claimed by a task */
    /* Used only when a GPU decodes; the arrays are owned by gpu_decode.c. */
    int n_images, n_tasks, n_samples;
    struct weir_gpu_source *decoded; /* per image (weir_layout_number); plane[0] NULL: the image is in memory */
    int *row; /* per sample of the batch, the row of its images: images are not moved over skipped samples */
    _Atomic int *deferred; /* per task: frames being decoded by the GPU, plus 1 for the worker */
    uint8_t *memory;
    bool moved; /* the original memory belongs to the consumer */
    struct weir_batch batch;
    /* Error of this batch: that of the lowest failed image, so that runs agree. Protected by the slots' lock. */
    int64_t failed_image; /* -1 = none */
    struct weir_err err;
    struct weir_last_task last; /* its last task */
};

struct weir_slots {
    pthread_mutex_t lock, claims;          /* for failures; for claims */
    struct weir_eventcount done, stopping; /* signalled when a batch completes; when the slots stop */
    _Atomic uint64_t completed;            /* batches since open */
    int n, history;                        /* history: frames of a camera per sample */
    int tasks_per_sample;                  /* one per camera, plus one for the state */
    int tasks_per_batch;                   /* of a full batch */
    struct weir_slot *slot;
    uint8_t *memory;
    size_t memory_bytes, slot_bytes;
    _Atomic bool stop;
};

/* Allocates n slots and touches their memory. claims: tasks claim samples, including those of later batches.
 * processes: number of processes on this machine that allocate as much; 0 or 1 = only this one. */
int weir_slots_open(struct weir_slots *slots, int n, const struct weir_batch_layout *layout, bool claims, int processes,
                    struct weir_err *err);
void weir_slots_close(struct weir_slots *slots);

/* Plans batch sequence into its unused slot and opens it to workers. */
void weir_slot_arm(struct weir_slots *slots, const struct weir_sampler *sampler, uint64_t sequence);
static inline struct weir_slot *weir_slot_of(struct weir_slots *slots, uint64_t sequence)
{
    return &slots->slot[sequence % (uint64_t)slots->n];
}

/* Returns the task's id: its number in the run, counted from 1. Records of its work and waits carry it. */
static inline uint64_t weir_task_id(const struct weir_slots *slots, uint64_t sequence, uint64_t task)
{
    return sequence * (uint64_t)slots->tasks_per_batch + task + 1;
}

/* Ends the async wait of each task of a complete batch: from its end until delivery to the consumer. */
void weir_slot_end_waits(const struct weir_slots *slots, const struct weir_slot *slot);

/* Marks all images of the slot as not decoded by the GPU, and no task as waiting for it. */
void weir_slot_forget_decoded(struct weir_slot *slot);

/* Lends the batch and its memory to the consumer until the release. */
void weir_slot_lend(struct weir_slots *slots, struct weir_slot *slot);
void weir_slot_release(struct weir_slots *slots, struct weir_slot *slot);
/* Releases the slot, and transfers its memory (slot_bytes) to the consumer: free *memory with weir_memory_unmap.
 * another: gives the slot new memory for its next batch. On -ENOMEM nothing changes. */
int weir_slot_move(struct weir_slots *slots, struct weir_slot *slot, bool another, void **memory, struct weir_err *err);

/* Blocks until batch sequence is armed, or complete; false when stopped. */
bool weir_slot_wait_armed(struct weir_slots *slots, uint64_t sequence);
bool weir_slot_wait_complete(struct weir_slots *slots, uint64_t sequence);
/* Interruptible variant: calls interrupted at least 10 times a second, and after each signal to the thread. Returns 1
 * when complete, 0 when stopped, -EINTR when interrupted(user) returned true. interrupted may be NULL. */
int weir_slot_wait_interruptible(struct weir_slots *slots, uint64_t sequence, bool (*interrupted)(void *user),
                                 void *user);
void weir_slot_finish(struct weir_slots *slots, struct weir_slot *slot);

/* Blocks until stopped. */
void weir_slots_wait_stop(struct weir_slots *slots);
/* Wakes all waiters; their waits return false. */
void weir_slots_stop(struct weir_slots *slots);

/* Keeps the failure if its image index is the lowest so far. image: index in the batch, by task and position in the
 * history. */
void weir_slot_fail(struct weir_slots *slots, struct weir_slot *slot, int64_t image, const struct weir_err *err);

/* Frames of one camera that the sample at this index of the order needs are first .. t; some may overlap those of the
 * sample before it. It owns frames weir_order_first_owned() .. t, which no earlier sample needs: none when the first
 * exceeds t. */
static inline int weir_order_first(const struct weir_slots *slots, const struct weir_slot *slot, int at)
{
    int first = slot->order[at].t - slots->history + 1;
    return first > 0 ? first : 0;
}

static inline int weir_order_first_owned(const struct weir_slots *slots, const struct weir_slot *slot, int at)
{
    int first = weir_order_first(slots, slot, at);
    bool after = at > 0 && slot->order[at - 1].episode == slot->order[at].episode && slot->order[at - 1].t >= first;
    return after ? slot->order[at - 1].t + 1 : first;
}

static inline bool weir_order_owns_any(const struct weir_slots *slots, const struct weir_slot *slot, int at)
{
    return weir_order_first_owned(slots, slot, at) <= slot->order[at].t;
}

/* Returns whether the sample at the later index needs frame t, which the sample at index at owns. */
static inline bool weir_order_needs(const struct weir_slots *slots, const struct weir_slot *slot, int at, int t,
                                    int later)
{
    return later < slot->plan.n && slot->order[later].episode == slot->order[at].episode &&
           weir_order_first(slots, slot, later) <= t;
}

#endif
