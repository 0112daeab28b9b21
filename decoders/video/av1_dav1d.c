/* av1: AV1 with dav1d, on the calling thread and without frame delay. */
#include "decoders/decoder_ops.h"
#include "decoders/video/video_ops.h"

#include <errno.h>
#include <stdio.h>

#if WEIR_HAVE_DAV1D
#include <dav1d/dav1d.h>

enum { CONFIG_HEADER_BYTES = 4 }; /* in front of the OBUs in an av1C box */

static int av1_open(const struct weir_video_ops *ops, void **self, int gpu, char *reason)
{
    (void)ops, (void)gpu;
    Dav1dSettings settings;
    Dav1dContext *context = NULL;
    dav1d_default_settings(&settings);
    settings.n_threads = 1;
    settings.max_frame_delay = 1;
    settings.all_layers = 0;
    settings.frame_size_limit = WEIR_CODEC_PIXELS_MAX;
    settings.logger.callback = NULL;
    if (dav1d_open(&context, &settings) < 0) {
        snprintf(reason, WEIR_REASON_MAX, "out of memory for an AV1 decoder");
        return -ENOMEM;
    }
    *self = context;
    return 0;
}

static void av1_close(void *self)
{
    Dav1dContext *context = self;
    dav1d_close(&context);
}

static int refuse(int rc, char *reason)
{
    if (rc == DAV1D_ERR(ENOMEM)) {
        snprintf(reason, WEIR_REASON_MAX, "out of memory for an AV1 picture");
        return -ENOMEM;
    }
    snprintf(reason, WEIR_REASON_MAX, "%s",
             rc == DAV1D_ERR(ERANGE)        ? "the AV1 stream's pictures are too large"
             : rc == DAV1D_ERR(ENOPROTOOPT) ? "the AV1 stream uses a feature that dav1d does not support"
                                            : "the AV1 stream is damaged");
    return -EBADMSG;
}

static struct weir_picture picture_of(const Dav1dPicture *from)
{
    static const enum weir_chroma chroma[] = {
        [DAV1D_PIXEL_LAYOUT_I400] = WEIR_CHROMA_400,
        [DAV1D_PIXEL_LAYOUT_I420] = WEIR_CHROMA_420,
        [DAV1D_PIXEL_LAYOUT_I422] = WEIR_CHROMA_422,
        [DAV1D_PIXEL_LAYOUT_I444] = WEIR_CHROMA_444,
    };
    bool gray = from->p.layout == DAV1D_PIXEL_LAYOUT_I400;
    struct weir_picture picture = {
        .width = from->p.w,
        .height = from->p.h,
        .bit_depth = from->p.bpc,
        .chroma = chroma[from->p.layout],
        .matrix = (enum weir_matrix)from->seq_hdr->mtrx,
        .full_range = from->seq_hdr->color_range,
    };
    for (int i = 0; i < (gray ? 1 : 3); i++) {
        picture.planes[i] = from->data[i];
        picture.strides[i] = from->stride[i > 0];
    }
    return picture;
}

/* Takes the pictures that are ready. Returns the result of weir_video_put. */
static int take_pictures(Dav1dContext *context, struct weir_video_job *job, char *reason)
{
    for (int rc = 0; rc == 0;) {
        Dav1dPicture from = {0};
        int got = dav1d_get_picture(context, &from);
        if (got == DAV1D_ERR(EAGAIN))
            return 0;
        if (got < 0)
            return refuse(got, reason);
        struct weir_picture picture = picture_of(&from);
        rc = weir_video_put(job, from.m.timestamp, &picture, reason);
        dav1d_picture_unref(&from);
        if (rc)
            return rc;
    }
    return 0;
}

static void keep(const uint8_t *bytes, void *user)
{
    (void)bytes;
    (void)user;
}

static int send(Dav1dContext *context, struct weir_video_job *job, const struct weir_packet *packet, char *reason)
{
    Dav1dData data = {0};
    int rc = packet->length ? dav1d_data_wrap(&data, packet->bytes, packet->length, keep, NULL) : DAV1D_ERR(EINVAL);
    if (rc < 0)
        return refuse(rc, reason);
    data.m.timestamp = packet->pts;
    while (data.sz > 0) {
        int sent = dav1d_send_data(context, &data);
        if (sent < 0 && sent != DAV1D_ERR(EAGAIN))
            rc = refuse(sent, reason);
        else
            rc = take_pictures(context, job, reason);
        if (rc)
            break;
    }
    dav1d_data_unref(&data);
    return rc;
}

static int av1_decode(void *self, struct weir_video_job *job, char *reason)
{
    Dav1dContext *context = self;
    int rc = 0;
    const struct weir_video_format *format = job->format;
    if (format->config_bytes > CONFIG_HEADER_BYTES) {
        struct weir_packet headers = {format->config + CONFIG_HEADER_BYTES, format->config_bytes - CONFIG_HEADER_BYTES,
                                      0};
        rc = send(context, job, &headers, reason);
    }
    for (int i = 0; i < job->n && rc == 0; i++)
        rc = send(context, job, &job->packets[i], reason);
    if (rc == 0)
        rc = take_pictures(context, job, reason);
    dav1d_flush(context);
    return rc < 0 ? rc : 0;
}

#endif

const struct weir_video_ops weir_video_av1 = {
    .name = "av1",
    .codec = WEIR_VIDEO_AV1,
    .summary = "AV1 with dav1d",
#if WEIR_HAVE_DAV1D
    .open = av1_open,
    .close = av1_close,
    .decode = av1_decode,
#else
    .why_not = "built without dav1d",
#endif
};
