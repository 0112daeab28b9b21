/* One task: either the images of one camera (all steps of its window), or the state and actions, of one sample. Frames
 * shared by several samples of a batch are loaded once, by the first sample's task (dedup.c). Samples whose frames are
 * in the same blocks of chunks are loaded together, by the first task that claims them (coalesce.c). */
#include "pipeline/offload/gpu_decode.h"
#include "pipeline/work/image.h"
#include "pipeline/work/worker.h"
#include "weir/stages.h"

#include <string.h>

/* ---- state and actions ---- */

static void normalise(float *to, const float *from, const struct weir_norm *norm)
{
    for (int d = 0; d < norm->dim; d++)
        to[d] = (from[d] - norm->mean[d]) / norm->std[d];
}

/* Writes the normalised rows of a window, of dim values each. */
static void copy_rows(const struct weir_setup *setup, const struct weir_window *window, const float *rows,
                      struct weir_sample of, const struct weir_norm *norm, float *to)
{
    int steps = weir_dataset_steps(setup->dataset, of.episode);
    for (int i = 0; i < window->n; i++, to += norm->dim)
        normalise(to, rows + (size_t)weir_window_step(window, i, of.t, steps) * (size_t)norm->dim, norm);
}

static void read_qpos(const struct weir_setup *setup, struct weir_slot *slot, int sample)
{
    WEIR_ZONE(WEIR_STAGE_READ_QPOS);
    struct weir_sample of = slot->samples[sample];
    copy_rows(setup, &setup->windows.qpos, weir_dataset_qpos(setup->dataset, of.episode), of, &setup->qpos,
              weir_layout_row(&setup->layout, slot->memory, setup->layout.qpos, sample));
}

/* Copies the rows of the dataset's further columns. */
static void read_columns(const struct weir_setup *setup, struct weir_slot *slot, int sample)
{
    const struct weir_batch_layout *layout = &setup->layout;
    struct weir_sample of = slot->samples[sample];
    int steps = weir_dataset_steps(setup->dataset, of.episode);
    for (int c = 0; c < setup->windows.n_columns; c++) {
        const struct weir_window *window = &setup->windows.columns[c];
        uint8_t *to = weir_layout_row(layout, slot->memory, layout->columns[c], sample);
        size_t bytes = layout->tensors[layout->columns[c]].sample_bytes / (size_t)window->n;
        for (int i = 0; i < window->n; i++, to += bytes)
            weir_dataset_column_row(setup->dataset, of.episode, c, weir_window_step(window, i, of.t, steps), to);
        if (layout->column_pads[c] >= 0)
            weir_window_pads(window, of.t, steps,
                             weir_layout_row(layout, slot->memory, layout->column_pads[c], sample));
    }
}

/* Writes the masks of all windows that the user chose, except that of the actions. */
static void write_pads(const struct weir_setup *setup, struct weir_slot *slot, int sample)
{
    const struct weir_batch_layout *layout = &setup->layout;
    struct weir_sample of = slot->samples[sample];
    int steps = weir_dataset_steps(setup->dataset, of.episode);
    if (layout->qpos_pad >= 0)
        weir_window_pads(&setup->windows.qpos, of.t, steps,
                         weir_layout_row(layout, slot->memory, layout->qpos_pad, sample));
    for (int c = 0; c < layout->n_cameras; c++)
        if (layout->image_pads[c] >= 0)
            weir_window_pads(&setup->windows.cameras[c], of.t, steps,
                             weir_layout_row(layout, slot->memory, layout->image_pads[c], sample));
}

/* Reads the actions of a window that the user chose. */
static void read_window(const struct weir_setup *setup, struct weir_slot *slot, int sample)
{
    struct weir_sample of = slot->samples[sample];
    const struct weir_batch_layout *layout = &setup->layout;
    copy_rows(setup, &setup->windows.actions, weir_dataset_actions(setup->dataset, of.episode), of, &setup->actions,
              weir_layout_row(layout, slot->memory, layout->actions, sample));
    weir_window_pads(&setup->windows.actions, of.t, weir_dataset_steps(setup->dataset, of.episode),
                     weir_layout_row(layout, slot->memory, layout->is_pad, sample));
}

/* With --pad zero, actions are padded before normalisation, as in ACT's loader, so the model sees -mean / std there. */
static void read_chunk(const struct weir_setup *setup, struct weir_slot *slot, int sample)
{
    struct weir_sample of = slot->samples[sample];
    const struct weir_batch_layout *layout = &setup->layout;
    float *to = weir_layout_row(layout, slot->memory, layout->actions, sample);
    uint8_t *is_pad = weir_layout_row(layout, slot->memory, layout->is_pad, sample);
    const float *rows = weir_dataset_actions(setup->dataset, of.episode);
    int64_t steps = weir_dataset_steps(setup->dataset, of.episode);
    int64_t first = (int64_t)of.t + setup->windows.actions.first;
    size_t dim = (size_t)setup->actions.dim;
    first = first > 0 ? first : 0;
    for (int64_t i = 0; i < setup->windows.actions.n; i++, to += dim) {
        bool pad = first + i >= steps;
        is_pad[i] = pad;
        if (!pad) {
            normalise(to, rows + (size_t)(first + i) * dim, &setup->actions);
        } else if (setup->config.pad == WEIR_PAD_LAST) {
            normalise(to, rows + (size_t)(steps - 1) * dim, &setup->actions);
        } else {
            for (size_t d = 0; d < dim; d++)
                to[d] = (0.0f - setup->actions.mean[d]) / setup->actions.std[d];
        }
    }
}

static void read_actions(const struct weir_setup *setup, struct weir_slot *slot, int sample)
{
    WEIR_ZONE(WEIR_STAGE_READ_ACTIONS);
    if (setup->windows.actions.is_given)
        read_window(setup, slot, sample);
    else
        read_chunk(setup, slot, sample);
}

/* ---- images ---- */

static void run_camera(struct weir_worker *worker, struct weir_slot *slot, int sample, int camera)
{
    const struct weir_slots *slots = &worker->shared->slots;
    int at = slot->rank[sample];
    weir_completion_begin_images(slots, slot, at, worker->clock.begin_ticks);
    if (weir_order_owns_any(slots, slot, at))
        weir_dedup_load(worker, slot, at, camera);
}

/* Loads one camera for all samples that this task has claimed. There are none if other tasks have claimed them all. */
static void run_coalesced(struct weir_worker *worker, struct weir_slot *slot, int sample, int camera)
{
    const struct weir_gather *gather = &worker->gather;
    const struct weir_slots *slots = &worker->shared->slots;
    weir_coalesce_claim(worker, slot, sample, camera);
    if (gather->n_members == 0)
        return;
    for (int i = 0; i < gather->n_members; i++)
        weir_completion_begin_images(slots, gather->members[i].slot, gather->members[i].at, worker->clock.begin_ticks);
    weir_coalesce_load(worker, camera);
    for (int i = 0; i < gather->n_members; i++) {
        const struct weir_member *member = &gather->members[i];
        int task = member->slot->order[member->at].sample * slots->tasks_per_sample + camera;
        weir_completion_end_images(slots, member->slot, member->at);
        if (i >= gather->n_current)
            weir_completion_end_task(&worker->shared->completion, member->slot, task, &worker->clock, false);
    }
}

/* ---- task ---- */

/* Called by the task's worker, and for each frame that returns from the GPU. The last call ends the task. */
static void finish_camera(const struct weir_shared *shared, struct weir_slot *slot, int task,
                          const struct weir_task_clock *clock)
{
    if (!weir_completion_arrive(slot, task))
        return;
    weir_completion_end_images(&shared->slots, slot, slot->rank[task / shared->slots.tasks_per_sample]);
    weir_completion_end_task(&shared->completion, slot, task, clock, true);
}

/* Completes a frame whose image is in host memory, at its first destination, or which has failed. */
static void finish_decoded(struct weir_worker *worker, const struct weir_decode_job *frame, int code,
                           const char *reason)
{
    char text[WEIR_FAULT_TEXT] = "";
    const struct weir_image *image = &frame->image;
    if (code < 0)
        code = weir_image_fault(worker, image, code, reason, text);
    else
        weir_frame_cache_keep(&worker->shared->cache, image->episode, image->camera, image->t, image->destination);
    weir_dedup_complete(worker, frame->slot, frame->at, image, code, text);
}

void weir_task_frame_decoded(void *user, const struct weir_decode_job *frame, const struct weir_decode_result *result)
{
    struct weir_worker *worker = user;
    const struct weir_shared *shared = worker->shared;
    struct weir_slot *slot = frame->slot;
    struct weir_task_clock clock = {.worker = worker->id,
                                    .id = weir_task_id(&shared->slots, slot->plan.sequence, (uint64_t)frame->task)};
    if (result->planes)
        weir_dedup_decoded(&shared->slots, slot, frame->at, &frame->image, result->planes);
    else
        finish_decoded(worker, frame, result->code, result->reason);
    finish_camera(shared, slot, frame->task, &clock);
}

static void run_state(struct weir_worker *worker, struct weir_slot *slot, int sample)
{
    weir_completion_begin_state(slot, sample, worker->clock.begin_ticks);
    read_qpos(&worker->shared->setup, slot, sample);
    read_actions(&worker->shared->setup, slot, sample);
    write_pads(&worker->shared->setup, slot, sample);
    read_columns(&worker->shared->setup, slot, sample);
    weir_completion_end_state(slot, sample);
}

void weir_task_run(struct weir_worker *worker, struct weir_slot *slot, int task)
{
    const struct weir_shared *shared = worker->shared;
    int sample = task / shared->slots.tasks_per_sample, part = task % shared->slots.tasks_per_sample;
    bool state = part == shared->setup.layout.n_cameras;
    if (!state && !(shared->setup.block_rows > 0 && weir_coalesce_applies(shared, slot, sample, part))) {
        run_camera(worker, slot, sample, part);
        finish_camera(shared, slot, task, &worker->clock);
        return;
    }
    if (state)
        run_state(worker, slot, sample);
    else
        run_coalesced(worker, slot, sample, part);
    weir_completion_end_task(&shared->completion, slot, task, &worker->clock, true);
}
