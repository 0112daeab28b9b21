#include "decoders/view_priv.h"
#include "decoders/view_taps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Supported DCT scales in eighths. libjpeg supports every multiple of 1/8, but has vector code only for these. 1/2 and
 * 1/4 cost less than decoding at full size; 3/8 and 5/8 cost more. */
static const int scales[] = {1, 2, 4};

static int scale_of(const struct weir_view *view)
{
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++)
        if ((int64_t)view->width * scales[i] >= (int64_t)view->out_width * 8 &&
            (int64_t)view->height * scales[i] >= (int64_t)view->out_height * 8)
            return scales[i];
    return 8;
}

static int scaled(int pixels, int scale)
{
    return (int)(((int64_t)pixels * scale + 7) / 8);
}

static int open_resampler(struct weir_view_plan *plan, enum weir_resize resize)
{
    const struct weir_view *v = &plan->view;
    double scale = plan->scale / 8.0;
    struct weir_taps x = {0}, y = {0};
    int rc = weir_taps_open(&x, v->x * scale, (v->x + v->width) * scale, v->out_width, resize);
    if (rc == 0)
        rc = weir_taps_open(&y, v->y * scale, (v->y + v->height) * scale, v->out_height, resize);
    if (rc < 0) {
        weir_taps_close(&x);
        weir_taps_close(&y);
        return rc;
    }
    rc = weir_resampler_open(&plan->resampler, &x, v->out_width, &y, v->out_height);
    if (rc < 0)
        weir_resampler_close(&plan->resampler);
    return rc;
}

static int open_plan(struct weir_view_plan *plan, const struct weir_frame *frame, bool can_scale,
                     enum weir_resize resize)
{
    const struct weir_view *v = frame->view;
    int scale = can_scale && resize == WEIR_RESIZE_FAST ? scale_of(v) : 8;
    *plan = (struct weir_view_plan){
        .stored_width = frame->width,
        .stored_height = frame->height,
        .view = *v,
        .scales = can_scale,
        .scale = scale,
        .width = scaled(frame->width, scale),
        .height = scaled(frame->height, scale),
        .first_row = (int)((int64_t)v->y * scale / 8),
        .end_row = scaled(v->y + v->height, scale),
        .first_column = (int)((int64_t)v->x * scale / 8),
        .end_column = scaled(v->x + v->width, scale),
    };
    /* After scaling, the view may start or end inside a pixel, which requires resampling. */
    plan->resamples = scale < 8 ? v->x * scale % 8 || v->y * scale % 8 || v->width * scale != v->out_width * 8 ||
                                      v->height * scale != v->out_height * 8
                                : v->width != v->out_width || v->height != v->out_height;
    return plan->resamples ? open_resampler(plan, resize) : 0;
}

struct weir_view_plan *weir_view_plan(struct weir_view_plans *plans, const struct weir_frame *frame, bool can_scale)
{
    for (int i = 0; i < plans->n; i++) {
        struct weir_view_plan *plan = &plans->plans[i];
        if (plan->stored_width == frame->width && plan->stored_height == frame->height && plan->scales == can_scale &&
            memcmp(&plan->view, frame->view, sizeof plan->view) == 0)
            return plan;
    }
    struct weir_view_plan *plan = &plans->plans[plans->n < WEIR_VIEW_PLANS_MAX ? plans->n : plans->oldest];
    if (plans->n == WEIR_VIEW_PLANS_MAX) {
        plans->oldest = (plans->oldest + 1) % WEIR_VIEW_PLANS_MAX;
        weir_resampler_close(&plan->resampler);
    }
    if (open_plan(plan, frame, can_scale, plans->resize) < 0) {
        plan->stored_width = 0; /* an unusable plan, which matches no frame */
        return NULL;
    }
    plans->n += plans->n < WEIR_VIEW_PLANS_MAX;
    return plan;
}

void weir_view_plans_close(struct weir_view_plans *plans)
{
    for (int i = 0; i < plans->n; i++)
        weir_resampler_close(&plans->plans[i].resampler);
    plans->n = 0;
}

/* Returns the source pixel that contains the centre of output pixel i of n. */
static size_t nearest(int from, int length, int i, int n)
{
    return (size_t)from + (size_t)((2 * (int64_t)i + 1) * length / (2 * (int64_t)n));
}

void weir_view_nearest(const struct weir_frame *frame, const uint16_t *depth, uint16_t *to)
{
    const struct weir_view *v = frame->view;
    for (int y = 0; y < v->out_height; y++) {
        const uint16_t *row = depth + nearest(v->y, v->height, y, v->out_height) * (size_t)frame->width;
        for (int x = 0; x < v->out_width; x++)
            *to++ = row[nearest(v->x, v->width, x, v->out_width)];
    }
}

int weir_view_taps_open(struct weir_view_taps *taps, const struct weir_view *view, enum weir_resize resize, bool rows)
{
    int from = rows ? view->y : view->x, length = rows ? view->height : view->width;
    int size = rows ? view->out_height : view->out_width;
    struct weir_taps made = {0};
    *taps = (struct weir_view_taps){.size = size};
    int rc = weir_taps_open(&made, from, from + length, size, resize);
    taps->most = made.most;
    taps->first = calloc((size_t)size, sizeof *taps->first);
    taps->n = calloc((size_t)size, sizeof *taps->n);
    taps->weights = made.weights;
    if (!taps->first || !taps->n)
        rc = -ENOMEM;
    for (int i = 0; i < size && rc == 0; i++) {
        taps->first[i] = made.taps[i].first;
        taps->n[i] = made.taps[i].n;
    }
    free(made.taps);
    return rc;
}

void weir_view_taps_close(struct weir_view_taps *taps)
{
    free(taps->first);
    free(taps->n);
    free(taps->weights);
    *taps = (struct weir_view_taps){0};
}

/* ---- turning ---- */

/* Whether columns and rows of the turned image are mirrored, before they are exchanged. */
static bool mirrors_x(int turn)
{
    return turn == 2 || turn == 3 || turn == 6 || turn == 7;
}

static bool mirrors_y(int turn)
{
    return turn == 3 || turn == 4 || turn == 7 || turn == 8;
}

struct weir_view weir_turn_view(int turn, const struct weir_view *view, int width, int height)
{
    struct weir_view v = *view;
    v.x = mirrors_x(turn) ? width - view->x - view->width : view->x;
    v.y = mirrors_y(turn) ? height - view->y - view->height : view->y;
    if (!weir_turn_transposes(turn))
        return v;
    return (struct weir_view){v.y, v.x, v.height, v.width, v.out_height, v.out_width};
}

void weir_turn_pixels(int turn, const void *from, void *to, int width, int height, size_t pixel_bytes)
{
    bool transposes = weir_turn_transposes(turn);
    size_t stored_width = (size_t)(transposes ? height : width);
    uint8_t *out = to;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, out += pixel_bytes) {
            size_t column = (size_t)(mirrors_x(turn) ? width - 1 - x : x);
            size_t row = (size_t)(mirrors_y(turn) ? height - 1 - y : y);
            size_t at = transposes ? column * stored_width + row : row * stored_width + column;
            memcpy(out, (const uint8_t *)from + at * pixel_bytes, pixel_bytes);
        }
}
