/* Times of the GPU's work, from timed events. A duration is the time between two events of a batch. Positions, which
 * are needed to compute overlaps, are relative to a base event. A new base event is recorded every few seconds, because
 * CUDA returns the time between events as a float of milliseconds, whose resolution becomes coarser as the time grows:
 * 0.25 us up to four seconds, and 2 us after sixteen. */
#include "pipeline/offload/upload.h"

static const uint64_t BASE_EVERY_NS = 3000000000;

int weir_upload_times_open(struct weir_upload *upload, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    struct weir_upload_times *times = &upload->times;
    int rc = ops->event_new(upload->device->gpu, true, &times->base[0], err);
    if (rc == 0)
        rc = ops->event_new(upload->device->gpu, true, &times->base[1], err);
    times->base_at_ns = weir_clock_monotonic_ns();
    times->base_every_ns = BASE_EVERY_NS;
    return rc == 0 ? ops->record(upload->device->gpu, times->base[0], upload->copy_stream, err) : rc;
}

void weir_upload_times_close(struct weir_upload *upload)
{
    for (int i = 0; i < 2; i++)
        if (upload->times.base[i])
            upload->device->ops->event_free(upload->device->gpu, upload->times.base[i]);
}

int weir_upload_times_begin(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err)
{
    struct weir_upload_times *times = &upload->times;
    uint64_t now_ns = weir_clock_monotonic_ns();
    pthread_mutex_lock(&upload->lock);
    batch->rebased = !times->rebasing && now_ns - times->base_at_ns > times->base_every_ns;
    void *base = times->base[1 - times->now];
    if (batch->rebased) {
        times->rebasing = true;
        times->base_at_ns = now_ns;
    }
    pthread_mutex_unlock(&upload->lock);
    return batch->rebased ? upload->device->ops->record(upload->device->gpu, base, upload->copy_stream, err) : 0;
}

/* ---- reading ---- */

/* Beginning and length of the time between two events that have passed. */
struct span {
    int64_t begin_ns, ns;
};

static int read_span(struct weir_upload *upload, void *from, void *to, struct span *span, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    int rc = ops->elapsed(upload->device->gpu, upload->times.base[upload->times.now], from, &span->begin_ns, err);
    if (rc == 0)
        rc = ops->elapsed(upload->device->gpu, from, to, &span->ns, err);
    span->begin_ns += upload->times.base_ns;
    span->ns = span->ns > 0 ? span->ns : 0;
    return rc;
}

static int rebase(struct weir_upload *upload, struct weir_err *err)
{
    struct weir_upload_times *times = &upload->times;
    int64_t ns;
    int rc = upload->device->ops->elapsed(upload->device->gpu, times->base[times->now], times->base[1 - times->now],
                                          &ns, err);
    if (rc < 0)
        return rc;
    times->base_ns += ns;
    times->now = 1 - times->now;
    times->rebasing = false;
    return 0;
}

static int read_copy(struct weir_upload *upload, const struct weir_upload_batch *batch, struct weir_err *err)
{
    struct weir_upload_times *times = &upload->times;
    struct span span;
    int rc = read_span(upload, batch->copy_begin, batch->copy_end, &span, err);
    if (rc < 0)
        return rc;
    weir_stage_stats_add(&times->figures.copy, (uint64_t)span.ns);
    times->figures.copied_bytes += batch->bytes;
    times->figures.hidden_ns += (uint64_t)weir_intervals_overlap(&times->steps, span.begin_ns, span.begin_ns + span.ns);
    return 0;
}

static int read_prepare(struct weir_upload *upload, const struct weir_upload_batch *batch, struct weir_err *err)
{
    struct weir_upload_times *times = &upload->times;
    struct span span;
    int rc = batch->prepared ? read_span(upload, batch->prepare_begin, batch->ready, &span, err) : 0;
    if (rc < 0 || !batch->prepared)
        return rc;
    weir_stage_stats_add(&times->figures.prepare, (uint64_t)span.ns);
    times->figures.busy_ns += (uint64_t)weir_intervals_add(&times->busy, span.begin_ns, span.begin_ns + span.ns);
    return 0;
}

/* Returns NULL if the maximum number of stages is in use. */
static struct weir_stage_stats *marked_stats(struct weir_gpu_figures *figures, int stage)
{
    int i = 0;
    while (i < figures->n_marked && figures->marked[i].stage != stage)
        i++;
    if (i == WEIR_GPU_MARKED_MAX)
        return NULL;
    if (i == figures->n_marked)
        figures->marked[figures->n_marked++].stage = stage;
    return &figures->marked[i].stats;
}

static int read_marks(struct weir_upload *upload, const struct weir_upload_batch *batch, struct weir_err *err)
{
    void *from = batch->stall_end;
    int rc = 0;
    for (int i = 0; i < batch->n_marks && rc == 0; i++) {
        struct weir_stage_stats *stats = marked_stats(&upload->times.figures, batch->mark_stages[i]);
        int64_t ns = 0;
        rc = upload->device->ops->elapsed(upload->device->gpu, from, batch->marks[i], &ns, err);
        if (rc == 0 && stats)
            weir_stage_stats_add(stats, ns > 0 ? (uint64_t)ns : 0);
        from = batch->marks[i];
    }
    return rc;
}

/* Reads the times of the consumer's stream: its wait for the batch, and its step. */
static int read_step(struct weir_upload *upload, const struct weir_upload_batch *batch, struct weir_err *err)
{
    struct weir_upload_times *times = &upload->times;
    struct weir_gpu_figures *figures = &times->figures;
    bool train = batch->batch.plan.split == WEIR_SPLIT_TRAIN;
    struct span span;
    int rc = batch->waited ? read_span(upload, batch->stall_begin, batch->stall_end, &span, err) : 0;
    if (rc == 0 && batch->waited) {
        weir_stage_stats_add(&figures->stall, (uint64_t)span.ns);
        figures->train_stall_ns += train ? (uint64_t)span.ns : 0;
    }
    if (rc < 0 || !batch->waited || !batch->ordered)
        return rc;
    void *end = batch->stepped ? batch->step_end : batch->block->released;
    rc = read_span(upload, batch->stall_end, end, &span, err);
    if (rc == 0)
        rc = read_marks(upload, batch, err);
    if (rc < 0)
        return rc;
    weir_stage_stats_add(train ? &figures->train_step : &figures->val_step, (uint64_t)span.ns);
    weir_intervals_add(&times->steps, span.begin_ns, span.begin_ns + span.ns);
    figures->busy_ns += (uint64_t)weir_intervals_add(&times->busy, span.begin_ns, span.begin_ns + span.ns);
    return 0;
}

/* Returns 1 if the GPU has finished with the batch, 0 if not, or a negative error. */
static int is_through(struct weir_upload *upload, const struct weir_upload_batch *batch, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    int rc = ops->passed(upload->device->gpu, batch->ready, err);
    if (rc > 0 && batch->waited)
        rc = ops->passed(upload->device->gpu, batch->stall_end, err);
    if (rc > 0 && batch->ordered)
        rc = ops->passed(upload->device->gpu, batch->block->released, err);
    return rc;
}

/* Returns 1 if the next batch's times were read, 0 if they are not available yet, or a negative error. */
static int collect_next(struct weir_upload *upload, struct weir_err *err)
{
    if (upload->collected >= atomic_load_explicit(&upload->queued, memory_order_acquire))
        return 0;
    struct weir_upload_batch *batch = weir_upload_batch_of(upload, upload->collected);
    if (atomic_load_explicit(&batch->state, memory_order_acquire) != WEIR_UPLOAD_RETURNED)
        return 0;
    int rc = is_through(upload, batch, err);
    if (rc <= 0)
        return rc;
    rc = batch->rebased ? rebase(upload, err) : 0;
    if (rc == 0)
        rc = read_copy(upload, batch, err);
    if (rc == 0)
        rc = read_prepare(upload, batch, err);
    if (rc == 0)
        rc = read_step(upload, batch, err);
    upload->collected++;
    return rc < 0 ? rc : 1;
}

int weir_upload_times_collect(struct weir_upload *upload, struct weir_err *err)
{
    int rc;
    pthread_mutex_lock(&upload->lock);
    while ((rc = collect_next(upload, err)) > 0)
        continue;
    pthread_mutex_unlock(&upload->lock);
    return rc;
}
