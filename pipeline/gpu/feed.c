/* Opening and closing what feeds a GPU. */
#include "pipeline/gpu/feed.h"
#include "decoders/view_taps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_direct(const struct weir_pixel_format *format, const char *decoder)
{
    return !weir_decoder_on_gpu(decoder) && format->dtype == WEIR_DTYPE_U8 && format->layout == WEIR_LAYOUT_NHWC;
}

struct weir_pixel_format weir_feed_slot_format(const struct weir_pixel_format *format, const char *decoder)
{
    return (struct weir_pixel_format){
        .color = is_direct(format, decoder) ? format->color : WEIR_COLOR_RGB,
        .dtype = WEIR_DTYPE_U8,
        .layout = WEIR_LAYOUT_NHWC,
    };
}

int weir_feed_layout(struct weir_batch_layout *layout, const struct weir_shared *shared, const struct weir_view *views,
                     const struct weir_pixel_format *format, struct weir_err *err)
{
    struct weir_loader_config config = shared->config;
    config.format = *format;
    int rc = weir_batch_layout_init(layout, &config, shared->dataset, shared->probes, views, err);
    if (rc == 0)
        weir_batch_layout_add_sources(layout, sizeof(struct weir_gpu_source));
    return rc;
}

/* The GPU crops or resizes the camera's images. */
static bool is_viewed(const struct weir_shared *shared, int camera)
{
    return memcmp(&shared->views[camera], &shared->out_views[camera], sizeof shared->views[camera]) != 0;
}

static struct weir_feed_images *add_images(struct weir_feed *feed, int tensor, size_t first_source)
{
    struct weir_feed_images *images = &feed->images[feed->n_images++];
    *images = (struct weir_feed_images){.tensor = tensor, .first_source = first_source};
    return images;
}

/* The tensors of colour images come first. A camera that is cropped or resized is prepared by itself. */
static void list_images(struct weir_feed *feed)
{
    const struct weir_shared *s = feed->shared;
    size_t per_camera = (size_t)s->config.batch_size * (size_t)s->layout.history, sources = 0;
    for (int i = 0; i < feed->layout.qpos && feed->layout.tensors[i].dtype != WEIR_DTYPE_U16; i++) {
        int cameras[WEIR_CAMERAS_MAX], n = weir_layout_cameras(&feed->layout, i, cameras);
        struct weir_feed_images *images = NULL;
        for (int k = 0; k < n; k++) {
            bool alone = is_viewed(s, cameras[k]);
            if (!images || alone || images->alone)
                images = add_images(feed, i, sources);
            images->alone = alone;
            images->cameras[images->n_cameras++] = cameras[k];
            sources += per_camera;
        }
    }
    for (int i = 0; i < s->layout.qpos && s->layout.tensors[i].dtype == WEIR_DTYPE_U8; i++)
        feed->staged_bytes = s->layout.offsets[i + 1];
    feed->staging_bytes = feed->direct ? 0 : feed->staged_bytes;
}

int weir_feed_alloc(struct weir_feed *feed, size_t bytes, void **memory, struct weir_err *err)
{
    int rc = feed->device->ops->alloc(feed->device->gpu, bytes, memory, err);
    if (rc < 0)
        return rc;
    feed->memory_bytes += bytes;
    weir_memory_reserved((int64_t)bytes, feed->device->number);
    return 0;
}

static int open_slots(struct weir_feed *feed, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = feed->device->ops;
    struct weir_slots *slots = &feed->shared->slots;
    int rc = ops->pin(feed->device->gpu, slots->memory, slots->memory_bytes, err);
    feed->pinned = rc == 0;
    feed->slots = calloc((size_t)slots->n, sizeof *feed->slots);
    if (rc == 0 && !feed->slots)
        rc = weir_err_set(err, -ENOMEM, "out of memory");
    for (int i = 0; i < slots->n && rc == 0; i++) {
        void *staging = NULL;
        if (feed->staging_bytes > 0)
            rc = weir_feed_alloc(feed, feed->staging_bytes, &staging, err);
        feed->slots[i].staging = staging;
        if (rc == 0)
            rc = ops->event_new(feed->device->gpu, false, &feed->slots[i].copied, err);
    }
    return rc;
}

static int open_streams(struct weir_feed *feed, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = feed->device->ops;
    int rc = ops->stream_new(feed->device->gpu, false, &feed->copy_stream, err);
    if (rc == 0 && !feed->direct)
        rc = ops->stream_new(feed->device->gpu, true, &feed->prepare_stream, err);
    return rc;
}

/* The copy is done before the first kernel: both are on their way in the order of the streams' first batch. */
static int open_values(struct weir_feed *feed, struct weir_err *err)
{
    if (feed->direct || feed->format.dtype == WEIR_DTYPE_U8)
        return 0;
    weir_pixel_values(&feed->format, feed->values);
    int rc = weir_feed_alloc(feed, sizeof feed->values, &feed->gpu_values, err);
    if (rc == 0)
        rc = feed->device->ops->copy_in(feed->device->gpu, feed->gpu_values, feed->values, sizeof feed->values,
                                        feed->copy_stream, err);
    return rc;
}

/* Blocks until what was queued on the copy stream is through. */
static int drain_copies(struct weir_feed *feed, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = feed->device->ops;
    int rc = ops->record(feed->device->gpu, feed->times.base[1], feed->copy_stream, err);
    return rc == 0 ? ops->wait(feed->device->gpu, feed->times.base[1], err) : rc;
}

/* The taps of one direction in one piece of memory: first, n, weights. */
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

static int copy_taps(struct weir_feed *feed, struct weir_feed_images *images, const struct weir_view_taps taps[2],
                     struct weir_err *err)
{
    size_t first = taps_bytes(&taps[0]), bytes = first + taps_bytes(&taps[1]);
    uint8_t *host = malloc(bytes);
    int rc = host ? weir_feed_alloc(feed, bytes, &images->taps, err) : weir_err_set(err, -ENOMEM, "out of memory");
    if (rc == 0) {
        put_taps(&images->columns, &taps[0], host, images->taps);
        put_taps(&images->rows, &taps[1], host + first, (uint8_t *)images->taps + first);
        rc = feed->device->ops->copy_in(feed->device->gpu, images->taps, host, bytes, feed->copy_stream, err);
    }
    if (rc == 0) /* host is read until then */
        rc = drain_copies(feed, err);
    free(host);
    return rc;
}

static int open_taps(struct weir_feed *feed, struct weir_feed_images *images, struct weir_err *err)
{
    const struct weir_view *view = &feed->shared->out_views[images->cameras[0]];
    images->resamples = images->alone && (view->width != view->out_width || view->height != view->out_height);
    if (!images->resamples)
        return 0;
    struct weir_view_taps taps[2] = {{0}};
    int rc = weir_view_taps_open(&taps[0], view, false);
    if (rc == 0)
        rc = weir_view_taps_open(&taps[1], view, true);
    rc = rc < 0 ? weir_err_set(err, rc, "out of memory") : copy_taps(feed, images, taps, err);
    weir_view_taps_close(&taps[0]);
    weir_view_taps_close(&taps[1]);
    return rc;
}

static int open_all(struct weir_feed *feed, int number, struct weir_err *err)
{
    struct weir_shared *s = feed->shared;
    int rc = weir_device_open(&feed->device, number, err);
    if (rc == 0)
        rc = weir_feed_layout(&feed->layout, s, s->out_views, &feed->format, err);
    if (rc < 0)
        return rc;
    list_images(feed);
    rc = open_streams(feed, err);
    if (rc == 0)
        rc = open_slots(feed, err);
    if (rc == 0)
        rc = open_values(feed, err);
    for (int i = 0; i < feed->n_batches && rc == 0; i++)
        rc = weir_feed_batch_open(feed, &feed->batches[i], err);
    if (rc == 0)
        rc = weir_feed_times_open(feed, err);
    for (int i = 0; i < feed->n_images && rc == 0; i++)
        rc = open_taps(feed, &feed->images[i], err);
    return rc;
}

int weir_feed_open(struct weir_shared *shared, int number, const struct weir_pixel_format *format, uint64_t first,
                   struct weir_err *err)
{
    uint64_t left = shared->total - first;
    struct weir_feed *feed = calloc(1, sizeof *feed);
    if (!feed)
        return weir_err_set(err, -ENOMEM, "out of memory");
    bool direct = is_direct(format, shared->config.decoder);
    *feed = (struct weir_feed){.shared = shared, .format = *format, .first = first, .direct = direct};
    feed->n_batches = left == 0 ? 1 : left < WEIR_FEED_BATCHES ? (int)left : WEIR_FEED_BATCHES;
    feed->acquired = feed->fed = feed->reaped = feed->collected = first;
    pthread_mutex_init(&feed->lock, NULL);
    shared->feed = feed;
    struct weir_err why = WEIR_ERR_NONE;
    int rc = open_all(feed, number, &why);
    bool advised = rc != -ENOMEM || strstr(why.text, "--prefetch") != NULL;
    if (rc < 0)
        weir_err_set(err, rc, "%s%s", why.text, advised ? "" : "; use a smaller --batch-size or --prefetch");
    return rc;
}

static void close_slots(struct weir_feed *feed)
{
    const struct weir_gpu_ops *ops = feed->device->ops;
    for (int i = 0; feed->slots && i < feed->shared->slots.n; i++) {
        if (feed->slots[i].copied)
            ops->event_free(feed->device->gpu, feed->slots[i].copied);
        if (feed->slots[i].staging)
            ops->free(feed->device->gpu, feed->slots[i].staging);
    }
    if (feed->pinned)
        ops->unpin(feed->device->gpu, feed->shared->slots.memory);
}

/* Until what is queued is through. When the GPU is lost each call says so at once. */
static void drain(struct weir_feed *feed)
{
    const struct weir_gpu_ops *ops = feed->device->ops;
    void *streams[] = {feed->copy_stream, feed->prepare_stream}, *event = feed->times.base[0];
    for (int i = 0; i < feed->n_batches; i++)
        if (feed->batches[i].state == WEIR_FEED_RETURNED)
            weir_feed_batch_wait(feed, &feed->batches[i], NULL);
    for (int i = 0; event && i < 2; i++)
        if (streams[i] && ops->record(feed->device->gpu, event, streams[i], NULL) == 0)
            ops->wait(feed->device->gpu, event, NULL);
}

static void close_device(struct weir_feed *feed)
{
    const struct weir_gpu_ops *ops = feed->device->ops;
    struct weir_gpu *gpu = feed->device->gpu;
    drain(feed);
    weir_feed_times_close(feed);
    for (int i = 0; i < feed->n_batches; i++)
        weir_feed_batch_close(feed, &feed->batches[i]);
    close_slots(feed);
    if (feed->gpu_values)
        ops->free(gpu, feed->gpu_values);
    for (int i = 0; i < feed->n_images; i++)
        if (feed->images[i].taps)
            ops->free(gpu, feed->images[i].taps);
    if (feed->prepare_stream)
        ops->stream_free(gpu, feed->prepare_stream);
    if (feed->copy_stream)
        ops->stream_free(gpu, feed->copy_stream);
}

void weir_feed_close(struct weir_feed **feed)
{
    struct weir_feed *f = *feed;
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
    *feed = NULL;
}
