#include "weir/decoder.h"
#include "base/threads.h"
#include "decoders/convert_priv.h"
#include "decoders/decoder_ops.h"
#include "decoders/view_priv.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t weir_image_bytes(const struct weir_pixel_format *format, int width, int height)
{
    static const size_t bytes[] = {
        [WEIR_DTYPE_U8] = 1, [WEIR_DTYPE_F32] = 4, [WEIR_DTYPE_U16] = 2, [WEIR_DTYPE_F16] = 2, [WEIR_DTYPE_BF16] = 2};
    return (size_t)width * (size_t)height * 3 * bytes[format->dtype];
}

size_t weir_frame_bytes(const struct weir_pixel_format *format, enum weir_frame_kind kind, int width, int height)
{
    if (weir_frame_is_depth(kind))
        return (size_t)width * (size_t)height * sizeof(uint16_t);
    return weir_image_bytes(format, width, height);
}

struct weir_decoder {
    struct weir_converter converter;
    int preferred; /* table row of the requested decoder, or -1 */
    uint8_t *band;
    uint16_t *depth; /* a whole depth frame, from which a view is copied; grows on demand */
    size_t depth_bytes;
    int width_max;
    struct weir_view_plans plans;
    enum weir_on_warning on_warning;
    struct weir_frame_rules rules;
    struct weir_whole_image unturned;                                      /* the image before turning */
    _Atomic uint64_t frames, stored_pixels, decoded_pixels, warned_frames; /* written only by the decoder's thread */
    struct { /* shape of the previous frame, cached because most frames have the same shape */
        int width, height;
        enum weir_frame_kind kind;
        uint32_t id;
    } shapes;
    char reason[WEIR_REASON_MAX];
    void *contexts[]; /* one per table row; NULL for codecs without a context */
};

/* Whether codecs can write the image directly, because their interleaved u8 output needs no conversion. */
static bool is_direct(const struct weir_pixel_format *format)
{
    return format->dtype == WEIR_DTYPE_U8 && format->layout == WEIR_LAYOUT_NHWC;
}

/* Returns the table row for a frame. */
static int row_of(const struct weir_decoder *decoder, const struct weir_frame *frame)
{
    return weir_decoder_row_for(decoder->preferred, frame->kind, frame->bytes, frame->length);
}

bool weir_decoder_has_pixels(const struct weir_decoder *decoder)
{
    return decoder->preferred < 0 || !weir_decoder_ops_at(decoder->preferred)->no_pixels;
}

bool weir_decoder_is_direct(const struct weir_decoder *decoder, enum weir_frame_kind kind)
{
    if (!weir_decoder_ops_at(row_of(decoder, &(struct weir_frame){.kind = kind}))->as_stored || decoder->rules.turn > 1)
        return false;
    return weir_frame_is_depth(kind) ||
           (is_direct(&decoder->converter.format) && decoder->converter.format.color == WEIR_COLOR_RGB);
}

static int open_contexts(struct weir_decoder *decoder)
{
    const struct weir_decoder_ops *ops;
    int rc = 0;
    for (int row = 0; rc == 0 && (ops = weir_decoder_ops_at(row)); row++)
        rc = ops->open ? ops->open(&decoder->contexts[row]) : 0;
    return rc;
}

int weir_decoder_open(struct weir_decoder **out, const char *engine, const struct weir_pixel_format *format,
                      int width_max, struct weir_err *err)
{
    *out = NULL;
    int rc = weir_decoder_check(engine, err);
    if (rc < 0)
        return rc;
    if (format->dtype != WEIR_DTYPE_U8 && format->dtype != WEIR_DTYPE_F32)
        return weir_err_set(
            err, -EINVAL,
            "colour images are decoded to u8 or f32; u16 is only for depth, and f16 and bf16 require a GPU");
    size_t rows = 0;
    while (weir_decoder_ops_at((int)rows))
        rows++;
    struct weir_decoder *decoder = calloc(1, sizeof *decoder + rows * sizeof decoder->contexts[0]);
    if (!decoder)
        return weir_err_set(err, -ENOMEM, "out of memory");
    weir_converter_init(&decoder->converter, format, NULL);
    decoder->width_max = width_max;
    decoder->preferred = weir_decoder_find(engine);
    decoder->band = malloc((size_t)width_max * 3 * WEIR_BAND_ROWS);
    if (!decoder->band || open_contexts(decoder) < 0) {
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
    const struct weir_decoder_ops *ops;
    for (int row = 0; (ops = weir_decoder_ops_at(row)); row++)
        if ((*decoder)->contexts[row])
            ops->close((*decoder)->contexts[row]);
    weir_view_plans_close(&(*decoder)->plans);
    free((*decoder)->band);
    free((*decoder)->depth);
    free((*decoder)->unturned.pixels);
    free(*decoder);
    *decoder = NULL;
}

void weir_decoder_set_resize(struct weir_decoder *decoder, enum weir_resize resize)
{
    decoder->plans.resize = resize;
}

void weir_decoder_set_on_warning(struct weir_decoder *decoder, enum weir_on_warning on_warning)
{
    decoder->on_warning = on_warning;
}

void weir_decoder_set_rules(struct weir_decoder *decoder, const struct weir_frame_rules *rules)
{
    decoder->rules = *rules;
}

/* Returns the id of the frame's shape for trace records. */
static uint32_t shapes_of(struct weir_decoder *decoder, const struct weir_frame *frame)
{
    bool depth = weir_frame_is_depth(frame->kind);
    int width = frame->view ? frame->view->out_width : frame->width;
    int height = frame->view ? frame->view->out_height : frame->height;
    bool same = decoder->shapes.width == width && decoder->shapes.height == height;
    if (same && decoder->shapes.kind == frame->kind)
        return decoder->shapes.id;
    const char *type = depth                                               ? "unsigned short"
                       : decoder->converter.format.dtype == WEIR_DTYPE_F32 ? "float"
                                                                           : "unsigned char";
    bool planar = !depth && decoder->converter.format.layout == WEIR_LAYOUT_NCHW;
    int64_t size[] = {height, width, 3}, planes[] = {3, height, width};
    decoder->shapes.width = width;
    decoder->shapes.height = height;
    decoder->shapes.kind = frame->kind;
    return decoder->shapes.id = weir_shapes_intern(1, (int[]){depth ? 2 : 3}, planar ? planes : size, &type);
}

static int out_of_memory(struct weir_decoder *decoder)
{
    snprintf(decoder->reason, sizeof decoder->reason, "out of memory");
    return -ENOMEM;
}

/* Returns the rows of a whole frame. true_rgb: the channel order is the opposite of the decoder's format, because that
 * is for frames whose red and blue are swapped. A view of a colour frame narrows them later (take_view). */
static struct weir_rows whole(const struct weir_decoder *decoder, const struct weir_frame *frame, bool true_rgb,
                              void *image)
{
    enum weir_color color = decoder->converter.format.color;
    bool depth = weir_frame_is_depth(frame->kind), direct = is_direct(&decoder->converter.format);
    bool planes = !depth && decoder->converter.format.layout == WEIR_LAYOUT_NCHW;
    bool f32 = decoder->converter.format.dtype == WEIR_DTYPE_F32;
    return (struct weir_rows){
        .color = !true_rgb                 ? color
                 : color == WEIR_COLOR_RGB ? WEIR_COLOR_BGR
                                           : WEIR_COLOR_RGB,
        .width = frame->width,
        .height = frame->height,
        .scale = 8,
        .end_row = frame->height,
        .end_column = frame->width,
        .stride = (size_t)frame->width * (depth ? sizeof(uint16_t) : 3),
        .image = depth || (direct && !frame->view) ? image : NULL,
        .band = decoder->band,
        .takes_planes = planes,
        .planes_f32 = planes && f32 ? image : NULL,
        .warnings_fail = decoder->on_warning == WEIR_ON_WARNING_FAIL,
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
    rows->takes_planes = rows->takes_planes && !rows->resampler;
    rows->planes_f32 = NULL;
}

static void count(struct weir_decoder *decoder, const struct weir_frame *frame, const struct weir_rows *rows)
{
    uint64_t stored = (uint64_t)frame->width * (uint64_t)frame->height;
    uint64_t decoded = (uint64_t)(rows->end_row - rows->first_row) * (uint64_t)(rows->end_column - rows->first_column);
    weir_counter_add(&decoder->frames, 1);
    weir_counter_add(&decoder->stored_pixels, stored);
    weir_counter_add(&decoder->decoded_pixels, decoded);
    if (rows->warned)
        weir_counter_add(&decoder->warned_frames, 1);
}

void weir_decoder_counts(const struct weir_decoder *decoder, struct weir_decoder_counts *counts)
{
    counts->frames = atomic_load_explicit(&decoder->frames, memory_order_relaxed);
    counts->stored_pixels = atomic_load_explicit(&decoder->stored_pixels, memory_order_relaxed);
    counts->decoded_pixels = atomic_load_explicit(&decoder->decoded_pixels, memory_order_relaxed);
    counts->warned_frames = atomic_load_explicit(&decoder->warned_frames, memory_order_relaxed);
}

/* Sets the reason why the codec is not available. Returns -EBADMSG. */
static int not_built(struct weir_decoder *decoder, const struct weir_decoder_ops *ops)
{
    snprintf(decoder->reason, sizeof decoder->reason,
             "a %s image, but this weir was %s; install that library and rebuild Weir",
             weir_frame_kind_title((enum weir_frame_kind)__builtin_ctz(ops->kinds)), ops->why_not);
    return -EBADMSG;
}

static int decode_rows(struct weir_decoder *decoder, int row, const struct weir_frame *frame, struct weir_rows *rows)
{
    const struct weir_decoder_ops *ops = weir_decoder_ops_at(row);
    int rc = ops->decode ? ops->decode(decoder->contexts[row], frame, rows, decoder->reason) : not_built(decoder, ops);
    if (rows->convert_ticks)
        weir_zone_carve(WEIR_STAGE_TO_TENSOR, rows->convert_ticks);
    if (rc == 0 && !ops->no_pixels)
        count(decoder, frame, rows);
    return rc;
}

static int decode_color(struct weir_decoder *decoder, const struct weir_frame *frame, bool true_rgb, void *image)
{
    struct weir_rows rows = whole(decoder, frame, true_rgb, image);
    int row = row_of(decoder, frame);
    if (frame->view) {
        struct weir_view_plan *plan = weir_view_plan(&decoder->plans, frame, weir_decoder_ops_at(row)->scales);
        if (!plan)
            return out_of_memory(decoder);
        take_view(&rows, plan);
    }
    int rc = decode_rows(decoder, row, frame, &rows);
    weir_convert_finish(&decoder->converter);
    return rc;
}

static int decode_depth(struct weir_decoder *decoder, const struct weir_frame *frame, void *image)
{
    int row = row_of(decoder, frame);
    size_t bytes = (size_t)frame->width * (size_t)frame->height * sizeof *decoder->depth;
    if (frame->view && bytes > decoder->depth_bytes) {
        uint16_t *more = realloc(decoder->depth, bytes);
        if (!more)
            return out_of_memory(decoder);
        decoder->depth = more;
        decoder->depth_bytes = bytes;
    }
    struct weir_rows rows = whole(decoder, frame, false, frame->view ? decoder->depth : image);
    int rc = decode_rows(decoder, row, frame, &rows);
    if (rc == 0 && frame->view && !weir_decoder_ops_at(row)->no_pixels)
        weir_view_nearest(frame, decoder->depth, image);
    return rc;
}

static int decode_stored(struct weir_decoder *decoder, const struct weir_frame *frame, bool true_rgb, void *image)
{
    if (frame->width > decoder->width_max) {
        snprintf(decoder->reason, sizeof decoder->reason, "the image is wider than the maximum of %d pixels",
                 decoder->width_max);
        return -EBADMSG;
    }
    return weir_frame_is_depth(frame->kind) ? decode_depth(decoder, frame, image)
                                            : decode_color(decoder, frame, true_rgb, image);
}

/* Makes room for rows of turned images, which are as wide as the image is high. */
static int widen(struct weir_decoder *decoder, int width)
{
    if (width <= decoder->width_max)
        return 0;
    uint8_t *band = realloc(decoder->band, (size_t)width * 3 * WEIR_BAND_ROWS);
    if (!band)
        return out_of_memory(decoder);
    decoder->band = band;
    decoder->width_max = width;
    return 0;
}

static int decode_turned(struct weir_decoder *decoder, const struct weir_frame *frame, int turn, bool true_rgb,
                         void *image)
{
    const struct weir_pixel_format *format = &decoder->converter.format;
    struct weir_frame stored = *frame;
    struct weir_view view = frame->view ? *frame->view : (struct weir_view){0};
    int width = frame->view ? view.out_width : frame->width, height = frame->view ? view.out_height : frame->height;
    if (frame->view) {
        view = weir_turn_view(turn, frame->view, frame->width, frame->height);
        stored.view = &view;
    }
    if (weir_turn_transposes(turn)) {
        stored.width = frame->height;
        stored.height = frame->width;
    }
    size_t pixels = (size_t)width * (size_t)height, bytes = weir_frame_bytes(format, frame->kind, width, height);
    int rc = widen(decoder, stored.width);
    if (rc == 0)
        rc = weir_whole_image_grow(&decoder->unturned, bytes, decoder->reason);
    if (rc == 0)
        rc = decode_stored(decoder, &stored, true_rgb, decoder->unturned.pixels);
    if (rc < 0 || pixels == 0)
        return rc;
    bool planar = !weir_frame_is_depth(frame->kind) && format->layout == WEIR_LAYOUT_NCHW;
    size_t planes = planar ? 3 : 1, plane_bytes = bytes / planes;
    for (size_t i = 0; i < planes; i++)
        weir_turn_pixels(turn, decoder->unturned.pixels + i * plane_bytes, (uint8_t *)image + i * plane_bytes, width,
                         height, plane_bytes / pixels);
    return 0;
}

/* Whether marks of frames of this kind are obeyed: depth is read as stored, as by OpenCV. */
static bool has_marks(enum weir_frame_kind kind)
{
    return weir_frame_is_encoded(kind) && !weir_frame_is_video(kind) && !weir_frame_is_depth(kind);
}

/* Reads the marks that matter for the decoder's rules. */
static struct weir_frame_marks marks_of(const struct weir_decoder *decoder, enum weir_frame_kind kind,
                                        const uint8_t *bytes, size_t length)
{
    struct weir_frame_marks marks = {0};
    if ((decoder->rules.swapped || decoder->rules.turns) && has_marks(kind))
        weir_frame_marks(&marks, bytes, length);
    marks.true_rgb = marks.true_rgb && decoder->rules.swapped;
    marks.turn = decoder->rules.turn ? decoder->rules.turn : decoder->rules.turns ? marks.turn : 0;
    return marks;
}

int weir_decode(struct weir_decoder *decoder, const struct weir_frame *frame, void *image)
{
    WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
    if (weir_recording() & WEIR_RECORDING_SHAPES)
        weir_zone_shapes(shapes_of(decoder, frame));
    decoder->reason[0] = '\0';
    struct weir_frame_marks marks = marks_of(decoder, frame->kind, frame->bytes, frame->length);
    return marks.turn > 1 && weir_decoder_has_pixels(decoder)
               ? decode_turned(decoder, frame, marks.turn, marks.true_rgb, image)
               : decode_stored(decoder, frame, marks.true_rgb, image);
}

const char *weir_decoder_reason(const struct weir_decoder *decoder)
{
    return decoder->reason;
}

int weir_probe_fits(struct weir_decoder *decoder, const struct weir_image_info *info, int width, int height)
{
    return weir_check_frame_size(&(struct weir_frame){.width = width, .height = height}, (unsigned)info->width,
                                 (unsigned)info->height, decoder->reason);
}

int weir_probe_image(struct weir_decoder *decoder, enum weir_frame_kind kind, const uint8_t *bytes, size_t length,
                     struct weir_image_info *info)
{
    *info = (struct weir_image_info){0};
    if (!weir_frame_is_encoded(kind)) {
        snprintf(decoder->reason, sizeof decoder->reason, "a raw frame has no header");
        return -EINVAL;
    }
    int row = weir_decoder_row_for(-1, kind, bytes, length);
    const struct weir_decoder_ops *ops = weir_decoder_ops_at(row);
    int rc = ops->probe ? ops->probe(decoder->contexts[row], kind, bytes, length, info, decoder->reason)
                        : not_built(decoder, ops);
    struct weir_frame_marks marks = {0};
    if (has_marks(kind))
        weir_frame_marks(&marks, bytes, length);
    info->turn = marks.turn;
    if (weir_turn_transposes(marks_of(decoder, kind, bytes, length).turn)) {
        int width = info->width;
        info->width = info->height;
        info->height = width;
    }
    uint64_t bytes_out = (uint64_t)info->width * (uint64_t)info->height * (weir_frame_is_depth(kind) ? 2 : 3);
    if (rc < 0 || bytes_out <= INT32_MAX)
        return rc;
    snprintf(decoder->reason, sizeof decoder->reason, "its header claims %dx%d pixels, which need more than 2 GiB",
             info->width, info->height);
    return -EBADMSG;
}
