/* in_order.h: pictures in the order of presentation, from a decoder that returns them in the order of decoding. Belongs
 * to one thread. */
#ifndef WEIR_DECODERS_VIDEO_IN_ORDER_H
#define WEIR_DECODERS_VIDEO_IN_ORDER_H

#include "decoders/video/video_ops.h"

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
