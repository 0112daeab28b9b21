/* h264, hevc: H.264 and HEVC with FFmpeg's libavcodec, on the calling thread. The library is opened at the first such
 * video: it is not linked, because distributions build it under the GPL and with many dependencies.
 *
 * libavcodec 58 to 62 (FFmpeg 4 to 8) are used through the few functions and fields that are equal in all of them, so
 * no header is needed: the fields below are the first ones of AVPacket, AVFrame and AVCodecParameters, and everything
 * else is read and set by name (AVOption). */
#include "base/shared_library.h"
#include "decoders/decoder_ops.h"
#include "decoders/video/h26x_priv.h"
#include "decoders/video/video_ops.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the library ---- */

struct av_packet {
    void *buffer;
    int64_t pts, dts;
    uint8_t *data;
    int size;
};

struct av_frame {
    uint8_t *data[8];
    int linesize[8];
    uint8_t **extended_data;
    int width, height, samples, format;
    int others[4];
    int64_t pts;
};
static_assert(offsetof(struct av_frame, pts) == 136, "the layout of AVFrame");

struct av_parameters {
    int codec_type, codec_id;
    uint32_t codec_tag;
    uint8_t *extradata;
    int extradata_size;
};

struct av_codec;
struct av_context;

enum { VERSION_MIN = 58, VERSION_MAX = 62 };
enum { PADDING = 64 /* zeros after extradata */, ID_H264 = 27, ID_HEVC = 173, END_OF_STREAM = -0x20464F45 };
/* Values of context options. QUIET is added to the level of each message, so that none reaches the log. */
enum { QUIET = 64, STRICT = 1, RANGE_LIMITED = 1, RANGE_FULL = 2 };

static struct {
    unsigned (*version)(void);
    struct av_codec *(*find_decoder_by_name)(const char *name);
    struct av_context *(*alloc_context)(const struct av_codec *codec);
    void (*free_context)(struct av_context **context);
    int (*open)(struct av_context *context, const struct av_codec *codec, void *options);
    void (*flush_buffers)(struct av_context *context);
    int (*send_packet)(struct av_context *context, const struct av_packet *packet);
    int (*receive_frame)(struct av_context *context, struct av_frame *frame);
    struct av_parameters *(*parameters_alloc)(void);
    void (*parameters_free)(struct av_parameters **parameters);
    int (*parameters_to_context)(struct av_context *context, const struct av_parameters *parameters);
    struct av_packet *(*packet_alloc)(void);
    int (*new_packet)(struct av_packet *packet, int size);
    void (*packet_unref)(struct av_packet *packet);
    void (*packet_free)(struct av_packet **packet);
    struct av_frame *(*frame_alloc)(void);
    void (*frame_free)(struct av_frame **frame);
    void *(*mallocz)(size_t size);
    int (*opt_set)(void *object, const char *name, const char *value, int flags);
    int (*opt_set_int)(void *object, const char *name, int64_t value, int flags);
    int (*opt_get_int)(void *object, const char *name, int flags, int64_t *value);
    const char *(*get_pix_fmt_name)(int format);
} lib;

static bool have_lib;
static char why_no_lib[WEIR_REASON_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* libavutil's functions are found through libavcodec, which depends on it. */
static void load_lib(void)
{
    static const struct weir_symbol symbols[] = {
        {"avcodec_version", &lib.version},
        {"avcodec_find_decoder_by_name", &lib.find_decoder_by_name},
        {"avcodec_alloc_context3", &lib.alloc_context},
        {"avcodec_free_context", &lib.free_context},
        {"avcodec_open2", &lib.open},
        {"avcodec_flush_buffers", &lib.flush_buffers},
        {"avcodec_send_packet", &lib.send_packet},
        {"avcodec_receive_frame", &lib.receive_frame},
        {"avcodec_parameters_alloc", &lib.parameters_alloc},
        {"avcodec_parameters_free", &lib.parameters_free},
        {"avcodec_parameters_to_context", &lib.parameters_to_context},
        {"av_packet_alloc", &lib.packet_alloc},
        {"av_new_packet", &lib.new_packet},
        {"av_packet_unref", &lib.packet_unref},
        {"av_packet_free", &lib.packet_free},
        {"av_frame_alloc", &lib.frame_alloc},
        {"av_frame_free", &lib.frame_free},
        {"av_mallocz", &lib.mallocz},
        {"av_opt_set", &lib.opt_set},
        {"av_opt_set_int", &lib.opt_set_int},
        {"av_opt_get_int", &lib.opt_get_int},
        {"av_get_pix_fmt_name", &lib.get_pix_fmt_name},
    };
    const char *named = getenv("WEIR_LIBAVCODEC");
    const char *const files[] = {named ? named : "libavcodec.so.62",
                                 named ? NULL : "libavcodec.so.61",
                                 "libavcodec.so.60",
                                 "libavcodec.so.59",
                                 "libavcodec.so.58",
                                 NULL};
    have_lib = weir_shared_library_open(files, symbols, sizeof symbols / sizeof *symbols,
                                        "install FFmpeg's libavcodec 58 to 62, or name one in WEIR_LIBAVCODEC",
                                        why_no_lib, sizeof why_no_lib);
    unsigned version = have_lib ? lib.version() >> 16 : VERSION_MIN;
    if (version >= VERSION_MIN && version <= VERSION_MAX)
        return;
    have_lib = false;
    snprintf(why_no_lib, sizeof why_no_lib, "libavcodec %u (WEIR_LIBAVCODEC) is not supported; install 58 to 62",
             version);
}

/* ---- the codecs ---- */

/* The contexts of one thread. Each stream configuration has its own context, because parameter sets of one stream must
 * not affect another one. Usually a data set has one configuration per size of its cameras. */
enum { CONTEXTS_MAX = 4, CONFIG_BYTES_MAX = 1 << 20 };

struct h26x {
    const struct codec *codec;
    struct av_packet *packet;
    struct av_frame *frame;
    struct stream {
        struct av_context *context;      /* NULL: unused */
        struct weir_video_format format; /* owns the configuration */
        uint64_t last_used;
    } streams[CONTEXTS_MAX];
    uint64_t calls;
};

static const struct codec {
    const char *name, *title;
    int id;
} codecs[] = {[WEIR_VIDEO_H264] = {"h264", "H.264", ID_H264}, [WEIR_VIDEO_HEVC] = {"hevc", "HEVC", ID_HEVC}};

static int check_lib(const struct codec *codec, char *reason)
{
    pthread_once(&once, load_lib);
    if (!have_lib)
        snprintf(reason, WEIR_REASON_MAX, "%s video: %.200s", codec->title, why_no_lib);
    else if (!lib.find_decoder_by_name(codec->name))
        snprintf(reason, WEIR_REASON_MAX,
                 "%s video: this machine's libavcodec was built without %s; install a full one", codec->title,
                 codec->title);
    else
        return 0;
    return -ENOTSUP;
}

static int h26x_ready(const struct weir_video_ops *ops, int gpu, struct weir_err *err)
{
    char reason[WEIR_REASON_MAX];
    (void)gpu;
    return check_lib(&codecs[ops->codec], reason) == 0 ? 0 : weir_err_set(err, -ENODEV, "%s", reason);
}

static void close_stream(struct stream *stream)
{
    if (stream->context)
        lib.free_context(&stream->context);
    free((void *)(uintptr_t)stream->format.config);
    *stream = (struct stream){0};
}

static void h26x_close(void *self)
{
    struct h26x *h = self;
    for (int i = 0; i < CONTEXTS_MAX; i++)
        close_stream(&h->streams[i]);
    lib.packet_free(&h->packet);
    lib.frame_free(&h->frame);
    free(h);
}

static int h26x_open(const struct weir_video_ops *ops, void **self, int gpu, char *reason)
{
    const struct codec *codec = &codecs[ops->codec];
    int rc = check_lib(codec, reason);
    (void)gpu;
    if (rc < 0)
        return rc;
    struct h26x *h = calloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    h->codec = codec;
    h->packet = lib.packet_alloc();
    h->frame = lib.frame_alloc();
    if (!h->packet || !h->frame) {
        h26x_close(h);
        return -ENOMEM;
    }
    *self = h;
    return 0;
}

/* ---- streams ---- */

static int set_parameters(struct av_context *context, const struct codec *codec, const struct weir_video_format *format)
{
    struct av_parameters *parameters = lib.parameters_alloc();
    int rc = -ENOMEM;
    if (parameters && (parameters->extradata = lib.mallocz(format->config_bytes + PADDING))) {
        memcpy(parameters->extradata, format->config, format->config_bytes);
        parameters->codec_type = 0; /* video */
        parameters->codec_id = codec->id;
        parameters->extradata_size = (int)format->config_bytes;
        rc = lib.parameters_to_context(context, parameters);
    }
    if (parameters)
        lib.parameters_free(&parameters);
    return rc;
}

/* Damage is not concealed. "strict" makes pictures leave the decoder in order even if the stream
 * does not state how many pictures it reorders. Messages of the context are silenced, not those of the process: a few
 * of libavutil's about impossible sizes remain. The stream's own tags replace the matrix and the range. */
static void set_options(struct av_context *context, const struct weir_video_format *format)
{
    lib.opt_set_int(context, "threads", 1, 0);
    lib.opt_set_int(context, "max_pixels", WEIR_CODEC_PIXELS_MAX, 0);
    lib.opt_set_int(context, "log_level_offset", QUIET, 0);
    lib.opt_set_int(context, "strict", STRICT, 0);
    lib.opt_set_int(context, "ec", 0, 0);
    if (format->matrix >= 0)
        lib.opt_set_int(context, "colorspace", format->matrix, 0);
    if (format->full_range >= 0)
        lib.opt_set_int(context, "color_range", format->full_range ? RANGE_FULL : RANGE_LIMITED, 0);
}

static int open_stream(struct stream *stream, const struct codec *codec, const struct weir_video_format *format,
                       char *reason)
{
    const struct av_codec *decoder = lib.find_decoder_by_name(codec->name);
    uint8_t *config = malloc(format->config_bytes + 1);
    stream->format = *format;
    stream->format.config = config;
    stream->context = lib.alloc_context(decoder);
    if (!config || !stream->context)
        return -ENOMEM;
    memcpy(config, format->config, format->config_bytes);
    int rc = set_parameters(stream->context, codec, format);
    set_options(stream->context, format);
    if (rc >= 0)
        rc = lib.open(stream->context, decoder, NULL);
    if (rc >= 0)
        return 0;
    if (rc == -ENOMEM)
        return rc;
    snprintf(reason, WEIR_REASON_MAX, "the %s stream's configuration is damaged", codec->title);
    return -EBADMSG;
}

static bool is_same(const struct weir_video_format *a, const struct weir_video_format *b)
{
    return a->config_bytes == b->config_bytes && memcmp(a->config, b->config, a->config_bytes) == 0 &&
           a->matrix == b->matrix && a->full_range == b->full_range;
}

/* Returns the context for the format. A new one replaces the one that was used least recently. */
static int find_stream(struct h26x *h, const struct weir_video_format *format, struct stream **found, char *reason)
{
    struct stream *oldest = &h->streams[0];
    for (int i = 0; i < CONTEXTS_MAX; i++) {
        struct stream *stream = &h->streams[i];
        if (stream->context && is_same(&stream->format, format)) {
            *found = stream;
            return 0;
        }
        oldest = stream->last_used < oldest->last_used ? stream : oldest;
    }
    close_stream(oldest);
    *found = oldest;
    return open_stream(oldest, h->codec, format, reason);
}

/* ---- pictures ---- */

static const struct format {
    const char *name;
    enum weir_chroma chroma;
    int bit_depth;
    bool full_range;
} formats[] = {
    {"yuv420p", WEIR_CHROMA_420, 8, false},      {"yuvj420p", WEIR_CHROMA_420, 8, true},
    {"yuv422p", WEIR_CHROMA_422, 8, false},      {"yuvj422p", WEIR_CHROMA_422, 8, true},
    {"yuv444p", WEIR_CHROMA_444, 8, false},      {"yuvj444p", WEIR_CHROMA_444, 8, true},
    {"gray", WEIR_CHROMA_400, 8, false},         {"gray10le", WEIR_CHROMA_400, 10, false},
    {"gray12le", WEIR_CHROMA_400, 12, false},    {"yuv420p10le", WEIR_CHROMA_420, 10, false},
    {"yuv422p10le", WEIR_CHROMA_422, 10, false}, {"yuv444p10le", WEIR_CHROMA_444, 10, false},
    {"yuv420p12le", WEIR_CHROMA_420, 12, false}, {"yuv422p12le", WEIR_CHROMA_422, 12, false},
    {"yuv444p12le", WEIR_CHROMA_444, 12, false},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static int find_format(const struct h26x *h, const struct format **format, char *reason)
{
    const char *name = lib.get_pix_fmt_name(h->frame->format);
    for (int i = 0; i < FORMATS && name; i++)
        if (strcmp(formats[i].name, name) == 0) {
            *format = &formats[i];
            return 0;
        }
    snprintf(reason, WEIR_REASON_MAX, "the %s stream's pixel format %s is not supported; encode it again",
             h->codec->title, name ? name : "?");
    return -ENOTSUP;
}

static int put_picture(struct h26x *h, struct av_context *context, struct weir_video_job *job, char *reason)
{
    const struct format *format;
    const struct av_frame *frame = h->frame;
    int64_t matrix = WEIR_MATRIX_UNKNOWN, range = 0;
    int rc = find_format(h, &format, reason);
    if (rc < 0)
        return rc;
    lib.opt_get_int(context, "colorspace", 0, &matrix);
    lib.opt_get_int(context, "color_range", 0, &range);
    struct weir_picture picture = {
        .width = frame->width,
        .height = frame->height,
        .bit_depth = format->bit_depth,
        .chroma = format->chroma,
        .matrix = (enum weir_matrix)matrix,
        .full_range = format->full_range || range == RANGE_FULL,
    };
    for (int i = 0; i < (format->chroma == WEIR_CHROMA_400 ? 1 : 3); i++) {
        picture.planes[i] = frame->data[i];
        picture.strides[i] = frame->linesize[i];
    }
    return weir_video_put(job, frame->pts, &picture, reason);
}

static int refuse(const struct h26x *h, int rc, char *reason)
{
    if (rc == -ENOMEM)
        return rc;
    snprintf(reason, WEIR_REASON_MAX, "the %s stream is damaged", h->codec->title);
    return -EBADMSG;
}

/* Takes the pictures that are ready. Returns the result of weir_video_put. */
static int take_pictures(struct h26x *h, struct av_context *context, struct weir_video_job *job, char *reason)
{
    for (int rc = 0; rc == 0;) {
        int got = lib.receive_frame(context, h->frame);
        if (got == -EAGAIN || got == END_OF_STREAM)
            return 0;
        rc = got < 0 ? refuse(h, got, reason) : put_picture(h, context, job, reason);
        if (rc)
            return rc;
    }
    return 0;
}

static int send(struct h26x *h, struct av_context *context, const struct weir_packet *packet, char *reason)
{
    if (packet->length == 0 || packet->length > INT32_MAX - PADDING)
        return refuse(h, -EBADMSG, reason);
    int rc = lib.new_packet(h->packet, (int)packet->length);
    if (rc < 0)
        return refuse(h, rc, reason);
    memcpy(h->packet->data, packet->bytes, packet->length);
    h->packet->pts = packet->pts;
    rc = lib.send_packet(context, h->packet);
    lib.packet_unref(h->packet);
    return rc < 0 ? refuse(h, rc, reason) : 0;
}

/* Makes damage an error. An H.264 group that starts at another picture than an IDR picture (open groups of pictures)
 * refers to pictures before it when it releases them, which would be an error too. */
static void set_strictness(struct av_context *context, const struct weir_video_job *job)
{
    bool is_open = job->n > 0 && !weir_annexb_is_closed(job->format, &job->packets[0]);
    lib.opt_set(context, "err_detect", is_open ? "crccheck" : "explode", 0);
}

/* Leaves out the pictures that precede the sync sample in presentation order, because they can depend on pictures
 * before it (open groups of pictures), and later pictures do not depend on them. */
static int decode_packets(struct h26x *h, struct av_context *context, struct weir_video_job *job, char *reason)
{
    int rc = 0;
    set_strictness(context, job);
    for (int i = 0; i < job->n && rc == 0; i++) {
        if (job->packets[i].pts < job->packets[0].pts)
            continue;
        rc = send(h, context, &job->packets[i], reason);
        if (rc == 0)
            rc = take_pictures(h, context, job, reason);
    }
    if (rc >= 0 && job->n > 0)
        lib.send_packet(context, NULL);
    if (rc == 0 && job->n > 0)
        rc = take_pictures(h, context, job, reason);
    /* Pictures that are not wanted are taken too: libavcodec 61 loses pictures of the next group otherwise. */
    while (rc > 0 && lib.receive_frame(context, h->frame) >= 0)
        continue;
    return rc;
}

/* A context that has failed is closed, so that what it kept of a damaged stream has no effect. */
static int h26x_decode(void *self, struct weir_video_job *job, char *reason)
{
    struct h26x *h = self;
    struct stream *stream;
    if (job->format->config_bytes > CONFIG_BYTES_MAX) {
        snprintf(reason, WEIR_REASON_MAX, "the %s stream's configuration is too long", h->codec->title);
        return -EBADMSG;
    }
    int rc = find_stream(h, job->format, &stream, reason);
    if (rc == 0)
        rc = decode_packets(h, stream->context, job, reason);
    if (rc < 0) {
        close_stream(stream);
        return rc;
    }
    stream->last_used = ++h->calls;
    lib.flush_buffers(stream->context);
    return 0;
}

const struct weir_video_ops weir_video_h264 = {
    .name = "h264",
    .codec = WEIR_VIDEO_H264,
    .summary = "H.264 with FFmpeg's libavcodec",
    .ready = h26x_ready,
    .open = h26x_open,
    .close = h26x_close,
    .decode = h26x_decode,
};

const struct weir_video_ops weir_video_hevc = {
    .name = "hevc",
    .codec = WEIR_VIDEO_HEVC,
    .summary = "HEVC with FFmpeg's libavcodec",
    .ready = h26x_ready,
    .open = h26x_open,
    .close = h26x_close,
    .decode = h26x_decode,
};
