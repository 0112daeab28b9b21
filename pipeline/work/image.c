#include "pipeline/work/image.h"
#include "base/shortage.h"
#include "pipeline/offload/gpu_decode.h"
#include "pipeline/work/worker.h"
#include "weir/base.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static enum weir_frame_kind kind_of(const struct weir_shared *shared, const struct weir_image *image)
{
    return weir_dataset_kind(shared->setup.dataset, image->episode, image->camera);
}

/* Replaces u16 by f32, from the last pixel to the first, because the results need twice the memory. */
static void convert_depth(void *image, size_t pixels, const float *values)
{
    WEIR_ZONE(WEIR_STAGE_TO_TENSOR);
    uint8_t *bytes = image;
    while (pixels-- > 0) {
        uint16_t value;
        memcpy(&value, bytes + pixels * sizeof value, sizeof value);
        memcpy(bytes + pixels * sizeof *values, &values[value], sizeof *values);
    }
}

bool weir_image_is_direct(const struct weir_worker *worker, int episode, int camera)
{
    const struct weir_setup *setup = &worker->shared->setup;
    return weir_view_is_whole(&setup->views[camera], &setup->probes[camera]) &&
           weir_decoder_is_direct(worker->decoder, weir_dataset_kind(setup->dataset, episode, camera));
}

void *weir_image_direct(const struct weir_worker *worker, const struct weir_image *image)
{
    return weir_image_is_direct(worker, image->episode, image->camera) ? image->destination : NULL;
}

int weir_image_decode(struct weir_worker *worker, const struct weir_image *image, const uint8_t *bytes, size_t length)
{
    const struct weir_camera_probe *probe = &worker->shared->setup.probes[image->camera];
    const struct weir_view *view = &worker->shared->setup.views[image->camera];
    struct weir_frame frame = {kind_of(worker->shared, image),
                               bytes,
                               length,
                               probe->width,
                               probe->height,
                               weir_view_is_whole(view, probe) ? NULL : view};
    struct weir_source_mark mark = weir_sources_mark(&worker->fetcher);
    const struct weir_batch_layout *layout = &worker->shared->setup.layout;
    const float *depth_values = layout->depth_values[image->camera];
    int rc = weir_decode(worker->decoder, &frame, image->destination);
    if (rc == 0 && depth_values)
        convert_depth(image->destination, layout->image_bytes[image->camera] / sizeof *depth_values, depth_values);
    if (weir_frame_is_video(frame.kind))
        length = weir_frame_stored_bytes(worker->shared->setup.dataset, image->episode, image->camera, image->t);
    weir_sources_decoded(&worker->shared->sources, worker->id, image, length, &mark);
    if (rc == 0)
        weir_frame_cache_keep(&worker->shared->cache, image->episode, image->camera, image->t, image->destination);
    return rc;
}

/* If the file has changed, cached frames are not used, because they may have been read after the change. */
bool weir_image_cached(struct weir_worker *worker, const struct weir_image *image)
{
    const struct weir_shared *shared = worker->shared;
    struct weir_frame_cache *cache = &worker->shared->cache;
    if (cache->budget_bytes == 0)
        return false;
    bool spoiled =
        weir_file_set_is_spoiled(shared->files, weir_dataset_episode_file(shared->setup.dataset, image->episode));
    bool hit = !spoiled && weir_frame_cache_take(cache, image->episode, image->camera, image->t, image->destination);
    _Atomic uint64_t *counter = hit ? &worker->cache_hits : &worker->cache_misses;
    atomic_store_explicit(counter, *counter + 1, memory_order_relaxed); /* only this worker writes it */
    return hit;
}

int weir_image_fault(struct weir_worker *worker, const struct weir_image *image, int code, const char *reason,
                     char text[WEIR_FAULT_TEXT])
{
    struct weir_shared *shared = worker->shared;
    char name[WEIR_FAULT_TEXT], change[WEIR_FILE_CHANGE];
    int read = worker->fetcher.file; /* a chunk may be in a separate file */
    int file = read >= 0 ? read : weir_dataset_episode_file(shared->setup.dataset, image->episode);
    if (!weir_is_shortage(code) && weir_file_watch_blames(&shared->watch, file, change)) {
        reason = change;
        code = -ESTALE;
    }
    weir_frame_name(shared->setup.dataset, image->episode, image->camera, image->t, name, sizeof name);
    snprintf(text, WEIR_FAULT_TEXT, "%.*s: %.200s", WEIR_FAULT_TEXT - 210, name, reason);
    if (code == -ESTALE || code == -ENODATA) { /* a fault of the whole file is kept once, not once per frame */
        snprintf(name, sizeof name, "%.*s: %.200s", WEIR_FAULT_TEXT - 210,
                 weir_dataset_episode_path(shared->setup.dataset, image->episode),
                 code == -ESTALE ? weir_read_reason(code) : reason);
        weir_faults_add(&shared->faults, name);
    } else if (!weir_is_shortage(code)) {
        weir_faults_add(&shared->faults, text);
    }
    return code;
}

void weir_image_fetched(struct weir_worker *worker, const struct weir_image *first, int frames,
                        const struct weir_source_mark *mark)
{
    worker->clock.read_ticks +=
        weir_sources_fetched(&worker->shared->sources, worker->id, &worker->fetcher, first, frames, mark);
}

struct fetched {
    const uint8_t *bytes;
    size_t length;
};

static int fetch(struct weir_worker *worker, const struct weir_image *image, struct fetched *to,
                 char text[WEIR_FAULT_TEXT])
{
    struct weir_source_mark mark = weir_sources_mark(&worker->fetcher);
    int rc =
        weir_fetch_frame(&worker->fetcher, image->episode, image->camera, image->t, weir_image_direct(worker, image),
                         worker->shared->setup.layout.image_bytes[image->camera], &to->bytes, &to->length);
    weir_image_fetched(worker, image, 1, &mark);
    return rc < 0 ? weir_image_fault(worker, image, rc, worker->fetcher.reason, text) : 0;
}

static int decode(struct weir_worker *worker, const struct weir_image *image, const struct fetched *from,
                  char text[WEIR_FAULT_TEXT])
{
    int rc = weir_image_decode(worker, image, from->bytes, from->length);
    return rc < 0 ? weir_image_fault(worker, image, rc, weir_decoder_reason(worker->decoder), text) : 0;
}

/* Copies the image from the cache, or fetches and decodes it. Returns 0; or keeps the fault, stores "FILE: DATASET[t]:
 * reason" in text, and returns negative. */
static int load(struct weir_worker *worker, const struct weir_image *image, char text[WEIR_FAULT_TEXT])
{
    struct fetched fetched;
    if (weir_image_cached(worker, image))
        return 0;
    int rc = fetch(worker, image, &fetched, text);
    return rc < 0 ? rc : decode(worker, image, &fetched, text);
}

int weir_image_load_or_submit(struct weir_worker *worker, struct weir_slot *slot, int at,
                              const struct weir_image *image, char text[WEIR_FAULT_TEXT])
{
    struct fetched fetched;
    if (!worker->shared->decode)
        return load(worker, image, text);
    if (weir_image_cached(worker, image))
        return 0;
    int rc = fetch(worker, image, &fetched, text);
    if (rc < 0)
        return rc;
    if (weir_gpu_decode_take(worker->shared->decode, slot, at, image, fetched.bytes, fetched.length))
        return 1;
    uint64_t start_ns = weir_clock_monotonic_ns();
    rc = decode(worker, image, &fetched, text);
    weir_gpu_decode_done_here(worker->shared->decode, weir_clock_monotonic_ns() - start_ns);
    return rc;
}

/* Loads the nearest earlier good frame of the same episode and camera as a substitute. Returns 0, or negative with the
 * reason in text. There is no substitute if the file has changed. */
static int substitute(struct weir_worker *worker, struct weir_image image, char text[WEIR_FAULT_TEXT])
{
    int rc = -ENOENT;
    while (image.t-- > 0 && rc < 0 && rc != -ESTALE && !weir_is_shortage(rc))
        rc = load(worker, &image, text);
    if (rc == 0)
        atomic_fetch_add_explicit(&worker->shared->faults.substituted_frames, 1, memory_order_relaxed);
    return rc;
}

static void fail(struct weir_worker *worker, struct weir_slot *slot, int64_t number, int code, const char *text)
{
    struct weir_err err = WEIR_ERR_NONE;
    const char *advice = weir_frame_advice(code, text);
    weir_err_set(&err, code, "%s%s%s%s", text, *advice ? "; " : "", advice,
                 weir_is_shortage(code) ? "" : ", or use --on-error skip or substitute");
    weir_slot_fail(&worker->shared->slots, slot, number, &err);
}

bool weir_image_recover(struct weir_worker *worker, struct weir_slot *slot, int64_t number,
                        const struct weir_image *image, int code, const char *text)
{
    enum weir_on_error policy = worker->shared->setup.config.on_error;
    char why[WEIR_FAULT_TEXT];
    int rc = code;
    if (policy == WEIR_ON_ERROR_SUBSTITUTE && !weir_is_shortage(code)) {
        rc = substitute(worker, *image, why);
        text = weir_is_shortage(rc) ? why : text;
    }
    if (rc < 0 && (policy == WEIR_ON_ERROR_FAIL || weir_is_shortage(rc)))
        fail(worker, slot, number, rc, text);
    return rc == 0;
}
