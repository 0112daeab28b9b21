#include "decoders/decoder.h"
#include "decoders/convert_priv.h"
#include "decoders/decoder_ops.h"
#include "decoders/gpu/gpu_jpeg.h"
#include "decoders/view_priv.h"
#include "prof/record/recorder.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_decoder_ops *const engines[] = {&weir_decoder_turbo,  &weir_decoder_nvjpeg,
                                                         &weir_decoder_hybrid, &weir_decoder_png,
                                                         &weir_decoder_raw,    &weir_decoder_null};
enum { ENGINE_COUNT = sizeof engines / sizeof engines[0] };

struct weir_decoder {
    struct weir_converter converter;
    bool null;
    void *turbo, *png; /* contexts of these engines, also for probing */
    uint8_t *band;
    uint16_t *depth; /* a whole frame, of which a view is taken; grown when a camera asks for more */
    size_t depth_bytes;
    int width_max;
    struct weir_view_plans plans;
    _Atomic uint64_t frames, stored_pixels, decoded_pixels; /* one writer */
    struct {                                                /* of the frame before: cameras rarely differ */
        int width, height;
        enum weir_codec codec;
        uint32_t id;
    } shapes;
    char reason[WEIR_REASON_MAX];
};

size_t weir_image_bytes(const struct weir_pixel_format *format, int width, int height)
{
    static const size_t bytes[] = {
        [WEIR_DTYPE_U8] = 1, [WEIR_DTYPE_F32] = 4, [WEIR_DTYPE_U16] = 2, [WEIR_DTYPE_F16] = 2, [WEIR_DTYPE_BF16] = 2};
    return (size_t)width * (size_t)height * 3 * bytes[format->dtype];
}

size_t weir_frame_bytes(const struct weir_pixel_format *format, enum weir_codec codec, int width, int height)
{
    if (weir_codec_is_depth(codec))
        return (size_t)width * (size_t)height * sizeof(uint16_t);
    return weir_image_bytes(format, width, height);
}

int weir_codec_from_name(const char *name)
{
    static const char *const names[] = {
        [WEIR_CODEC_RAW] = "raw",
        [WEIR_CODEC_JPEG] = "jpeg",
        [WEIR_CODEC_RAW16] = "raw16",
        [WEIR_CODEC_PNG16] = "png16",
    };
    for (int i = 0; i < WEIR_CODEC_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -EINVAL;
}

bool weir_codec_is_depth(enum weir_codec codec)
{
    return codec == WEIR_CODEC_RAW16 || codec == WEIR_CODEC_PNG16;
}

bool weir_decoder_row(int i, const char **name, const char **summary, const char **why_not)
{
    if (i < 0 || i >= ENGINE_COUNT)
        return false;
    *name = engines[i]->name;
    *summary = engines[i]->summary;
    *why_not = engines[i]->why_not;
    return true;
}

void weir_decoder_library(char *text, size_t size)
{
    weir_turbo_library(text, size);
    size_t length = strlen(text);
    snprintf(text + length, size - length, "; rows converted by %s", weir_convert_name());
}

/* u8 interleaved is what engines produce: no conversion. */
static bool is_direct(const struct weir_pixel_format *format)
{
    return format->dtype == WEIR_DTYPE_U8 && format->layout == WEIR_LAYOUT_NHWC;
}

bool weir_decoder_is_direct(const struct weir_decoder *decoder, enum weir_codec codec)
{
    if (decoder->null)
        return false;
    return codec == WEIR_CODEC_RAW16 || (codec == WEIR_CODEC_RAW && is_direct(&decoder->converter.format) &&
                                         decoder->converter.format.color == WEIR_COLOR_RGB);
}

/* Rows that take JPEGs. PNGs and raw frames are left to "png" and "raw" whatever was asked for, except by "null". */
static bool takes_jpeg(const struct weir_decoder_ops *ops)
{
    return ops != &weir_decoder_raw && ops != &weir_decoder_png;
}

/* The engine for a frame, and its context. */
static const struct weir_decoder_ops *engine_for(const struct weir_decoder *decoder, enum weir_codec codec,
                                                 const uint8_t *bytes, size_t length, void **self)
{
    *self = NULL;
    if (codec == WEIR_CODEC_RAW || codec == WEIR_CODEC_RAW16)
        return &weir_decoder_raw;
    bool png = codec == WEIR_CODEC_PNG16 || weir_png_begins(bytes, length);
    *self = png ? decoder->png : decoder->turbo;
    return png ? &weir_decoder_png : &weir_decoder_turbo;
}

enum { NAMES = 128 };

/* False: names has those there are. */
static bool is_named(const char *engine, char names[NAMES])
{
    names[0] = '\0';
    for (int i = 0; i < ENGINE_COUNT; i++) {
        if (!takes_jpeg(engines[i]))
            continue;
        if (strcmp(engines[i]->name, engine) == 0)
            return true;
        snprintf(names + strlen(names), NAMES - strlen(names), "%s%s", names[0] ? ", " : "", engines[i]->name);
    }
    return false;
}

int weir_decoder_check(const char *engine, struct weir_err *err)
{
    char names[NAMES];
    if (is_named(engine, names))
        return 0;
    return weir_err_set(err, -EINVAL, "no JPEG decoder is named \"%.100s\"; there are %s", engine, names);
}

bool weir_decoder_on_gpu(const char *engine)
{
    return strcmp(engine, weir_decoder_nvjpeg.name) == 0 || strcmp(engine, weir_decoder_hybrid.name) == 0;
}

int weir_decoder_check_device(const char *engine, bool gpu, struct weir_err *err)
{
    char names[NAMES];
    if (strcmp(engine, "auto") != 0 && !is_named(engine, names))
        return weir_err_set(err, -EINVAL, "--decoder: no JPEG decoder is named \"%.100s\"; there are auto, %s", engine,
                            names);
    if (gpu || !weir_decoder_on_gpu(engine))
        return 0;
    return weir_err_set(err, -EINVAL,
                        "--decoder %s leaves its pictures in a GPU's memory: add --device cuda, or take "
                        "--decoder turbo",
                        engine);
}

int weir_decoder_ready(const char *engine, int gpu, struct weir_err *err)
{
    int rc = weir_decoder_check(engine, NULL); /* png and raw are not for asking, and always there */
    return rc == 0 && weir_decoder_on_gpu(engine) ? weir_gpu_jpeg_check(gpu, WEIR_GPU_JPEG_HARDWARE, NULL, err) : 0;
}

int weir_decoder_open(struct weir_decoder **out, const char *engine, const struct weir_pixel_format *format,
                      int width_max, struct weir_err *err)
{
    *out = NULL;
    int rc = weir_decoder_check(engine, err);
    if (rc < 0)
        return rc;
    if (format->dtype != WEIR_DTYPE_U8 && format->dtype != WEIR_DTYPE_F32)
        return weir_err_set(err, -EINVAL, "colour images become u8 or f32; u16 is for depth, f16 and bf16 want a GPU");
    struct weir_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return weir_err_set(err, -ENOMEM, "out of memory");
    weir_converter_init(&decoder->converter, format, NULL);
    decoder->width_max = width_max;
    decoder->null = strcmp(engine, "null") == 0;
    decoder->band = malloc((size_t)width_max * 3 * WEIR_BAND_ROWS);
    if (!decoder->band || weir_decoder_turbo.open(&decoder->turbo) < 0 || weir_decoder_png.open(&decoder->png) < 0) {
        weir_decoder_close(&decoder);
        return weir_err_set(err, -ENOMEM, "out of memory");
    }
    *out = decoder;
    return 0;
}

void weir_decoder_close(struct weir_decoder **decoder)
{
    if (!*decoder)
        return;
    if ((*decoder)->turbo)
        weir_decoder_turbo.close((*decoder)->turbo);
    if ((*decoder)->png)
        weir_decoder_png.close((*decoder)->png);
    weir_view_plans_close(&(*decoder)->plans);
    free((*decoder)->band);
    free((*decoder)->depth);
    free(*decoder);
    *decoder = NULL;
}

/* Rows that a view makes of these, as they become complete. */
static void resample(struct weir_rows *rows, const uint8_t *band, int y, int n)
{
    for (int i = 0; i < n; i++) {
        int row;
        const uint8_t *pixels;
        weir_resampler_put(rows->resampler, y + i, band + (size_t)i * rows->stride);
        while ((pixels = weir_resampler_row(rows->resampler, y + i, &row)))
            weir_convert_rows(rows->converter, pixels, 0, row, 1, rows->out_width, rows->out_height, rows->target);
    }
}

void weir_rows_done(struct weir_rows *rows, int y, int n)
{
    if (rows->image)
        return;
    uint64_t start = weir_thread_self ? weir_clock_ticks() : 0;
    const uint8_t *band = rows->band + (size_t)(rows->wanted_column - rows->first_column) * 3;
    if (rows->resampler)
        resample(rows, band, y, n);
    else
        weir_convert_rows(rows->converter, band, rows->stride, y - rows->first_row, n, rows->out_width,
                          rows->out_height, rows->target);
    if (weir_thread_self)
        rows->convert_ticks += weir_clock_ticks() - start;
}

/* The frame's shape as records carry it. */
static uint32_t shapes_of(struct weir_decoder *decoder, const struct weir_frame *frame)
{
    bool depth = weir_codec_is_depth(frame->codec);
    int width = frame->view ? frame->view->out_width : frame->width;
    int height = frame->view ? frame->view->out_height : frame->height;
    bool same = decoder->shapes.width == width && decoder->shapes.height == height;
    if (same && decoder->shapes.codec == frame->codec)
        return decoder->shapes.id;
    const char *type = depth                                               ? "unsigned short"
                       : decoder->converter.format.dtype == WEIR_DTYPE_F32 ? "float"
                                                                           : "unsigned char";
    bool planar = !depth && decoder->converter.format.layout == WEIR_LAYOUT_NCHW;
    int64_t size[] = {height, width, 3}, planes[] = {3, height, width};
    decoder->shapes.width = width;
    decoder->shapes.height = height;
    decoder->shapes.codec = frame->codec;
    return decoder->shapes.id = weir_shapes_intern(1, (int[]){depth ? 2 : 3}, planar ? planes : size, &type);
}

static int out_of_memory(struct weir_decoder *decoder)
{
    snprintf(decoder->reason, sizeof decoder->reason, "out of memory");
    return -ENOMEM;
}

/* The rows of a colour frame, or of a whole depth frame. */
static struct weir_rows whole(const struct weir_decoder *decoder, const struct weir_frame *frame, void *image)
{
    bool depth = weir_codec_is_depth(frame->codec), direct = is_direct(&decoder->converter.format);
    return (struct weir_rows){
        .color = decoder->converter.format.color,
        .width = frame->width,
        .height = frame->height,
        .scale = 8,
        .end_row = frame->height,
        .end_column = frame->width,
        .stride = (size_t)frame->width * (depth ? sizeof(uint16_t) : 3),
        .image = depth || (direct && !frame->view) ? image : NULL,
        .band = decoder->band,
        .target = image,
        .out_width = frame->width,
        .out_height = frame->height,
        .converter = &decoder->converter,
    };
}

static void take_view(struct weir_rows *rows, struct weir_view_plan *plan)
{
    rows->width = plan->width;
    rows->height = plan->height;
    rows->scale = plan->scale;
    rows->first_row = plan->first_row;
    rows->end_row = plan->end_row;
    rows->first_column = rows->wanted_column = plan->first_column;
    rows->end_column = plan->end_column;
    rows->out_width = plan->view.out_width;
    rows->out_height = plan->view.out_height;
    rows->resampler = plan->resamples ? &plan->resampler : NULL;
}

static void count(struct weir_decoder *decoder, const struct weir_frame *frame, const struct weir_rows *rows)
{
    uint64_t stored = (uint64_t)frame->width * (uint64_t)frame->height;
    uint64_t decoded = (uint64_t)(rows->end_row - rows->first_row) * (uint64_t)(rows->end_column - rows->first_column);
    atomic_store_explicit(&decoder->frames, decoder->frames + 1, memory_order_relaxed);
    atomic_store_explicit(&decoder->stored_pixels, decoder->stored_pixels + stored, memory_order_relaxed);
    atomic_store_explicit(&decoder->decoded_pixels, decoder->decoded_pixels + decoded, memory_order_relaxed);
}

void weir_decoder_counts(const struct weir_decoder *decoder, struct weir_decoder_counts *counts)
{
    counts->frames = atomic_load_explicit(&decoder->frames, memory_order_relaxed);
    counts->stored_pixels = atomic_load_explicit(&decoder->stored_pixels, memory_order_relaxed);
    counts->decoded_pixels = atomic_load_explicit(&decoder->decoded_pixels, memory_order_relaxed);
}

static int decode_rows(struct weir_decoder *decoder, const struct weir_frame *frame, struct weir_rows *rows)
{
    void *self = NULL;
    const struct weir_decoder_ops *ops =
        decoder->null ? &weir_decoder_null : engine_for(decoder, frame->codec, frame->bytes, frame->length, &self);
    int rc = ops->decode(self, frame, rows, decoder->reason);
    if (rows->convert_ticks)
        weir_zone_carve(WEIR_STAGE_TO_TENSOR, rows->convert_ticks);
    if (rc == 0 && !decoder->null)
        count(decoder, frame, rows);
    return rc;
}

static int decode_color(struct weir_decoder *decoder, const struct weir_frame *frame, void *image)
{
    struct weir_rows rows = whole(decoder, frame, image);
    if (frame->view) {
        void *self;
        bool turbo = engine_for(decoder, frame->codec, frame->bytes, frame->length, &self) == &weir_decoder_turbo;
        struct weir_view_plan *plan = weir_view_plan(&decoder->plans, frame, turbo);
        if (!plan)
            return out_of_memory(decoder);
        take_view(&rows, plan);
    }
    int rc = decode_rows(decoder, frame, &rows);
    weir_convert_finish(&decoder->converter);
    return rc;
}

static int decode_depth(struct weir_decoder *decoder, const struct weir_frame *frame, void *image)
{
    size_t bytes = (size_t)frame->width * (size_t)frame->height * sizeof *decoder->depth;
    if (frame->view && bytes > decoder->depth_bytes) {
        uint16_t *more = realloc(decoder->depth, bytes);
        if (!more)
            return out_of_memory(decoder);
        decoder->depth = more;
        decoder->depth_bytes = bytes;
    }
    struct weir_rows rows = whole(decoder, frame, frame->view ? decoder->depth : image);
    int rc = decode_rows(decoder, frame, &rows);
    if (rc == 0 && frame->view && !decoder->null)
        weir_view_nearest(frame, decoder->depth, image);
    return rc;
}

int weir_decode(struct weir_decoder *decoder, const struct weir_frame *frame, void *image)
{
    WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
    if (weir_recording() & WEIR_RECORDING_SHAPES)
        weir_zone_shapes(shapes_of(decoder, frame));
    decoder->reason[0] = '\0';
    if (frame->width > decoder->width_max) {
        snprintf(decoder->reason, sizeof decoder->reason, "wider than the %d pixels planned for", decoder->width_max);
        return -EBADMSG;
    }
    return weir_codec_is_depth(frame->codec) ? decode_depth(decoder, frame, image)
                                             : decode_color(decoder, frame, image);
}

const char *weir_decoder_reason(const struct weir_decoder *decoder)
{
    return decoder->reason;
}

int weir_probe_refuses(const struct weir_image_info *info, size_t length, char *reason)
{
    snprintf(reason, WEIR_REASON_MAX, "its header claims %dx%d pixels, more than its %zu bytes can hold", info->width,
             info->height, length);
    return -EBADMSG;
}

int weir_probe_image(struct weir_decoder *decoder, enum weir_codec codec, const uint8_t *bytes, size_t length,
                     struct weir_image_info *info)
{
    assert(codec == WEIR_CODEC_JPEG || codec == WEIR_CODEC_PNG16);
    void *self;
    const struct weir_decoder_ops *ops = engine_for(decoder, codec, bytes, length, &self);
    *info = (struct weir_image_info){0};
    int rc = ops->probe(self, codec, bytes, length, info, decoder->reason);
    uint64_t bytes_out = (uint64_t)info->width * (uint64_t)info->height * (weir_codec_is_depth(codec) ? 2 : 3);
    if (rc < 0 || bytes_out <= INT32_MAX)
        return rc;
    snprintf(decoder->reason, sizeof decoder->reason, "its header claims %dx%d pixels, a picture of over 2 GiB",
             info->width, info->height);
    return -EBADMSG;
}
