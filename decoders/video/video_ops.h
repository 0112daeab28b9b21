/* video_ops.h: interface of a video codec. video.c times the decoding, video_put.c checks the pictures.
 *
 * A new codec is a struct weir_video_ops, its extern declaration below, its row in video.c, its enum weir_video_codec
 * and a row in README. */
#ifndef WEIR_DECODERS_VIDEO_VIDEO_OPS_H
#define WEIR_DECODERS_VIDEO_VIDEO_OPS_H

#include "decoders/video/video.h"

/* The packets of one call, and where the pictures go. */
struct weir_video_job {
    const struct weir_video_format *format;
    const struct weir_packet *packets;
    int n;
    /* used only by video.c and video_put.c */
    weir_picture_fn *fn;
    void *user;
    int pictures, width, height; /* number of pictures so far, and their size */
    int skip;                    /* number of first pictures that fn has had from the GPU */
    bool is_over;
};

/* Hands on one picture. Returns 0; 1 if no further picture is needed, so that the codec returns 0; or -EBADMSG with the
 * reason. */
int weir_video_put(struct weir_video_job *job, int64_t pts, const struct weir_picture *picture, char *reason);

struct weir_video_ops {
    const char *name, *summary;
    const char *why_not; /* reason if the codec is not built in (its functions are then NULL), otherwise NULL */
    enum weir_video_codec codec;
    bool on_gpu; /* decodes with the GPU's engines; another row of the same codec decodes on the CPU */
    /* Returns 0, or -ENODEV with the reason why the codec does not work on this machine. NULL: it always works. gpu:
     * number of the GPU, for rows on the GPU. */
    int (*ready)(const struct weir_video_ops *ops, int gpu, struct weir_err *err);
    /* Creates one thread's context. Returns 0, -ENOMEM, or -ENOTSUP with the reason. */
    int (*open)(const struct weir_video_ops *ops, void **self, int gpu, char *reason);
    void (*close)(void *self);
    /* Returns the same values as weir_video_decode, with the reason. Afterwards the context refers to none of the
     * packets, and is ready for another stream. */
    int (*decode)(void *self, struct weir_video_job *job, char *reason);
};

extern const struct weir_video_ops weir_video_av1, weir_video_h264, weir_video_hevc, weir_video_h264_nvdec,
    weir_video_hevc_nvdec;

#endif
