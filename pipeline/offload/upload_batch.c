/* An output batch: the work queued on the GPU to make it, and the events that allow its reuse. */
#include "pipeline/offload/upload.h"
#include "pipeline/samples/defaults.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIXED_EVENTS = 7, EVENTS = FIXED_EVENTS + WEIR_GPU_MARKED_MAX };

static void list_events(struct weir_upload_batch *batch, void **events[EVENTS])
{
    void **const all[FIXED_EVENTS] = {&batch->copy_begin,  &batch->copy_end,  &batch->prepare_begin, &batch->ready,
                                      &batch->stall_begin, &batch->stall_end, &batch->step_end};
    memcpy(events, all, sizeof all);
    for (int i = 0; i < WEIR_GPU_MARKED_MAX; i++)
        events[FIXED_EVENTS + i] = &batch->marks[i];
}

/* Points the batch's tensors into the block. */
static void set_block(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_gpu_block *block)
{
    batch->block = block;
    batch->memory = block ? block->memory : NULL;
    for (int i = 0; i < batch->batch.n_tensors; i++)
        batch->batch.tensors[i].data = block ? batch->memory + upload->layout.offsets[i] : NULL;
}

int weir_upload_batch_open(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err)
{
    const struct weir_batch_layout *layout = &upload->layout;
    struct weir_gpu_block *block = NULL;
    void **events[EVENTS];
    list_events(batch, events);
    int rc = weir_gpu_block_take(upload->blocks, false, &block, err);
    batch->samples = calloc((size_t)layout->batch_size, sizeof *batch->samples);
    if (rc == 0 && !batch->samples)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < EVENTS && rc == 0; i++)
        rc = upload->device->ops->event_new(upload->device->gpu, true, events[i], err);
    batch->batch.samples = batch->samples;
    batch->batch.device = upload->device->number;
    batch->batch.ready = batch->ready;
    batch->batch.n_tensors = layout->n_tensors;
    for (int i = 0; i < layout->n_tensors; i++)
        batch->batch.tensors[i] = layout->tensors[i];
    set_block(upload, batch, block);
    return rc;
}

void weir_upload_batch_close(struct weir_upload *upload, struct weir_upload_batch *batch)
{
    void **events[EVENTS];
    list_events(batch, events);
    for (int i = 0; i < EVENTS; i++)
        if (*events[i])
            upload->device->ops->event_free(upload->device->gpu, *events[i]);
    if (batch->lent)
        weir_memory_freed(batch->memory, upload->layout.slot_bytes, upload->device->number);
    weir_gpu_block_give(batch->block);
    free(batch->samples);
}

/* ---- copying ---- */

/* A copy that is being assembled from adjacent pieces. */
struct run {
    const uint8_t *from;
    uint8_t *to;
    size_t bytes;
};

static int flush(struct weir_upload *upload, struct weir_upload_batch *batch, struct run *run, struct weir_err *err)
{
    size_t bytes = run->bytes;
    run->bytes = 0;
    batch->bytes += bytes;
    if (bytes == 0)
        return 0;
    return upload->device->ops->copy_in(upload->device->gpu, run->to, run->from, bytes, upload->copy_stream, err);
}

/* Adds a piece to the copy. Pieces must be added in the order of the slot's memory. */
static int copy(struct weir_upload *upload, struct weir_upload_batch *batch, struct run *run, const struct run *piece,
                struct weir_err *err)
{
    size_t gap = (size_t)(piece->from - run->from) - run->bytes;
    bool joins = run->bytes > 0 && (uintptr_t)piece->to - (uintptr_t)run->to == (uintptr_t)(piece->from - run->from) &&
                 gap <= WEIR_UPLOAD_GAP_BYTES;
    if (piece->bytes == 0)
        return 0;
    if (joins) {
        run->bytes += gap + piece->bytes;
        return 0;
    }
    int rc = flush(upload, batch, run, err);
    *run = *piece;
    return rc;
}

/* Copies a tensor of colour images to staging memory, except images that the GPU has decoded there. The gap between two
 * copied images may hold planes of such an image, so no copy spans it. */
static int copy_images(struct weir_upload *upload, struct weir_upload_batch *batch, struct run *run,
                       const struct weir_slot *slot, uint8_t *staging, int tensor, struct weir_err *err)
{
    const struct weir_batch_layout *layout = &upload->shared->setup.layout;
    int cameras[WEIR_CAMERAS_MAX], n = weir_layout_cameras(layout, tensor, cameras);
    int rc = flush(upload, batch, run, err), frames = weir_layout_frames(layout, cameras[0]);
    for (int i = 0; i < batch->batch.n * n * frames && rc == 0; i++) {
        int h = i % frames, camera = cameras[i / frames % n];
        int row = slot->row[i / frames / n];
        uint8_t *image = weir_layout_image(layout, slot->memory, row, camera, h);
        struct run piece = {image, staging + (image - slot->memory), layout->image_bytes[camera]};
        if (image != run->from + run->bytes)
            rc = flush(upload, batch, run, err);
        if (rc == 0 && !slot->decoded[weir_layout_number(layout, row, camera, h)].plane[0])
            rc = copy(upload, batch, run, &piece, err);
    }
    return rc == 0 ? flush(upload, batch, run, err) : rc;
}

/* Copies an image tensor: to staging memory if a kernel converts it, otherwise to the output batch. */
static int copy_tensor(struct weir_upload *upload, struct weir_upload_batch *batch, struct run *run,
                       const struct weir_slot *slot, uint8_t *staging, int tensor, struct weir_err *err)
{
    const struct weir_batch_layout *from = &upload->shared->setup.layout, *to = &upload->layout;
    bool staged = !upload->direct && from->offsets[tensor] < upload->staged_bytes;
    if (staged && slot->decoded)
        return copy_images(upload, batch, run, slot, staging, tensor, err);
    int cameras[WEIR_CAMERAS_MAX];
    weir_layout_cameras(from, tensor, cameras);
    struct run piece = {
        .from = slot->memory + from->offsets[tensor],
        .to = staged ? staging + from->offsets[tensor] : batch->memory + to->offsets[to->tensor[cameras[0]]],
        .bytes = from->tensors[tensor].sample_bytes * (size_t)batch->batch.n,
    };
    return copy(upload, batch, run, &piece, err);
}

/* Copies the image tensors first, then the small tensors. */
static int copy_all(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_slot *slot,
                    uint8_t *staging, struct weir_err *err)
{
    const struct weir_batch_layout *from = &upload->shared->setup.layout, *to = &upload->layout;
    struct run run = {slot->memory, NULL, 0};
    int rc = 0;
    for (int i = 0; i < from->qpos && rc == 0; i++)
        rc = copy_tensor(upload, batch, &run, slot, staging, i, err);
    struct run packed = {slot->memory + from->offsets[from->qpos], batch->memory + to->offsets[to->qpos],
                         from->packed_bytes};
    if (rc == 0)
        rc = copy(upload, batch, &run, &packed, err);
    return rc == 0 ? flush(upload, batch, &run, err) : rc;
}

static struct weir_gpu_source source_of(const struct weir_upload *upload, const struct weir_slot *slot,
                                        uint8_t *staging, int sample, int camera, int at)
{
    const struct weir_batch_layout *layout = &upload->shared->setup.layout;
    int row = slot->decoded ? slot->row[sample] : sample;
    const struct weir_gpu_source *decoded =
        slot->decoded ? &slot->decoded[weir_layout_number(layout, row, camera, at)] : NULL;
    if (decoded && decoded->plane[0])
        return *decoded;
    const uint8_t *image = weir_layout_image(layout, slot->memory, row, camera, at);
    return (struct weir_gpu_source){
        .plane = {staging + (image - slot->memory)},
        .pitch = {(uint32_t)layout->width[camera] * 3},
        .kind = WEIR_GPU_RGB,
    };
}

/* Writes the descriptions of the images on the GPU to the slot. They are copied together with the small tensors. */
static void write_sources(const struct weir_upload *upload, const struct weir_slot *slot, uint8_t *staging)
{
    const struct weir_batch_layout *layout = &upload->shared->setup.layout;
    struct weir_gpu_source *sources = (struct weir_gpu_source *)(void *)(slot->memory + layout->sources_at);
    for (int i = 0; i < upload->n_images; i++) {
        const struct weir_upload_images *images = &upload->images[i];
        struct weir_gpu_source *to = sources + images->first_source;
        for (int sample = 0; sample < slot->batch.n; sample++)
            for (int k = 0; k < images->n_cameras; k++)
                for (int h = 0; h < weir_layout_frames(layout, images->cameras[k]); h++)
                    *to++ = source_of(upload, slot, staging, sample, images->cameras[k], h);
    }
}

/* Makes the copy stream wait until the last batch in this staging memory has been converted. This is necessary only if
 * there are fewer slots than output batches. Otherwise that batch is finished, because this output batch has held it,
 * or a later one, and has been returned since. */
static int wait_staging(struct weir_upload *upload, uint64_t sequence, struct weir_err *err)
{
    uint64_t slots = (uint64_t)upload->shared->slots.n;
    if (upload->direct || slots >= (uint64_t)upload->n_batches || sequence < upload->first + slots)
        return 0;
    return upload->device->ops->stream_wait(upload->device->gpu, upload->copy_stream,
                                            weir_upload_batch_of(upload, sequence - slots)->ready, err);
}

static int queue_copy(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_slot *slot,
                      struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_H2D_COPY);
    const struct weir_gpu_ops *ops = upload->device->ops;
    struct weir_gpu *gpu = upload->device->gpu;
    struct weir_upload_slot *mine = &upload->slots[slot - upload->shared->slots.slot];
    if (!upload->direct)
        write_sources(upload, slot, mine->staging);
    int rc = wait_staging(upload, batch->sequence, err);
    if (rc == 0)
        rc = weir_upload_times_begin(upload, batch, err);
    if (rc == 0)
        rc = ops->record(gpu, batch->copy_begin, upload->copy_stream, err);
    if (rc == 0)
        rc = copy_all(upload, batch, slot, mine->staging, err);
    if (rc == 0)
        rc = ops->record(gpu, batch->copy_end, upload->copy_stream, err);
    return rc == 0 ? ops->record(gpu, mine->copied, upload->copy_stream, err) : rc;
}

/* ---- preparing ---- */

static int prepare(struct weir_upload *upload, struct weir_upload_batch *batch, const struct weir_upload_images *images,
                   struct weir_err *err)
{
    static const enum weir_gpu_dtype dtypes[] = {[WEIR_DTYPE_U8] = WEIR_GPU_U8,
                                                 [WEIR_DTYPE_F32] = WEIR_GPU_F32,
                                                 [WEIR_DTYPE_F16] = WEIR_GPU_F16,
                                                 [WEIR_DTYPE_BF16] = WEIR_GPU_BF16};
    const struct weir_batch_layout *from = &upload->shared->setup.layout, *to = &upload->layout;
    const uint8_t *sources = batch->memory + to->sources_at + images->first_source * sizeof(struct weir_gpu_source);
    int camera = images->cameras[0], all[WEIR_CAMERAS_MAX], frames = weir_layout_frames(from, camera);
    const struct weir_view *view = &upload->shared->setup.out_views[camera];
    struct weir_gpu_prepare prepare = {
        .sources = (const struct weir_gpu_source *)(const void *)sources,
        .n = batch->batch.n * images->n_cameras * frames,
        .run = images->n_cameras * frames,
        .stride = weir_layout_cameras(to, images->tensor, all) * frames,
        .first = to->index[camera] * frames,
        .width = from->width[camera],
        .height = from->height[camera],
        .x = images->alone ? view->x : 0,
        .y = images->alone ? view->y : 0,
        .out_width = to->width[camera],
        .out_height = to->height[camera],
        .columns = images->resamples ? &images->columns : NULL,
        .rows = images->resamples ? &images->rows : NULL,
        .planar = upload->format.layout == WEIR_LAYOUT_NCHW,
        .bgr = upload->format.color == WEIR_COLOR_BGR,
        .dtype = dtypes[upload->format.dtype],
        .values = upload->gpu_values,
        .tensor = batch->memory + to->offsets[images->tensor],
    };
    weir_gpu_clocks_begin(upload->clocks, &prepare.clocks);
    int rc = upload->device->ops->prepare(upload->device->gpu, &prepare, upload->prepare_stream, err);
    weir_gpu_clocks_launched(upload->clocks, &prepare.clocks, rc);
    return rc;
}

static int queue_prepare(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err)
{
    WEIR_ZONE(WEIR_STAGE_PREPARE_BATCH);
    const struct weir_gpu_ops *ops = upload->device->ops;
    struct weir_gpu *gpu = upload->device->gpu;
    int rc = ops->stream_wait(gpu, upload->prepare_stream, batch->copy_end, err);
    if (rc == 0)
        rc = ops->record(gpu, batch->prepare_begin, upload->prepare_stream, err);
    for (int i = 0; i < upload->n_images && rc == 0; i++)
        rc = prepare(upload, batch, &upload->images[i], err);
    if (rc == 0)
        rc = ops->record(gpu, batch->ready, upload->prepare_stream, err);
    return rc == 0 ? weir_gpu_clocks_fetch(upload->clocks, err) : rc; /* the batch does not wait for this copy */
}

/* ---- the batch ---- */

static void describe(struct weir_upload_batch *batch, const struct weir_slot *slot)
{
    struct weir_batch *to = &batch->batch;
    to->plan = slot->batch.plan;
    to->n = slot->batch.n;
    to->wait_ns = to->gpu_wait_ns = 0;
    to->ready_ns = slot->batch.ready_ns;
    memcpy(batch->samples, slot->samples, (size_t)to->n * sizeof *batch->samples);
    for (int i = 0; i < to->n_tensors; i++)
        to->tensors[i].shape[0] = to->n;
    batch->task_id = slot->last_task_id;
    batch->bytes = 0;
    batch->waited = batch->ordered = batch->stepped = false;
}

int weir_upload_queue(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_slot *slot,
                      struct weir_err *err)
{
    describe(batch, slot);
    batch->prepared = !upload->direct && upload->n_images > 0 && batch->batch.n > 0;
    int rc = queue_copy(upload, batch, slot, err);
    if (rc < 0)
        return rc;
    if (batch->prepared)
        return queue_prepare(upload, batch, err);
    return upload->device->ops->record(upload->device->gpu, batch->ready, upload->copy_stream, err);
}

void weir_upload_lend(struct weir_upload *upload, struct weir_upload_batch *batch)
{
    batch->lent = true;
    weir_memory_allocated(batch->memory, upload->layout.slot_bytes, upload->device->number);
}

int weir_upload_order(struct weir_upload *upload, struct weir_upload_batch *batch, void *stream, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    struct weir_gpu *gpu = upload->device->gpu;
    if (batch->waited) /* a second stream of the consumer */
        return ops->stream_wait(gpu, stream, batch->ready, err);
    int rc = ops->record(gpu, batch->stall_begin, stream, err);
    if (rc == 0)
        rc = ops->stream_wait(gpu, stream, batch->ready, err);
    if (rc == 0)
        rc = ops->record(gpu, batch->stall_end, stream, err);
    batch->waited = rc == 0;
    batch->n_marks = 0;
    return rc;
}

int weir_upload_mark(struct weir_upload *upload, struct weir_upload_batch *batch, int stage, void *stream,
                     struct weir_err *err)
{
    if (batch->n_marks == WEIR_GPU_MARKED_MAX || !batch->waited)
        return weir_err_set(err, -EINVAL, "mark at most %d stages per step, after weir_loader_wait",
                            WEIR_GPU_MARKED_MAX);
    int rc = upload->device->ops->record(upload->device->gpu, batch->marks[batch->n_marks], stream, err);
    if (rc == 0)
        batch->mark_stages[batch->n_marks++] = stage;
    return rc;
}

int weir_upload_step_end(struct weir_upload *upload, struct weir_upload_batch *batch, void *stream,
                         struct weir_err *err)
{
    int rc = upload->device->ops->record(upload->device->gpu, batch->step_end, stream, err);
    batch->stepped = rc == 0;
    return rc;
}

static void returned(struct weir_upload *upload, struct weir_upload_batch *batch, bool ordered)
{
    batch->lent = false;
    batch->ordered = ordered;
    atomic_store_explicit(&batch->state, WEIR_UPLOAD_RETURNED,
                          memory_order_release); /* only after the events have been recorded */
    weir_eventcount_notify(&upload->wakeup);
}

int weir_upload_return(struct weir_upload *upload, struct weir_upload_batch *batch, void *const *streams, int n,
                       struct weir_err *err)
{
    int rc = weir_gpu_block_release(batch->block, streams, n, err);
    weir_memory_freed(batch->memory, upload->layout.slot_bytes, upload->device->number);
    returned(upload, batch, n > 0 && rc == 0);
    return rc;
}

int weir_upload_keep(struct weir_upload *upload, struct weir_upload_batch *batch, bool another,
                     struct weir_gpu_block **block, struct weir_err *err)
{
    struct weir_gpu_block *next = NULL;
    int rc = upload->device->ops->wait(upload->device->gpu, batch->ready, err);
    if (rc == 0 && another)
        rc = weir_gpu_block_take(upload->blocks, true, &next, err);
    if (rc < 0 && another)
        return rc;
    *block = batch->block; /* even if the GPU is lost and the loader ends */
    weir_memory_freed(batch->memory, upload->layout.slot_bytes, upload->device->number);
    set_block(upload, batch, next);
    returned(upload, batch, false);
    return 0;
}

int weir_upload_batch_wait(struct weir_upload *upload, struct weir_upload_batch *batch, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    int rc = ops->wait(upload->device->gpu, batch->ready, err);
    if (rc == 0 && batch->waited)
        rc = ops->wait(upload->device->gpu, batch->stall_end, err);
    if (rc == 0 && batch->block && batch->block->pending)
        rc = ops->wait(upload->device->gpu, batch->block->released, err);
    return rc;
}
