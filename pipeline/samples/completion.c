#include "pipeline/samples/completion.h"
#include "weir/dataset.h"
#include "weir/stages.h"

#include <string.h>

/* ---- counters ---- */

void weir_completion_forget_deferred(struct weir_slot *slot)
{
    for (int i = 0; slot->deferred && i < slot->n_tasks; i++)
        atomic_store_explicit(&slot->deferred[i], 1, memory_order_relaxed); /* 1 for the worker itself */
}

void weir_completion_arm(const struct weir_slots *slots, struct weir_slot *slot)
{
    int cameras = slots->tasks_per_sample - 1;
    for (int i = 0; i < slot->plan.n; i++) {
        struct weir_slot_sample *sample = &slot->progress[i];
        int images = cameras * slot->order[slot->rank[i]].parts;
        atomic_store_explicit(&sample->start_ticks, UINT64_MAX, memory_order_relaxed);
        atomic_store_explicit(&sample->images_start_ticks, UINT64_MAX, memory_order_relaxed);
        atomic_store_explicit(&sample->parts_left, images + 1, memory_order_relaxed);
        atomic_store_explicit(&sample->images_left, images, memory_order_relaxed);
        atomic_store_explicit(&sample->bad, false, memory_order_relaxed);
    }
    weir_completion_forget_deferred(slot);
    atomic_store_explicit(&slot->tasks_left, slot->plan.n * slots->tasks_per_sample, memory_order_relaxed);
}

void weir_completion_add_task(struct weir_slot *slot)
{
    atomic_fetch_add_explicit(&slot->tasks_left, 1, memory_order_relaxed);
}

void weir_completion_defer(struct weir_slot *slot, int task)
{
    atomic_fetch_add_explicit(&slot->deferred[task], 1,
                              memory_order_relaxed); /* relaxed, because the worker's own count keeps it above 0 */
}

bool weir_completion_arrive(struct weir_slot *slot, int task)
{
    return !slot->deferred || atomic_fetch_sub_explicit(&slot->deferred[task], 1, memory_order_acq_rel) == 1;
}

/* ---- spans of samples ---- */

static void begin(_Atomic uint64_t *start, uint64_t now_ticks)
{
    uint64_t seen = atomic_load_explicit(start, memory_order_relaxed);
    while (now_ticks < seen &&
           !atomic_compare_exchange_weak_explicit(start, &seen, now_ticks, memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* Decrements the counter. The last decrement records the span. */
static void end(_Atomic int *left, int stage, const _Atomic uint64_t *start)
{
    if (atomic_fetch_sub_explicit(left, 1, memory_order_acq_rel) == 1)
        weir_span(stage, atomic_load_explicit(start, memory_order_relaxed), weir_clock_ticks());
}

void weir_completion_begin_state(struct weir_slot *slot, int sample, uint64_t now_ticks)
{
    begin(&slot->progress[sample].start_ticks, now_ticks);
}

void weir_completion_end_state(struct weir_slot *slot, int sample)
{
    struct weir_slot_sample *progress = &slot->progress[sample];
    end(&progress->parts_left, WEIR_STAGE_TOTAL_GETITEM, &progress->start_ticks);
}

/* Returns the index after the last sample that may need images of the owner at this index. */
static int end_of_needs(const struct weir_slots *slots, const struct weir_slot *slot, int at)
{
    int after = at + 1;
    if (weir_order_owns_any(slots, slot, at))
        while (weir_order_covers(slots, slot, at, weir_order_last(slots, slot, at), after))
            after++;
    return after;
}

void weir_completion_begin_images(const struct weir_slots *slots, struct weir_slot *slot, int at, uint64_t now_ticks)
{
    for (int i = at, after = end_of_needs(slots, slot, at); i < after; i++) {
        struct weir_slot_sample *progress = &slot->progress[slot->order[i].sample];
        begin(&progress->start_ticks, now_ticks);
        begin(&progress->images_start_ticks, now_ticks);
    }
}

void weir_completion_end_images(const struct weir_slots *slots, struct weir_slot *slot, int at)
{
    for (int i = at, after = end_of_needs(slots, slot, at); i < after; i++) {
        struct weir_slot_sample *progress = &slot->progress[slot->order[i].sample];
        end(&progress->images_left, WEIR_STAGE_IMAGES_TOTAL, &progress->images_start_ticks);
        end(&progress->parts_left, WEIR_STAGE_TOTAL_GETITEM, &progress->start_ticks);
    }
}

/* ---- the batch ---- */

/* If a GPU decodes, images are not moved, because the memory that they would move to may hold planes of other frames.
 */
static bool is_fixed(const struct weir_slot *slot, const struct weir_batch_layout *layout, int tensor)
{
    return slot->decoded && tensor < layout->qpos && layout->tensors[tensor].dtype == WEIR_DTYPE_U8;
}

/* Removes skipped samples by moving the rows of later samples up. */
static void compact(const struct weir_batch_layout *layout, struct weir_slot *slot)
{
    int to = 0;
    for (int from = 0; from < slot->plan.n; from++) {
        if (atomic_load_explicit(&slot->progress[from].bad, memory_order_relaxed))
            continue;
        for (int i = 0; i < layout->n_tensors && to != from; i++)
            if (!is_fixed(slot, layout, i))
                memcpy(weir_layout_row(layout, slot->memory, i, to), weir_layout_row(layout, slot->memory, i, from),
                       layout->tensors[i].sample_bytes);
        slot->samples[to] = slot->samples[from];
        if (slot->decoded)
            slot->row[to] = from;
        to++;
    }
    slot->batch.n = to;
}

/* Call this before compact, which moves samples to other indexes. */
static void note_last(const struct weir_completion *completion, struct weir_slot *slot, int task,
                      const struct weir_task_clock *clock)
{
    int sample = task / completion->slots->tasks_per_sample, part = task % completion->slots->tasks_per_sample;
    bool camera = part < completion->layout->n_cameras;
    slot->last_task_id = clock->id;
    slot->last = (struct weir_last_task){
        .worker = clock->worker,
        .camera = camera ? part : -1,
        .file = camera ? weir_dataset_episode_file(completion->dataset, slot->samples[sample].episode) : -1,
        .ticks = clock->begin_ticks > 0 ? weir_clock_ticks() - clock->begin_ticks : 0,
        .read_ticks = clock->read_ticks,
    };
}

static void collate(const struct weir_completion *completion, struct weir_slot *slot, int task,
                    const struct weir_task_clock *clock)
{
    WEIR_ZONE(WEIR_STAGE_COLLATE);
    note_last(completion, slot, task, clock);
    compact(completion->layout, slot);
    if (completion->skipped_samples)
        atomic_fetch_add_explicit(completion->skipped_samples, (uint64_t)(slot->plan.n - slot->batch.n),
                                  memory_order_relaxed);
    for (int i = 0; i < slot->batch.n_tensors; i++)
        slot->batch.tensors[i].shape[0] = slot->batch.n;
    slot->batch.ready_ns = weir_clock_monotonic_ns();
    weir_slot_finish(completion->slots, slot);
}

void weir_completion_end_task(const struct weir_completion *completion, struct weir_slot *slot, int task,
                              const struct weir_task_clock *clock, bool own)
{
    if (own)
        slot->done[task] = weir_async_begin(completion->wait_name);
    if (atomic_fetch_sub_explicit(&slot->tasks_left, 1, memory_order_acq_rel) == 1)
        collate(completion, slot, task, clock);
}
