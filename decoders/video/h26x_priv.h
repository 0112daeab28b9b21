/* h26x_priv.h: shared by the decoders of H.264 and H.265: the stream format that they read, and the order of their
 * pictures. */
#ifndef WEIR_DECODERS_VIDEO_H26X_PRIV_H
#define WEIR_DECODERS_VIDEO_H26X_PRIV_H

#include "decoders/video/video.h"
#include "decoders/video/video_ops.h"

/* ---- annexb.c: the NAL units of H.264 and HEVC, and their form for hardware. An mp4 file states the length of each
 * NAL unit and keeps the parameter sets apart (ISO/IEC 14496-15); a byte stream (Annex B of both standards) starts each
 * unit with 0 0 0 1.
 *
 * The first two functions append to `to`, which has room for `capacity` bytes, and return the number of bytes appended,
 * or 0 if the input is damaged or has none. At most four times the input's bytes, and four, are appended. */

/* Appends the parameter sets of an avcC or hvcC box. */
size_t weir_annexb_config(const struct weir_video_format *format, uint8_t *to, size_t capacity);
/* Appends the units of a packet. A packet that is not exactly one picture counts as damaged. */
size_t weir_annexb_packet(const struct weir_video_format *format, const struct weir_packet *packet, uint8_t *to,
                          size_t capacity);

/* Returns false if a group of H.264 pictures starts with another picture than an IDR picture: later pictures of the
 * group can then refer to pictures before it. True for HEVC, and for a damaged packet. */
bool weir_annexb_is_closed(const struct weir_video_format *format, const struct weir_packet *first);

/* Largest size of the result for so many bytes of input: each unit has at least one byte of length. */
static inline size_t weir_annexb_bytes(size_t input)
{
    return 4 * input + 4;
}

/* ---- in_order.c: pictures in the order of presentation, from a decoder that returns them in the order of decoding.
 * Belongs to one thread. */

enum { WEIR_HELD_MAX = 16 }; /* at most so many pictures of H.264 and HEVC precede one that is presented earlier */

struct weir_in_order {
    struct weir_video_job *job;
    struct weir_turn {
        int64_t pts;
        int packet;
    } * turns; /* the packets in order of presentation; owned */
    size_t capacity;
    int n_turns, next; /* next: index of the turn that has come */
    struct weir_held {
        int packet;
        struct weir_picture picture; /* owns its planes, in one piece */
    } held[WEIR_HELD_MAX];           /* pictures decoded before their turn */
    int n_held;
};

/* Begins a group. Returns 0 or -ENOMEM. */
int weir_in_order_begin(struct weir_in_order *order, struct weir_video_job *job);
/* Returns the first packet from i on that does not precede the sync sample in presentation order, or job->n: pictures
 * that do can depend on pictures before it, and are not decoded. */
int weir_in_order_packet(const struct weir_video_job *job, int i);
/* Takes the picture of a packet, 4:2:0 of 8 bits without gaps between rows, and hands on all whose turn has come.
 * Returns as weir_video_put does, or -ENOMEM with the reason. */
int weir_in_order_put(struct weir_in_order *order, int packet, const struct weir_picture *picture, char *reason);
/* Drops the pictures whose turn has not come. */
void weir_in_order_end(struct weir_in_order *order);
/* Frees all. */
void weir_in_order_free(struct weir_in_order *order);

#endif
