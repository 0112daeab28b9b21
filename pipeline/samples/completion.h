/* completion.h: counts the remaining parts of each task, sample and batch of a slot, records the spans of samples, and
 * completes the slot with its last task.
 *
 * Each sample has one part for its state. For each camera it also has one part per owner of its frames (dedup.c): one
 * for the images that it owns itself, and one for each earlier sample that loads images for it. A camera's task ends
 * when its worker has arrived at the end, and all frames that the GPU decodes for the task have too. Decrements are
 * acquire-release, so the thread that makes the last one sees everything that the others wrote. */
#ifndef WEIR_PIPELINE_SAMPLES_COMPLETION_H
#define WEIR_PIPELINE_SAMPLES_COMPLETION_H

#include "pipeline/samples/slot.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_dataset;

/* The parts of the loader that are needed to complete a batch. Set at open; any thread may read them. */
struct weir_completion {
    struct weir_slots *slots;
    const struct weir_batch_layout *layout;
    const struct weir_dataset *dataset;
    _Atomic uint64_t *skipped_samples; /* counts omitted samples; NULL if a bad sample fails its batch */
    weir_name wait_name;               /* name of the async range from a task's end to its batch's delivery */
};

/* The current task of a thread; written only by that thread. */
struct weir_task_clock {
    int worker;
    uint64_t id;          /* see weir_task_id */
    uint64_t begin_ticks; /* 0 = not timed */
    uint64_t read_ticks;  /* time spent on reading */
};

/* Sets the counters of a planned batch whose samples are sorted. No other thread may use the slot yet. */
void weir_completion_arm(const struct weir_slots *slots, struct weir_slot *slot);
/* Resets the counters of deferred frames to none. */
void weir_completion_forget_deferred(struct weir_slot *slot);
/* Adds a task to an armed slot that is not complete. */
void weir_completion_add_task(struct weir_slot *slot);
/* Counts one more frame of the task that is decoded elsewhere. weir_completion_arrive must be called for it later. */
void weir_completion_defer(struct weir_slot *slot, int task);
/* Call this when a worker, or a deferred frame, arrives at the end of a camera's task. Returns true for the last
 * arrival, whose thread must end the task. */
bool weir_completion_arrive(struct weir_slot *slot, int task);

/* Begin and end the state of a sample. */
void weir_completion_begin_state(struct weir_slot *slot, int sample, uint64_t now_ticks);
void weir_completion_end_state(struct weir_slot *slot, int sample);
/* Begin and end the images owned by the sample at this index of the order, for this sample and for later samples that
 * need them. */
void weir_completion_begin_images(const struct weir_slots *slots, struct weir_slot *slot, int at, uint64_t now_ticks);
void weir_completion_end_images(const struct weir_slots *slots, struct weir_slot *slot, int at);

/* Ends a task of the slot. The last task removes the gaps left by bad samples and completes the slot. own: the clock
 * describes this task; false if the clock's task did this one on behalf of a later batch. */
void weir_completion_end_task(const struct weir_completion *completion, struct weir_slot *slot, int task,
                              const struct weir_task_clock *clock, bool own);

#endif
