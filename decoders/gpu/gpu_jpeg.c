#include "decoders/gpu/gpu_jpeg.h"
#include "base/threads.h"
#include "decoders/decoder_ops.h"
#include "decoders/frame_kind.h"
#include "decoders/gpu/gpu_jpeg_ops.h"
#include "prof/gpu/cuda_module.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct weir_gpu_jpeg {
    const struct weir_gpu_jpeg_ops *ops;
    void *self;
    int batch_max;
    _Atomic uint64_t frames, batches, refused; /* written only by the decoder's thread */
};

/* ---- the module ---- */

static int find_ops(const struct weir_gpu_jpeg_ops **ops, struct weir_err *err)
{
    const struct weir_cuda_module *module;
    int rc = weir_cuda_module_open(&module, err);
    if (rc < 0)
        return rc;
    *ops = module->jpeg;
    return *ops
               ? 0
               : weir_err_set(err, -ENODEV, "%s was built without nvJPEG: install its header (make nvjpeg) and rebuild",
                              weir_cuda_module_path());
}

int weir_gpu_jpeg_check(int gpu, enum weir_gpu_jpeg_engine engine, int *engines, struct weir_err *err)
{
    const struct weir_gpu_jpeg_ops *ops;
    int rc = find_ops(&ops, err);
    int n = rc < 0 ? rc : ops->engines(gpu, err);
    if (engines)
        *engines = n > 0 ? n : 0;
    if (n < 0)
        return n;
    if (n == 0 && engine == WEIR_GPU_JPEG_HARDWARE)
        return weir_err_set(err, -ENODEV, "GPU %d has no JPEG engines", gpu);
    return 0;
}

void weir_gpu_jpeg_library(char *text, size_t size)
{
    struct weir_err err = WEIR_ERR_NONE;
    const struct weir_gpu_jpeg_ops *ops;
    if (find_ops(&ops, &err) < 0)
        snprintf(text, size, "%s", err.text);
    else
        ops->library(text, size);
}

int weir_gpu_jpeg_open(struct weir_gpu_jpeg **out, int gpu, enum weir_gpu_jpeg_engine engine, int batch_max,
                       struct weir_err *err)
{
    *out = NULL;
    assert(batch_max >= 1 && batch_max <= WEIR_GPU_JPEG_BATCH_MAX);
    const struct weir_gpu_jpeg_ops *ops;
    int rc = find_ops(&ops, err);
    if (rc < 0)
        return rc;
    struct weir_gpu_jpeg *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return weir_err_set(err, -ENOMEM, "out of memory");
    decoder->ops = ops;
    decoder->batch_max = batch_max;
    rc = ops->open(&decoder->self, gpu, engine, batch_max, err);
    if (rc < 0) {
        free(decoder);
        return rc;
    }
    *out = decoder;
    return 0;
}

void weir_gpu_jpeg_close(struct weir_gpu_jpeg **decoder)
{
    if (!*decoder)
        return;
    (*decoder)->ops->close((*decoder)->self);
    free(*decoder);
    *decoder = NULL;
}

/* Decodes frames. If the engine rejects the batch, splits it in halves until the rejected frames are alone, so that the
 * other frames are decoded in batches as large as possible. */
static int decode(struct weir_gpu_jpeg *decoder, const struct weir_gpu_jpeg_frame *frames, int n, void *stream,
                  enum weir_jpeg_refusal *results, struct weir_err *err)
{
    int rc = decoder->ops->decode(decoder->self, frames, n, stream, err);
    if (rc == 0) {
        for (int i = 0; i < n; i++)
            results[i] = WEIR_JPEG_TAKEN;
        weir_counter_add(&decoder->frames, (uint64_t)n);
        weir_counter_add(&decoder->batches, 1);
    }
    if (rc != -EBADMSG)
        return rc;
    if (n == 1) {
        results[0] = WEIR_JPEG_ENGINE_REFUSED;
        weir_counter_add(&decoder->refused, 1);
        return 0;
    }
    int half = n / 2;
    rc = decode(decoder, frames, half, stream, results, err);
    return rc < 0 ? rc : decode(decoder, frames + half, n - half, stream, results + half, err);
}

int weir_gpu_jpeg_decode(struct weir_gpu_jpeg *decoder, const struct weir_gpu_jpeg_frame *frames, int n, void *stream,
                         enum weir_jpeg_refusal *results, struct weir_err *err)
{
    assert(n >= 0 && n <= decoder->batch_max);
    return n == 0 ? 0 : decode(decoder, frames, n, stream, results, err);
}

void weir_gpu_jpeg_counts(const struct weir_gpu_jpeg *decoder, struct weir_gpu_jpeg_counts *counts)
{
    counts->frames = atomic_load_explicit(&decoder->frames, memory_order_relaxed);
    counts->batches = atomic_load_explicit(&decoder->batches, memory_order_relaxed);
    counts->refused = atomic_load_explicit(&decoder->refused, memory_order_relaxed);
}

enum weir_jpeg_refusal weir_gpu_jpeg_marks(const uint8_t *bytes, size_t length, const struct weir_frame_rules *rules)
{
    struct weir_frame_marks marks = {0};
    if (rules->swapped || rules->turns)
        weir_frame_marks(&marks, bytes, length);
    return weir_marks_matter(&marks, rules) ? WEIR_JPEG_IS_MARKED : WEIR_JPEG_TAKEN;
}

/* ---- table rows ---- */

static int ready(int gpu, struct weir_err *err)
{
    return weir_gpu_jpeg_check(gpu, WEIR_GPU_JPEG_HARDWARE, NULL, err);
}

const struct weir_decoder_ops weir_decoder_nvjpeg = {
    .name = "nvjpeg",
    .summary = "JPEG on a GPU's JPEG engines with nvJPEG, other frames on the CPU; requires --device cuda",
    .selectable = true,
    .where = WEIR_DECODE_ON_GPU,
    .ready = ready,
};

const struct weir_decoder_ops weir_decoder_hybrid = {
    .name = "hybrid",
    .summary = "JPEG on CPU cores and a GPU's JPEG engines simultaneously; requires --device cuda",
    .selectable = true,
    .where = WEIR_DECODE_ON_BOTH,
    .ready = ready,
};
