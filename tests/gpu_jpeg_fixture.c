#include "tests/gpu_jpeg_fixture.h"
#include "prof/cuda_module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PITCH_STEP = 64 };

int gpujx_open(struct gpujx *x, struct weir_err *err)
{
    const struct weir_cuda_module *module;
    *x = (struct gpujx){0};
    int rc = weir_cuda_module_open(&module, err);
    if (rc < 0)
        return rc;
    x->ops = module->gpu;
    if (!x->ops)
        return weir_err_set(err, -ENODEV, "the module has no GPU");
    rc = x->ops->open(&x->gpu, 0, err);
    if (rc == 0)
        rc = x->ops->stream_new(x->gpu, false, &x->stream, err);
    if (rc == 0)
        rc = x->ops->event_new(x->gpu, false, &x->event, err);
    if (rc < 0)
        gpujx_close(x);
    return rc;
}

void gpujx_close(struct gpujx *x)
{
    if (x->event)
        x->ops->event_free(x->gpu, x->event);
    if (x->stream)
        x->ops->stream_free(x->gpu, x->stream);
    if (x->gpu)
        x->ops->close(&x->gpu);
    *x = (struct gpujx){0};
}

int gpujx_take(struct gpujx *x, struct gpujx_image *image, const uint8_t *bytes, size_t length,
               enum weir_gpu_jpeg_engine engine, struct weir_err *err)
{
    *image = (struct gpujx_image){.bytes = bytes, .length = length};
    image->refusal = weir_gpu_jpeg_look(bytes, length, engine, &image->header, &image->frame);
    if (image->refusal != WEIR_JPEG_TAKEN)
        image->frame.length = length; /* for who hands it over all the same */
    size_t offsets[3], bytes_all = 0;
    int planes = image->header.components ? weir_gpu_jpeg_planes(&image->header) : 0;
    for (int c = 0; c < planes; c++) {
        weir_gpu_jpeg_plane(&image->header, c, &image->width[c], &image->height[c]);
        image->frame.pitch[c] = ((size_t)image->width[c] + PITCH_STEP - 1) / PITCH_STEP * PITCH_STEP;
        offsets[c] = bytes_all;
        bytes_all += image->frame.pitch[c] * (size_t)image->height[c];
    }
    int rc = planes ? x->ops->alloc(x->gpu, bytes_all, &image->memory, err) : 0;
    for (int c = 0; c < planes && rc == 0; c++) {
        image->frame.plane[c] = (uint8_t *)image->memory + offsets[c];
        image->plane[c] = malloc((size_t)image->width[c] * (size_t)image->height[c]);
    }
    return rc;
}

void gpujx_release(struct gpujx *x, struct gpujx_image *image)
{
    for (int c = 0; c < 3; c++)
        free(image->plane[c]);
    if (image->memory)
        x->ops->free(x->gpu, image->memory);
    *image = (struct gpujx_image){0};
}

static int wait_for_all(struct gpujx *x, struct weir_err *err)
{
    int rc = x->ops->record(x->gpu, x->event, x->stream, err);
    return rc < 0 ? rc : x->ops->wait(x->gpu, x->event, err);
}

/* A plane with the padding of its rows, then without. */
static int fetch_plane(struct gpujx *x, struct gpujx_image *image, int c, struct weir_err *err)
{
    size_t pitch = image->frame.pitch[c], width = (size_t)image->width[c], height = (size_t)image->height[c];
    uint8_t *padded = malloc(pitch * height);
    int rc = x->ops->copy_out(x->gpu, padded, image->frame.plane[c], pitch * height, x->stream, err);
    rc = rc < 0 ? rc : wait_for_all(x, err);
    for (size_t y = 0; y < height && rc == 0; y++)
        memcpy(image->plane[c] + y * width, padded + y * pitch, width);
    free(padded);
    return rc;
}

int gpujx_decode(struct gpujx *x, struct weir_gpu_jpeg *decoder, struct gpujx_image *images, int n,
                 enum weir_jpeg_refusal *results, struct weir_err *err)
{
    struct weir_gpu_jpeg_frame *frames = calloc((size_t)n, sizeof *frames);
    for (int i = 0; i < n; i++)
        frames[i] = images[i].frame;
    int rc = weir_gpu_jpeg_decode(decoder, frames, n, x->stream, results, err);
    rc = rc < 0 ? rc : wait_for_all(x, err);
    for (int i = 0; i < n && rc == 0; i++)
        for (int c = 0; c < 3 && images[i].plane[c] && rc == 0 && results[i] == WEIR_JPEG_TAKEN; c++)
            rc = fetch_plane(x, &images[i], c, err);
    free(frames);
    return rc;
}

uint32_t gpujx_kind(const struct weir_jpeg_header *header)
{
    static const uint32_t kinds[] = {
        [WEIR_JPEG_GRAY] = WEIR_GPU_GRAY,  [WEIR_JPEG_444] = WEIR_GPU_YUV444, [WEIR_JPEG_422] = WEIR_GPU_YUV422,
        [WEIR_JPEG_420] = WEIR_GPU_YUV420, [WEIR_JPEG_440] = WEIR_GPU_YUV440,
    };
    return kinds[header->sampling];
}

int gpujx_rgb(struct gpujx *x, const struct gpujx_image *image, uint8_t **rgb, struct weir_err *err)
{
    size_t bytes = (size_t)image->header.width * (size_t)image->header.height * 3;
    struct weir_gpu_source source = {.kind = gpujx_kind(&image->header)};
    for (int c = 0; c < 3; c++) {
        source.plane[c] = image->frame.plane[c];
        source.pitch[c] = (uint32_t)image->frame.pitch[c];
    }
    void *sources = NULL, *tensor = NULL;
    *rgb = malloc(bytes);
    int rc = x->ops->alloc(x->gpu, sizeof source, &sources, err);
    rc = rc < 0 ? rc : x->ops->alloc(x->gpu, bytes, &tensor, err);
    rc = rc < 0 ? rc : x->ops->copy_in(x->gpu, sources, &source, sizeof source, x->stream, err);
    struct weir_gpu_prepare prepare = {.sources = sources,
                                       .n = 1,
                                       .width = image->header.width,
                                       .height = image->header.height,
                                       .out_width = image->header.width,
                                       .out_height = image->header.height,
                                       .dtype = WEIR_GPU_U8,
                                       .tensor = tensor};
    rc = rc < 0 ? rc : x->ops->prepare(x->gpu, &prepare, x->stream, err);
    rc = rc < 0 ? rc : x->ops->copy_out(x->gpu, *rgb, tensor, bytes, x->stream, err);
    rc = rc < 0 ? rc : wait_for_all(x, err);
    if (sources)
        x->ops->free(x->gpu, sources);
    if (tensor)
        x->ops->free(x->gpu, tensor);
    return rc;
}
