#include "decoders/decoder.h"
#include "decoders/decoder_ops.h"
#include "prof/recorder.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct weir_decoder_ops *const engines[] = {&weir_decoder_turbo, &weir_decoder_png, &weir_decoder_raw,
                                                         &weir_decoder_null};
enum { ENGINE_COUNT = sizeof engines / sizeof engines[0] };

struct weir_decoder {
    struct weir_pixel_format format;
    bool null;
    void *turbo, *png; /* contexts of these engines, also for probing */
    uint8_t *band;
    int width_max;
    struct { /* of the frame before: cameras rarely differ */
        int width, height;
        enum weir_codec codec;
        uint32_t id;
    } shapes;
    char reason[WEIR_REASON_MAX];
};

size_t weir_image_bytes(const struct weir_pixel_format *format, int width, int height)
{
    return (size_t)width * (size_t)height * 3 * (format->dtype == WEIR_DTYPE_F32 ? sizeof(float) : 1);
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
    return codec == WEIR_CODEC_RAW16 ||
           (codec == WEIR_CODEC_RAW && is_direct(&decoder->format) && decoder->format.color == WEIR_COLOR_RGB);
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

int weir_decoder_check(const char *engine, struct weir_err *err)
{
    char names[128] = "";
    for (int i = 0; i < ENGINE_COUNT; i++) {
        if (!takes_jpeg(engines[i]))
            continue;
        if (strcmp(engines[i]->name, engine) == 0)
            return 0;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? ", " : "", engines[i]->name);
    }
    return weir_err_set(err, -EINVAL, "no JPEG decoder is named \"%s\"; there are %s", engine, names);
}

int weir_decoder_open(struct weir_decoder **out, const char *engine, const struct weir_pixel_format *format,
                      int width_max, struct weir_err *err)
{
    *out = NULL;
    int rc = weir_decoder_check(engine, err);
    if (rc < 0)
        return rc;
    if (format->dtype == WEIR_DTYPE_U16)
        return weir_err_set(err, -EINVAL, "colour images become u8 or f32; u16 is for depth");
    struct weir_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder)
        return weir_err_set(err, -ENOMEM, "out of memory");
    decoder->format = *format;
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
    free((*decoder)->band);
    free(*decoder);
    *decoder = NULL;
}

void weir_rows_done(struct weir_rows *rows, int y, int n)
{
    if (rows->image)
        return;
    uint64_t start = weir_thread_self ? weir_clock_ticks() : 0;
    weir_convert_rows(rows, y, n);
    if (weir_thread_self)
        rows->convert_ticks += weir_clock_ticks() - start;
}

/* The frame's shape as records carry it. */
static uint32_t shapes_of(struct weir_decoder *decoder, const struct weir_frame *frame)
{
    bool depth = weir_codec_is_depth(frame->codec);
    bool same = decoder->shapes.width == frame->width && decoder->shapes.height == frame->height;
    if (same && decoder->shapes.codec == frame->codec)
        return decoder->shapes.id;
    const char *type = depth ? "unsigned short" : decoder->format.dtype == WEIR_DTYPE_F32 ? "float" : "unsigned char";
    bool planar = !depth && decoder->format.layout == WEIR_LAYOUT_NCHW;
    int64_t size[] = {frame->height, frame->width, 3}, planes[] = {3, frame->height, frame->width};
    decoder->shapes.width = frame->width;
    decoder->shapes.height = frame->height;
    decoder->shapes.codec = frame->codec;
    return decoder->shapes.id = weir_shapes_intern(1, (int[]){depth ? 2 : 3}, planar ? planes : size, &type);
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
    bool depth = weir_codec_is_depth(frame->codec);
    struct weir_rows rows = {
        .color = decoder->format.color,
        .width = frame->width,
        .height = frame->height,
        .stride = (size_t)frame->width * (depth ? sizeof(uint16_t) : 3),
        .image = depth || is_direct(&decoder->format) ? image : NULL,
        .band = decoder->band,
        .target = image,
        .format = &decoder->format,
    };
    void *self = NULL;
    const struct weir_decoder_ops *ops =
        decoder->null ? &weir_decoder_null : engine_for(decoder, frame->codec, frame->bytes, frame->length, &self);
    int rc = ops->decode(self, frame, &rows, decoder->reason);
    if (rows.convert_ticks)
        weir_zone_carve(WEIR_STAGE_TO_TENSOR, rows.convert_ticks);
    return rc;
}

const char *weir_decoder_reason(const struct weir_decoder *decoder)
{
    return decoder->reason;
}

int weir_probe_image(struct weir_decoder *decoder, enum weir_codec codec, const uint8_t *bytes, size_t length,
                     struct weir_image_info *info)
{
    assert(codec == WEIR_CODEC_JPEG || codec == WEIR_CODEC_PNG16);
    void *self;
    const struct weir_decoder_ops *ops = engine_for(decoder, codec, bytes, length, &self);
    *info = (struct weir_image_info){0};
    return ops->probe(self, codec, bytes, length, info, decoder->reason);
}
