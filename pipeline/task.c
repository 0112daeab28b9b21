/* One task: the images of one camera (history included), or the state and actions, of one sample. */
#include "pipeline/worker_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- images ---- */

/* The machine's fault, not the frame's: no policy for bad frames may hide it. */
static bool is_shortage(int code)
{
    return code == -ENOMEM || code == -EMFILE || code == -ENFILE;
}

/* One image to its place. 0, or negative with text "FILE: DATASET[t]: reason". */
static int load_image(struct weir_worker *worker, struct weir_sample of, int camera, void *image, char *text)
{
    struct weir_shared *shared = worker->shared;
    const struct weir_camera_probe *probe = &shared->probes[camera];
    bool direct = weir_decoder_is_direct(worker->decoder, probe->codec);
    struct weir_frame frame = {.codec = probe->codec, .width = probe->width, .height = probe->height};
    const char *reason = worker->fetcher.reason;
    int rc = weir_fetch_frame(&worker->fetcher, of.episode, camera, of.t, direct ? image : NULL,
                              shared->layout.image_bytes[camera], &frame.bytes, &frame.length);
    if (rc == 0) {
        rc = weir_decode(worker->decoder, &frame, image);
        reason = weir_decoder_reason(worker->decoder);
    }
    if (rc == 0)
        return 0;
    char name[WEIR_FAULT_TEXT];
    weir_frame_name(shared->dataset, of.episode, camera, of.t, name, sizeof name);
    snprintf(text, WEIR_FAULT_TEXT, "%.*s: %.200s", WEIR_FAULT_TEXT - 210, name, reason);
    if (rc == -ESTALE || rc == -ENODATA) { /* the whole file's fault: kept once, not once a frame */
        snprintf(name, sizeof name, "%.*s: %.200s", WEIR_FAULT_TEXT - 210,
                 weir_dataset_episode_path(shared->dataset, of.episode), reason);
        weir_faults_add(&shared->faults, name);
    } else if (!is_shortage(rc)) {
        weir_faults_add(&shared->faults, text);
    }
    return rc;
}

/* The nearest earlier frame of the same episode and camera that is good. */
static bool substitute(struct weir_worker *worker, struct weir_sample of, int camera, void *image)
{
    char text[WEIR_FAULT_TEXT];
    while (of.t-- > 0)
        if (load_image(worker, of, camera, image, text) == 0) {
            atomic_fetch_add_explicit(&worker->shared->faults.substituted_frames, 1, memory_order_relaxed);
            return true;
        }
    return false;
}

/* What --on-error says about a bad frame; false when the sample is lost. */
static bool recover(struct weir_worker *worker, struct weir_slot *slot, int task, struct weir_sample of, int camera,
                    void *image, int code, const char *text)
{
    enum weir_on_error policy = worker->shared->config.on_error;
    if (policy == WEIR_ON_ERROR_FAIL || is_shortage(code)) {
        struct weir_err err = WEIR_ERR_NONE;
        weir_err_set(&err, code, "%s; %s", text,
                     is_shortage(code) ? "give the process more memory or descriptors (ulimit -n)"
                                       : "repair or remove it, or go on with --on-error skip or substitute");
        weir_slot_fail(&worker->shared->slots, slot, task, &err);
        return false;
    }
    return policy == WEIR_ON_ERROR_SUBSTITUTE && substitute(worker, of, camera, image);
}

static void run_camera(struct weir_worker *worker, struct weir_slot *slot, int task, int sample, int camera)
{
    WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
    const struct weir_batch_layout *layout = &worker->shared->layout;
    char text[WEIR_FAULT_TEXT];
    for (int h = 0; h < layout->history; h++) {
        struct weir_sample of = slot->samples[sample];
        int back = layout->history - 1 - h;
        of.t = of.t > back ? of.t - back : 0;
        void *image = weir_layout_image(layout, slot->memory, sample, camera, h);
        int rc = load_image(worker, of, camera, image, text);
        if (rc == 0 || recover(worker, slot, task, of, camera, image, rc, text))
            continue;
        atomic_store_explicit(&slot->progress[sample].bad, true, memory_order_relaxed);
        return;
    }
}

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
    float *to = weir_layout_row(&shared->layout, slot->memory, shared->layout.qpos, sample);
    const float *rows = weir_dataset_qpos(shared->dataset, of.episode);
    size_t dim = (size_t)shared->qpos.dim;
    for (int h = 0; h < shared->layout.history; h++, to += dim) {
        int back = shared->layout.history - 1 - h;
        normalise(to, rows + (size_t)(of.t > back ? of.t - back : 0) * dim, &shared->qpos);
    }
}

/* Zeros are put before normalisation, as ACT's loader does: what the model sees there is -mean / std. */
static void read_actions(const struct weir_shared *shared, struct weir_slot *slot, int sample)
{
    WEIR_ZONE(WEIR_STAGE_READ_ACTIONS);
    struct weir_sample of = slot->samples[sample];
    const struct weir_batch_layout *layout = &shared->layout;
    float *to = weir_layout_row(layout, slot->memory, layout->actions, sample);
    uint8_t *is_pad = weir_layout_row(layout, slot->memory, layout->is_pad, sample);
    const float *rows = weir_dataset_actions(shared->dataset, of.episode);
    int64_t steps = weir_dataset_steps(shared->dataset, of.episode);
    int64_t first = (int64_t)of.t + shared->config.action_offset;
    size_t dim = (size_t)shared->actions.dim;
    first = first > 0 ? first : 0;
    for (int64_t i = 0; i < shared->config.chunk_size; i++, to += dim) {
        bool pad = first + i >= steps;
        is_pad[i] = pad;
        if (!pad) {
            normalise(to, rows + (size_t)(first + i) * dim, &shared->actions);
        } else if (shared->config.pad == WEIR_PAD_LAST) {
            normalise(to, rows + (size_t)(steps - 1) * dim, &shared->actions);
        } else {
            for (size_t d = 0; d < dim; d++)
                to[d] = (0.0f - shared->actions.mean[d]) / shared->actions.std[d];
        }
    }
}

/* ---- completing ---- */

/* Closes the gaps that samples left out have made: later rows move up. */
static void compact(const struct weir_batch_layout *layout, struct weir_slot *slot)
{
    int to = 0;
    for (int from = 0; from < slot->plan.n; from++) {
        if (atomic_load_explicit(&slot->progress[from].bad, memory_order_relaxed))
            continue;
        if (to != from) {
            for (int i = 0; i < layout->n_tensors; i++)
                memcpy(weir_layout_row(layout, slot->memory, i, to), weir_layout_row(layout, slot->memory, i, from),
                       layout->tensors[i].sample_bytes);
            slot->samples[to] = slot->samples[from];
        }
        to++;
    }
    slot->batch.n = to;
}

static void collate(struct weir_shared *shared, struct weir_slot *slot)
{
    WEIR_ZONE(WEIR_STAGE_COLLATE);
    compact(&shared->layout, slot);
    if (shared->config.on_error != WEIR_ON_ERROR_FAIL)
        atomic_fetch_add_explicit(&shared->faults.skipped_samples, (uint64_t)(slot->plan.n - slot->batch.n),
                                  memory_order_relaxed);
    for (int i = 0; i < slot->batch.n_tensors; i++)
        slot->batch.tensors[i].shape[0] = slot->batch.n;
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
    weir_span(stage, weir_clock_ticks() - atomic_load_explicit(start, memory_order_relaxed));
}

void weir_task_run(struct weir_worker *worker, struct weir_slot *slot, int task)
{
    struct weir_shared *shared = worker->shared;
    int sample = task / shared->tasks_per_sample, part = task % shared->tasks_per_sample;
    bool camera = part < shared->layout.n_cameras;
    struct weir_slot_sample *progress = &slot->progress[sample];
    uint64_t now = weir_thread_self ? weir_clock_ticks() : 0;
    begin(&progress->start_ticks, now);
    if (camera) {
        begin(&progress->images_start_ticks, now);
        run_camera(worker, slot, task, sample, part);
    } else {
        read_qpos(shared, slot, sample);
        read_actions(shared, slot, sample);
    }
    /* Decrements are acquire-release: whoever takes the last one has seen all that the others wrote. */
    if (camera && atomic_fetch_sub_explicit(&progress->images_left, 1, memory_order_acq_rel) == 1)
        end_span(WEIR_STAGE_IMAGES_TOTAL, &progress->images_start_ticks);
    if (atomic_fetch_sub_explicit(&progress->tasks_left, 1, memory_order_acq_rel) == 1)
        end_span(WEIR_STAGE_TOTAL_GETITEM, &progress->start_ticks);
    if (atomic_fetch_sub_explicit(&slot->tasks_left, 1, memory_order_acq_rel) == 1)
        collate(shared, slot);
}
