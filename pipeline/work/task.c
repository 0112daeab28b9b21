/* One task: the images of one camera (history included), or the state and actions, of one sample. A frame that several
 * samples of a batch need is loaded by the task of the first of them (dedup.c). Samples whose frames lie in the same
 * blocks of chunks are loaded together, by the first task of one of them (coalesce.c). */
#include "pipeline/work/task.h"
#include "pipeline/work/dedup.h"
#include "pipeline/work/worker.h"
#include "weir/stages.h"

#include <string.h>

/* ---- state and actions ---- */

static void normalise(float *to, const float *from, const struct weir_norm *norm)
{
    for (int d = 0; d < norm->dim; d++)
        to[d] = (from[d] - norm->mean[d]) / norm->std[d];
}

static void read_qpos(const struct weir_shared *shared, struct weir_slot *slot, int sample)
{
    WEIR_ZONE(WEIR_STAGE_READ_QPOS);
    struct weir_sample of = slot->samples[sample];
    float *to = weir_layout_row(&shared->setup.layout, slot->memory, shared->setup.layout.qpos, sample);
    const float *rows = weir_dataset_qpos(shared->setup.dataset, of.episode);
    size_t dim = (size_t)shared->setup.qpos.dim;
    for (int h = 0; h < shared->setup.layout.history; h++, to += dim) {
        int back = shared->setup.layout.history - 1 - h;
        normalise(to, rows + (size_t)(of.t > back ? of.t - back : 0) * dim, &shared->setup.qpos);
    }
}

/* Zeros are put before normalisation, as ACT's loader does: what the model sees there is -mean / std. */
static void read_actions(const struct weir_shared *shared, struct weir_slot *slot, int sample)
{
    WEIR_ZONE(WEIR_STAGE_READ_ACTIONS);
    struct weir_sample of = slot->samples[sample];
    const struct weir_batch_layout *layout = &shared->setup.layout;
    float *to = weir_layout_row(layout, slot->memory, layout->actions, sample);
    uint8_t *is_pad = weir_layout_row(layout, slot->memory, layout->is_pad, sample);
    const float *rows = weir_dataset_actions(shared->setup.dataset, of.episode);
    int64_t steps = weir_dataset_steps(shared->setup.dataset, of.episode);
    int64_t first = (int64_t)of.t + shared->setup.config.action_offset;
    size_t dim = (size_t)shared->setup.actions.dim;
    first = first > 0 ? first : 0;
    for (int64_t i = 0; i < shared->setup.config.chunk_size; i++, to += dim) {
        bool pad = first + i >= steps;
        is_pad[i] = pad;
        if (!pad) {
            normalise(to, rows + (size_t)(first + i) * dim, &shared->setup.actions);
        } else if (shared->setup.config.pad == WEIR_PAD_LAST) {
            normalise(to, rows + (size_t)(steps - 1) * dim, &shared->setup.actions);
        } else {
            for (size_t d = 0; d < dim; d++)
                to[d] = (0.0f - shared->setup.actions.mean[d]) / shared->setup.actions.std[d];
        }
    }
}

/* ---- completing ---- */

/* Where a GPU decodes, images are not moved: planes of other frames may lie where they would go to. */
static bool is_fixed(const struct weir_slot *slot, const struct weir_batch_layout *layout, int tensor)
{
    return slot->decoded && tensor < layout->qpos && layout->tensors[tensor].dtype == WEIR_DTYPE_U8;
}

/* Closes the gaps that samples left out have made: later rows move up. */
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

/* Its samples have not moved yet. */
static void note_last(struct weir_worker *worker, struct weir_slot *slot, int task)
{
    const struct weir_shared *shared = worker->shared;
    int sample = task / shared->slots.tasks_per_sample, part = task % shared->slots.tasks_per_sample;
    bool camera = part < shared->setup.layout.n_cameras;
    bool timed = worker->task_ticks > 0;
    slot->last_task_id = weir_item_self;
    slot->last = (struct weir_last_task){
        .worker = worker->id,
        .camera = camera ? part : -1,
        .file = camera ? weir_dataset_episode_file(shared->setup.dataset, slot->samples[sample].episode) : -1,
        .ticks = timed ? weir_clock_ticks() - worker->task_ticks : 0,
        .read_ticks = worker->task_read_ticks,
    };
}

static void collate(struct weir_worker *worker, struct weir_slot *slot, int task)
{
    struct weir_shared *shared = worker->shared;
    WEIR_ZONE(WEIR_STAGE_COLLATE);
    note_last(worker, slot, task);
    compact(&shared->setup.layout, slot);
    if (shared->setup.config.on_error != WEIR_ON_ERROR_FAIL)
        atomic_fetch_add_explicit(&shared->faults.skipped_samples, (uint64_t)(slot->plan.n - slot->batch.n),
                                  memory_order_relaxed);
    for (int i = 0; i < slot->batch.n_tensors; i++)
        slot->batch.tensors[i].shape[0] = slot->batch.n;
    slot->batch.ready_ns = weir_clock_monotonic_ns();
    weir_slot_finish(&shared->slots, slot);
}

static void begin(_Atomic uint64_t *start, uint64_t now)
{
    uint64_t seen = atomic_load_explicit(start, memory_order_relaxed);
    while (now < seen &&
           !atomic_compare_exchange_weak_explicit(start, &seen, now, memory_order_relaxed, memory_order_relaxed))
        continue;
}

static void end_span(int stage, const _Atomic uint64_t *start)
{
    weir_span(stage, atomic_load_explicit(start, memory_order_relaxed), weir_clock_ticks());
}

/* So many parts of the sample are done. Decrements are acquire-release: whoever takes the last one has seen all that
 * the others wrote. */
static void finish_parts(struct weir_slot_sample *progress, bool camera, int parts)
{
    if (camera && atomic_fetch_sub_explicit(&progress->images_left, parts, memory_order_acq_rel) == parts)
        end_span(WEIR_STAGE_IMAGES_TOTAL, &progress->images_start_ticks);
    if (atomic_fetch_sub_explicit(&progress->tasks_left, parts, memory_order_acq_rel) == parts)
        end_span(WEIR_STAGE_TOTAL_GETITEM, &progress->start_ticks);
}

/* A task of the slot's batch is done. */
static void finish_task(struct weir_worker *worker, struct weir_slot *slot, int task)
{
    if (atomic_fetch_sub_explicit(&slot->tasks_left, 1, memory_order_acq_rel) == 1)
        collate(worker, slot, task);
}

/* ---- images ---- */

/* After the sample at this index of the order, the first that needs nothing of what it owns. */
static int end_of_needs(const struct weir_shared *shared, const struct weir_slot *slot, int at)
{
    int end = at + 1;
    if (weir_order_first_owned(&shared->slots, slot, at) <= slot->order[at].t)
        while (weir_dedup_needs(shared, slot, at, end))
            end++;
    return end;
}

/* Loading what a sample owns begins: for itself, and for those after it that need it too. */
static void begin_images(const struct weir_shared *shared, struct weir_slot *slot, int at, uint64_t now)
{
    for (int i = at, end = end_of_needs(shared, slot, at); i < end; i++) {
        struct weir_slot_sample *progress = &slot->progress[slot->order[i].sample];
        begin(&progress->start_ticks, now);
        begin(&progress->images_start_ticks, now);
    }
}

static void finish_images(const struct weir_shared *shared, struct weir_slot *slot, int at)
{
    for (int i = at, end = end_of_needs(shared, slot, at); i < end; i++)
        finish_parts(&slot->progress[slot->order[i].sample], true, 1);
}

static void run_camera(struct weir_worker *worker, struct weir_slot *slot, int sample, int camera, uint64_t now)
{
    int at = slot->rank[sample];
    begin_images(worker->shared, slot, at, now);
    if (weir_order_first_owned(&worker->shared->slots, slot, at) <= slot->order[at].t)
        weir_dedup_load(worker, slot, at, camera);
}

/* One camera of all samples that this task has got hold of; of none when other tasks have them. */
static void run_coalesced(struct weir_worker *worker, struct weir_slot *slot, int sample, int camera, uint64_t now)
{
    const struct weir_gather *gather = &worker->gather;
    weir_coalesce_claim(worker, slot, sample, camera);
    if (gather->n_members == 0)
        return;
    for (int i = 0; i < gather->n_members; i++)
        begin_images(worker->shared, gather->members[i].slot, gather->members[i].at, now);
    weir_coalesce_load(worker, camera);
    for (int i = 0; i < gather->n_members; i++) {
        const struct weir_member *member = &gather->members[i];
        finish_images(worker->shared, member->slot, member->at);
        if (i >= gather->n_current)
            finish_task(worker, member->slot,
                        member->slot->order[member->at].sample * worker->shared->slots.tasks_per_sample + camera);
    }
}

/* ---- the task ---- */

static void end_task(struct weir_worker *worker, struct weir_slot *slot, int task)
{
    slot->done[task] = weir_async_begin(worker->shared->setup.wait_name);
    finish_task(worker, slot, task);
}

/* One of those that a camera's task waits for is done: its worker, or a frame that came back from the GPU. The last one
 * ends it. */
static void finish_camera(struct weir_worker *worker, struct weir_slot *slot, int task)
{
    const struct weir_shared *shared = worker->shared;
    if (slot->deferred && atomic_fetch_sub_explicit(&slot->deferred[task], 1, memory_order_acq_rel) > 1)
        return;
    finish_images(shared, slot, slot->rank[task / shared->slots.tasks_per_sample]);
    end_task(worker, slot, task);
}

/* The picture lies at its first destination in memory, or there is none. */
static void finish_decoded(struct weir_worker *worker, const struct weir_handed *frame, int code, const char *reason)
{
    char text[WEIR_FAULT_TEXT] = "";
    const struct weir_image *image = &frame->image;
    if (code < 0)
        code = weir_image_fault(worker, image, code, reason, text);
    else
        weir_frame_cache_keep(&worker->shared->cache, image->episode, image->camera, image->t, image->destination);
    weir_dedup_complete(worker, frame->slot, frame->at, image, code, text);
}

void weir_task_frame_decoded(void *user, const struct weir_handed *frame, const struct weir_decoded *result)
{
    struct weir_worker *worker = user;
    if (result->planes)
        weir_dedup_decoded(worker->shared, frame->slot, frame->at, &frame->image, result->planes);
    else
        finish_decoded(worker, frame, result->code, result->reason);
    finish_camera(worker, frame->slot, frame->task);
}

void weir_task_run(struct weir_worker *worker, struct weir_slot *slot, int task)
{
    struct weir_shared *shared = worker->shared;
    int sample = task / shared->slots.tasks_per_sample, part = task % shared->slots.tasks_per_sample;
    struct weir_slot_sample *progress = &slot->progress[sample];
    uint64_t now = weir_thread_self ? weir_clock_ticks() : 0;
    worker->task_ticks = now;
    worker->task_read_ticks = 0;
    if (part == shared->setup.layout.n_cameras) {
        begin(&progress->start_ticks, now);
        read_qpos(shared, slot, sample);
        read_actions(shared, slot, sample);
        finish_parts(progress, false, 1);
        end_task(worker, slot, task);
    } else if (shared->setup.block_rows > 0 && weir_coalesce_applies(shared, slot, sample, part)) {
        run_coalesced(worker, slot, sample, part, now);
        end_task(worker, slot, task);
    } else {
        run_camera(worker, slot, sample, part, now);
        finish_camera(worker, slot, task);
    }
}
