/* completion.h: counts what is left of each task, sample and batch of a slot, records the spans of samples, and
 * completes the slot with its last task.
 *
 * A sample has one part for its state, and per camera one for each owner of its frames (dedup.h): its own images and
 * those that earlier samples load for it. A camera's task ends when its worker and all frames that the GPU decodes for
 * it have arrived. Decrements are acquire-release: the thread that takes the last one has seen what the others wrote.
 */
#ifndef WEIR_PIPELINE_SAMPLES_COMPLETION_H
#define WEIR_PIPELINE_SAMPLES_COMPLETION_H

#include "pipeline/samples/slot.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_dataset;

/* The parts of the loader that completing a batch needs. Set at open; any thread reads it. */
struct weir_completion {
    struct weir_slots *slots;
    const struct weir_batch_layout *layout;
    const struct weir_dataset *dataset;
    _Atomic uint64_t *skipped_samples; /* counts samples left out; NULL where a bad sample fails its batch */
    weir_name wait_name;               /* async range from a task's end to its batch's delivery */
};

/* The task that a thread runs; one writer. */
struct weir_task_clock {
    int worker;
    uint64_t id;          /* weir_task_id */
    uint64_t begin_ticks; /* 0 = not timed */
    uint64_t read_ticks;  /* spent reading */
};

/* Sets the counters of a planned batch whose samples are sorted. No thread works on the slot. */
void weir_completion_arm(const struct weir_slots *slots, struct weir_slot *slot);
/* No frame of the slot is deferred. */
void weir_completion_forget_deferred(struct weir_slot *slot);
/* One more task for an armed slot that is not complete. */
void weir_completion_add_task(struct weir_slot *slot);
/* One more frame of the task is decoded elsewhere; weir_completion_arrive takes it back. */
void weir_completion_defer(struct weir_slot *slot, int task);
/* A worker, or a deferred frame, has arrived at the end of a camera's task. True for the last one, who ends the task.
 */
bool weir_completion_arrive(struct weir_slot *slot, int task);

/* The state of a sample begins, and ends. */
void weir_completion_begin_state(struct weir_slot *slot, int sample, uint64_t now_ticks);
void weir_completion_end_state(struct weir_slot *slot, int sample);
/* The images that the sample at this index of the order owns begin, and end: for it, and for later samples that need
 * them. */
void weir_completion_begin_images(const struct weir_slots *slots, struct weir_slot *slot, int at, uint64_t now_ticks);
void weir_completion_end_images(const struct weir_slots *slots, struct weir_slot *slot, int at);

/* Ends a task of the slot. The last one closes the gaps of bad samples and completes the slot. own: the task is the
 * clock's, not one that it did for a later batch. */
void weir_completion_end_task(const struct weir_completion *completion, struct weir_slot *slot, int task,
                              const struct weir_task_clock *clock, bool own);

#endif
