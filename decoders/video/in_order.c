#include "decoders/decoder_ops.h"
#include "decoders/video/h26x_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int weir_in_order_packet(const struct weir_video_job *job, int i)
{
    while (i < job->n && job->packets[i].pts < job->packets[0].pts)
        i++;
    return i;
}

static int by_time(const void *left, const void *right)
{
    const struct weir_turn *a = left, *b = right;
    return a->pts != b->pts ? (a->pts > b->pts) - (a->pts < b->pts) : a->packet - b->packet;
}

int weir_in_order_begin(struct weir_in_order *order, struct weir_video_job *job)
{
    if (order->capacity < (size_t)job->n) {
        free(order->turns);
        order->turns = calloc((size_t)job->n, sizeof *order->turns);
        order->capacity = order->turns ? (size_t)job->n : 0;
    }
    if (!order->turns)
        return -ENOMEM;
    order->job = job;
    order->n_turns = order->next = 0;
    for (int i = 0; i < job->n; i = weir_in_order_packet(job, i + 1))
        order->turns[order->n_turns++] = (struct weir_turn){job->packets[i].pts, i};
    qsort(order->turns, (size_t)order->n_turns, sizeof *order->turns, by_time);
    return 0;
}

static bool is_next(const struct weir_in_order *order, int packet)
{
    return order->next < order->n_turns && order->turns[order->next].packet == packet;
}

static int put(struct weir_in_order *order, int packet, const struct weir_picture *picture, char *reason)
{
    order->next++;
    return weir_video_put(order->job, order->job->packets[packet].pts, picture, reason);
}

static int hold(struct weir_in_order *order, int packet, const struct weir_picture *picture, char *reason)
{
    size_t luma = (size_t)picture->width * (size_t)picture->height, chroma = luma / 4;
    uint8_t *copy = order->n_held < WEIR_HELD_MAX ? malloc(luma + 2 * chroma) : NULL;
    if (!copy) {
        snprintf(reason, WEIR_REASON_MAX, "out of memory for pictures before their turn");
        return -ENOMEM;
    }
    struct weir_held *held = &order->held[order->n_held++];
    *held = (struct weir_held){packet, *picture};
    memcpy(copy, picture->planes[0], luma);
    memcpy(copy + luma, picture->planes[1], chroma);
    memcpy(copy + luma + chroma, picture->planes[2], chroma);
    held->picture.planes[0] = copy;
    held->picture.planes[1] = copy + luma;
    held->picture.planes[2] = copy + luma + chroma;
    return 0;
}

static void drop(struct weir_in_order *order, int i)
{
    free((void *)(uintptr_t)order->held[i].picture.planes[0]);
    order->held[i] = order->held[--order->n_held];
}

int weir_in_order_put(struct weir_in_order *order, int packet, const struct weir_picture *picture, char *reason)
{
    int rc = is_next(order, packet) ? put(order, packet, picture, reason) : hold(order, packet, picture, reason);
    for (int i = 0; i < order->n_held && rc == 0;) {
        if (!is_next(order, order->held[i].packet)) {
            i++;
            continue;
        }
        rc = put(order, order->held[i].packet, &order->held[i].picture, reason);
        drop(order, i);
        i = 0;
    }
    return rc;
}

void weir_in_order_end(struct weir_in_order *order)
{
    while (order->n_held > 0)
        drop(order, order->n_held - 1);
}

void weir_in_order_free(struct weir_in_order *order)
{
    weir_in_order_end(order);
    free(order->turns);
}
