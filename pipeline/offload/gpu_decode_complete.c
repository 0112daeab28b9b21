/* Completes frames after GPU decoding: passes on their planes, or decodes them on the CPU if the planes cannot be used.
 */
#include "pipeline/offload/gpu_decode.h"
#include "pipeline/offload/upload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum weir_gpu_source_kind kind_of(enum weir_jpeg_sampling sampling)
{
    switch (sampling) {
    case WEIR_JPEG_GRAY:
        return WEIR_GPU_GRAY;
    case WEIR_JPEG_422:
        return WEIR_GPU_YUV422;
    case WEIR_JPEG_420:
        return WEIR_GPU_YUV420;
    case WEIR_JPEG_440:
        return WEIR_GPU_YUV440;
    default:
        return WEIR_GPU_YUV444;
    }
}

static struct weir_gpu_source source_of(const struct weir_decode_job *job)
{
    struct weir_gpu_source source = {.kind = kind_of(job->sampling)};
    for (int i = 0; i < 3; i++) {
        source.plane[i] = job->frame.plane[i];
        source.pitch[i] = (uint32_t)job->frame.pitch[i];
    }
    return source;
}

/* ---- on the CPU ---- */

/* Decodes a frame on the CPU. Its bytes are copied first, because they occupy the destination of its image. */
static int decode_here(struct weir_gpu_decode *decode, const struct weir_decode_job *job, void *picture)
{
    const struct weir_camera_probe *probe = &decode->shared->setup.probes[job->image.camera];
    if (job->frame.length > decode->bytes_capacity) {
        uint8_t *grown = realloc(decode->bytes, job->frame.length);
        if (!grown)
            return -ENOMEM;
        decode->bytes = grown;
        decode->bytes_capacity = job->frame.length;
    }
    memcpy(decode->bytes, job->frame.bytes, job->frame.length);
    struct weir_frame frame = {WEIR_FRAME_IMAGE, decode->bytes, job->frame.length, probe->width, probe->height, NULL};
    return weir_decode(decode->decoder, &frame, picture);
}

/* Completes a frame that the CPU has decoded, or could not decode. */
static void complete_here(struct weir_gpu_decode *decode, const struct weir_decode_job *job, int code)
{
    struct weir_decode_result result = {.code = code};
    result.reason = code == -ENOMEM ? "out of memory" : code < 0 ? weir_decoder_reason(decode->decoder) : NULL;
    decode->client.complete(decode->client.user, job, &result);
}

/* ---- comparing ---- */

/* Copies the GPU's image to the host, in the CPU's format. */
static int fetch_picture(struct weir_gpu_decode *decode, struct weir_decode_batch *batch,
                         const struct weir_decode_job *job, struct weir_err *err)
{
    const struct weir_gpu_ops *ops = decode->device->ops;
    struct weir_gpu *gpu = decode->device->gpu;
    const struct weir_camera_probe *probe = &decode->shared->setup.probes[job->image.camera];
    struct weir_gpu_source source = source_of(job);
    struct weir_gpu_prepare prepare = {
        .sources = decode->gpu_source,
        .n = 1,
        .width = probe->width,
        .height = probe->height,
        .out_width = probe->width,
        .out_height = probe->height,
        .dtype = WEIR_GPU_U8,
        .tensor = decode->gpu_picture,
    };
    int rc = ops->copy_in(gpu, decode->gpu_source, &source, sizeof source, batch->stream, err);
    if (rc == 0)
        rc = ops->prepare(gpu, &prepare, batch->stream, err);
    if (rc == 0)
        rc = ops->copy_out(gpu, decode->pictures[0], decode->gpu_picture,
                           decode->shared->setup.layout.image_bytes[job->image.camera], batch->stream, err);
    if (rc == 0)
        rc = ops->record(gpu, decode->compared, batch->stream, err);
    return rc == 0 ? ops->wait(gpu, decode->compared, err) : rc;
}

/* Returns 1 if the planes may be used, 0 if the CPU's image is used instead and the frame is complete, or a negative
 * error. */
static int compare(struct weir_gpu_decode *decode, struct weir_decode_batch *batch, const struct weir_decode_job *job,
                   struct weir_err *err)
{
    size_t bytes = decode->shared->setup.layout.image_bytes[job->image.camera];
    int rc = fetch_picture(decode, batch, job, err);
    if (rc < 0)
        return rc;
    int code = decode_here(decode, job, decode->pictures[1]);
    double db = code < 0 ? 0 : weir_psnr_db(decode->pictures[0], decode->pictures[1], bytes);
    /* If the CPU cannot decode the frame either, the frame does not count against its kind. */
    if (code == 0 && weir_psnr_check_report(decode->psnr_check, batch->engine->kind, job->kind, db))
        return 1;
    weir_gpu_jpeg_note(&decode->tally, code < 0 ? WEIR_JPEG_BAD_HEADER : WEIR_JPEG_PSNR_REFUSED);
    if (code == 0)
        memcpy(job->image.destination, decode->pictures[1], bytes);
    complete_here(decode, job, code);
    return 0;
}

/* Returns 1, 0 or a negative error, like compare. While one frame of a kind is compared, the lock delays other frames
 * of that kind, which then need no comparison. */
static int judge_locked(struct weir_gpu_decode *decode, struct weir_decode_batch *batch,
                        const struct weir_decode_job *job, enum weir_jpeg_refusal result, struct weir_err *err)
{
    enum weir_psnr_advice advice = WEIR_PSNR_REFUSE;
    if (result == WEIR_JPEG_TAKEN)
        advice = weir_psnr_check_advise(decode->psnr_check, batch->engine->kind, job->kind);
    else
        weir_psnr_check_engine_refused(decode->psnr_check, batch->engine->kind, job->kind);
    if (advice == WEIR_PSNR_USE)
        return 1;
    if (advice == WEIR_PSNR_COMPARE)
        return compare(decode, batch, job, err);
    if (result == WEIR_JPEG_TAKEN)
        result = weir_psnr_check_refusal(decode->psnr_check, batch->engine->kind, job->kind);
    weir_gpu_jpeg_note(&decode->tally, result);
    complete_here(decode, job, decode_here(decode, job, job->image.destination));
    return 0;
}

static int judge(struct weir_gpu_decode *decode, struct weir_decode_batch *batch, const struct weir_decode_job *job,
                 enum weir_jpeg_refusal result, struct weir_err *err)
{
    pthread_mutex_lock(&decode->lock);
    int rc = judge_locked(decode, batch, job, result, err);
    pthread_mutex_unlock(&decode->lock);
    return rc;
}

int weir_gpu_decode_complete(struct weir_gpu_decode *decode, struct weir_decode_batch *batch, struct weir_err *err)
{
    const struct weir_shared *shared = decode->shared;
    for (int i = 0; i < batch->n; i++) {
        const struct weir_decode_job *job = &batch->jobs[i];
        weir_item_self = weir_task_id(&shared->slots, job->slot->plan.sequence, (uint64_t)job->task);
        int rc = judge(decode, batch, job, batch->results[i], err);
        if (rc < 0)
            return rc;
        if (rc > 0) {
            struct weir_gpu_source source = source_of(job);
            struct weir_decode_result result = {.planes = &source};
            decode->client.complete(decode->client.user, job, &result);
        }
    }
    weir_item_self = 0;
    return 0;
}
