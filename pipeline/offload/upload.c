/* Opens and closes the upload of batches to a GPU. */
#include "pipeline/offload/upload.h"
#include "decoders/view_taps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_direct(const struct weir_pixel_format *format, const char *decoder)
{
    return !weir_decoder_on_gpu(decoder) && format->dtype == WEIR_DTYPE_U8 && format->layout == WEIR_LAYOUT_NHWC;
}

struct weir_pixel_format weir_upload_slot_format(const struct weir_pixel_format *format, const char *decoder)
{
    return (struct weir_pixel_format){
        .color = is_direct(format, decoder) ? format->color : WEIR_COLOR_RGB,
        .dtype = WEIR_DTYPE_U8,
        .layout = WEIR_LAYOUT_NHWC,
    };
}

int weir_upload_layout(struct weir_batch_layout *layout, const struct weir_shared *shared,
                       const struct weir_view *views, const struct weir_pixel_format *format, struct weir_err *err)
{
    struct weir_loader_config config = shared->setup.config;
    config.format = *format;
    int rc = weir_batch_layout_init(layout, &shared->setup.windows, &config, shared->setup.dataset,
                                    shared->setup.probes, views, err);
    if (rc == 0)
        weir_batch_layout_add_sources(layout, sizeof(struct weir_gpu_source));
    return rc;
}

/* Returns whether the GPU crops or resizes the camera's images. */
static bool is_viewed(const struct weir_shared *shared, int camera)
{
    return memcmp(&shared->setup.views[camera], &shared->setup.out_views[camera], sizeof shared->setup.views[camera]) !=
           0;
}

static struct weir_upload_images *add_images(struct weir_upload *upload, int tensor, size_t first_source)
{
    struct weir_upload_images *images = &upload->images[upload->n_images++];
    *images = (struct weir_upload_images){.tensor = tensor, .first_source = first_source};
    return images;
}

/* Tensors of colour images come first. Each camera that is cropped or resized has its own kernel launch. */
static void list_images(struct weir_upload *upload)
{
    const struct weir_shared *s = upload->shared;
    size_t sources = 0;
    for (int i = 0; i < upload->layout.qpos; i++) {
        int cameras[WEIR_CAMERAS_MAX], n = weir_layout_cameras(&upload->layout, i, cameras);
        struct weir_upload_images *images = NULL;
        if (weir_frame_is_depth(s->setup.probes[cameras[0]].kind))
            break;
        for (int k = 0; k < n; k++) {
            bool alone = is_viewed(s, cameras[k]);
            if (!images || alone || images->alone)
                images = add_images(upload, i, sources);
            images->alone = alone;
            images->cameras[images->n_cameras++] = cameras[k];
            sources += (size_t)s->setup.config.batch_size * (size_t)weir_layout_frames(&upload->layout, cameras[k]);
        }
    }
    for (int i = 0; i < s->setup.layout.qpos && s->setup.layout.tensors[i].dtype == WEIR_DTYPE_U8; i++)
        upload->staged_bytes = s->setup.layout.offsets[i + 1];
    upload->staging_bytes = upload->direct ? 0 : upload->staged_bytes;
}

int weir_upload_alloc(struct weir_upload *upload, size_t bytes, void **memory, struct weir_err *err)
{
    int rc = upload->device->ops->alloc(upload->device->gpu, bytes, memory, err);
    if (rc < 0)
        return rc;
    upload->memory_bytes += bytes;
    weir_memory_reserved((int64_t)bytes, upload->device->number);
    return 0;
}

static int open_slots(struct weir_upload *upload, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    struct weir_slots *slots = &upload->shared->slots;
    int rc = ops->pin(upload->device->gpu, slots->memory, slots->memory_bytes, err);
    upload->pinned = rc == 0;
    upload->slots = calloc((size_t)slots->n, sizeof *upload->slots);
    if (rc == 0 && !upload->slots)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < slots->n && rc == 0; i++) {
        void *staging = NULL;
        if (upload->staging_bytes > 0)
            rc = weir_upload_alloc(upload, upload->staging_bytes, &staging, err);
        upload->slots[i].staging = staging;
        if (rc == 0)
            rc = ops->event_new(upload->device->gpu, false, &upload->slots[i].copied, err);
    }
    return rc;
}

static const struct weir_kernel_clock_kernel prepare_kernel = {
    .name = "prepare_clocked_kernel",
    .stages = (const char *const[]){[WEIR_GPU_PREPARE_VALUES] = "value_table",
                                    [WEIR_GPU_PREPARE_PIXELS] = "read_pixels",
                                    [WEIR_GPU_PREPARE_STORE] = "store_values"},
    .n_stages = WEIR_GPU_PREPARE_STAGES,
    .rows_max = WEIR_GPU_PREPARE_ITERATIONS,
};

static int open_streams(struct weir_upload *upload, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    int rc = ops->stream_new(upload->device->gpu, false, &upload->copy_stream, err);
    if (rc < 0 || upload->direct)
        return rc;
    rc = ops->stream_new(upload->device->gpu, true, &upload->prepare_stream, err);
    return rc < 0 ? rc
                  : weir_gpu_clocks_open(&upload->clocks, upload->device, &prepare_kernel, upload->prepare_stream, err);
}

/* No wait is needed: the first kernel waits for the first batch's copy, which follows this one on the same stream. */
static int open_values(struct weir_upload *upload, struct weir_err *err)
{
    if (upload->direct || upload->format.dtype == WEIR_DTYPE_U8)
        return 0;
    weir_pixel_values(&upload->format, upload->values);
    int rc = weir_upload_alloc(upload, sizeof upload->values, &upload->gpu_values, err);
    if (rc == 0)
        rc = upload->device->ops->copy_in(upload->device->gpu, upload->gpu_values, upload->values,
                                          sizeof upload->values, upload->copy_stream, err);
    return rc;
}

/* Blocks until the copy stream is idle. */
static int drain_copies(struct weir_upload *upload, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    int rc = ops->record(upload->device->gpu, upload->times.base[1], upload->copy_stream, err);
    return rc == 0 ? ops->wait(upload->device->gpu, upload->times.base[1], err) : rc;
}

/* Returns the size of one direction's taps. They are stored in one allocation, in the order first, n, weights. */
static size_t taps_bytes(const struct weir_view_taps *taps)
{
    return (size_t)taps->size * (2 * sizeof(int32_t) + (size_t)taps->most * sizeof(float));
}

static void put_taps(struct weir_gpu_taps *to, const struct weir_view_taps *taps, uint8_t *host, uint8_t *gpu)
{
    size_t ints = (size_t)taps->size * sizeof(int32_t);
    memcpy(host, taps->first, ints);
    memcpy(host + ints, taps->n, ints);
    memcpy(host + 2 * ints, taps->weights, (size_t)taps->size * (size_t)taps->most * sizeof(float));
    *to = (struct weir_gpu_taps){(const int32_t *)(void *)gpu, (const int32_t *)(void *)(gpu + ints),
                                 (const float *)(void *)(gpu + 2 * ints), taps->most};
}

static int copy_taps(struct weir_upload *upload, struct weir_upload_images *images, const struct weir_view_taps taps[2],
                     struct weir_err *err)
{
    size_t first = taps_bytes(&taps[0]), bytes = first + taps_bytes(&taps[1]);
    uint8_t *host = malloc(bytes);
    int rc = host ? weir_upload_alloc(upload, bytes, &images->taps, err) : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0) {
        put_taps(&images->columns, &taps[0], host, images->taps);
        put_taps(&images->rows, &taps[1], host + first, (uint8_t *)images->taps + first);
        rc = upload->device->ops->copy_in(upload->device->gpu, images->taps, host, bytes, upload->copy_stream, err);
    }
    if (rc == 0) /* the copy may read the host memory until then */
        rc = drain_copies(upload, err);
    free(host);
    return rc;
}

static int open_taps(struct weir_upload *upload, struct weir_upload_images *images, struct weir_err *err)
{
    const struct weir_view *view = &upload->shared->setup.out_views[images->cameras[0]];
    images->resamples = images->alone && (view->width != view->out_width || view->height != view->out_height);
    if (!images->resamples)
        return 0;
    enum weir_resize resize = upload->shared->setup.config.resize;
    struct weir_view_taps taps[2] = {{0}};
    int rc = weir_view_taps_open(&taps[0], view, resize, false);
    if (rc == 0)
        rc = weir_view_taps_open(&taps[1], view, resize, true);
    rc = rc < 0 ? weir_err_set(err, rc, "out of memory") : copy_taps(upload, images, taps, err);
    weir_view_taps_close(&taps[0]);
    weir_view_taps_close(&taps[1]);
    return rc;
}

static int open_all(struct weir_upload *upload, int number, struct weir_err *err)
{
    struct weir_shared *s = upload->shared;
    int rc = weir_device_open(&upload->device, number, err);
    if (rc == 0)
        rc = weir_upload_layout(&upload->layout, s, s->setup.out_views, &upload->format, err);
    if (rc < 0)
        return rc;
    list_images(upload);
    rc = open_streams(upload, err);
    if (rc == 0)
        rc = open_slots(upload, err);
    if (rc == 0)
        rc = open_values(upload, err);
    if (rc == 0)
        rc = weir_gpu_blocks_open(&upload->blocks, upload->device, upload->layout.slot_bytes, err);
    for (int i = 0; i < upload->n_batches && rc == 0; i++)
        rc = weir_upload_batch_open(upload, &upload->batches[i], err);
    if (rc == 0)
        rc = weir_upload_times_open(upload, err);
    for (int i = 0; i < upload->n_images && rc == 0; i++)
        rc = open_taps(upload, &upload->images[i], err);
    return rc;
}

int weir_upload_open(struct weir_shared *shared, int number, const struct weir_pixel_format *format, uint64_t first,
                     struct weir_err *err)
{
    uint64_t left = shared->setup.total - first;
    struct weir_upload *upload = calloc(1, sizeof *upload);
    if (!upload)
        return weir_err_set(err, -ENOMEM, "out of memory");
    bool direct = is_direct(format, shared->setup.config.decoder);
    *upload = (struct weir_upload){.shared = shared, .format = *format, .first = first, .direct = direct};
    upload->n_batches = left == 0 ? 1 : left < WEIR_UPLOAD_BATCHES ? (int)left : WEIR_UPLOAD_BATCHES;
    upload->acquired = upload->queued = upload->reaped = upload->collected = first;
    pthread_mutex_init(&upload->lock, NULL);
    shared->upload = upload;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = open_all(upload, number, &why);
    bool advised = rc != -ENOMEM || strstr(why.text, "--prefetch") != NULL;
    if (rc < 0)
        weir_err_set(err, rc, "%s%s", why.text, advised ? "" : "; use a smaller --batch-size or --prefetch");
    return rc;
}

static void close_slots(struct weir_upload *upload)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    for (int i = 0; upload->slots && i < upload->shared->slots.n; i++) {
        if (upload->slots[i].copied)
            ops->event_free(upload->device->gpu, upload->slots[i].copied);
        if (upload->slots[i].staging)
            ops->free(upload->device->gpu, upload->slots[i].staging);
    }
    if (upload->pinned)
        ops->unpin(upload->device->gpu, upload->shared->slots.memory);
}

/* Waits for all queued work. If the GPU is lost, each call returns immediately. */
static void drain(struct weir_upload *upload)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    void *streams[] = {upload->copy_stream, upload->prepare_stream}, *event = upload->times.base[0];
    for (int i = 0; i < upload->n_batches; i++)
        if (upload->batches[i].state == WEIR_UPLOAD_RETURNED)
            weir_upload_batch_wait(upload, &upload->batches[i], NULL);
    for (int i = 0; event && i < 2; i++)
        if (streams[i] && ops->record(upload->device->gpu, event, streams[i], NULL) == 0)
            ops->wait(upload->device->gpu, event, NULL);
}

static void close_device(struct weir_upload *upload)
{
    const struct weir_gpu_ops *ops = upload->device->ops;
    struct weir_gpu *gpu = upload->device->gpu;
    drain(upload);
    weir_gpu_clocks_close(&upload->clocks);
    weir_upload_times_close(upload);
    for (int i = 0; i < upload->n_batches; i++)
        weir_upload_batch_close(upload, &upload->batches[i]);
    weir_gpu_blocks_close(&upload->blocks);
    close_slots(upload);
    if (upload->gpu_values)
        ops->free(gpu, upload->gpu_values);
    for (int i = 0; i < upload->n_images; i++)
        if (upload->images[i].taps)
            ops->free(gpu, upload->images[i].taps);
    if (upload->prepare_stream)
        ops->stream_free(gpu, upload->prepare_stream);
    if (upload->copy_stream)
        ops->stream_free(gpu, upload->copy_stream);
}

void weir_upload_close(struct weir_upload **upload)
{
    struct weir_upload *f = *upload;
    if (!f)
        return;
    if (f->device) {
        close_device(f);
        weir_memory_reserved(-(int64_t)f->memory_bytes, f->device->number);
    }
    weir_device_close(&f->device);
    pthread_mutex_destroy(&f->lock);
    free(f->slots);
    free(f);
    *upload = NULL;
}
