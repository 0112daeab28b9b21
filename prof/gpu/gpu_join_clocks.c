/* Adds the clocks inside kernels to a trace, as rows of the GPU within their kernels' times: one range per block with
 * the kernel's name, and inside it the block's stages in sequence.
 *
 * A table belongs to the launch that its thread made between two readings of the records' clock, and thus to that
 * launch's kernel. %globaltimer and CUPTI's clock have no common zero, so the position of the blocks within the kernel
 * is unknown. Therefore the first block of a launch starts at the kernel's start, and the other blocks follow at their
 * %globaltimer distance. "anchor error ns" is the part of the kernel's time that the blocks do not cover. If the blocks
 * last longer than the kernel because of errors in both clocks, their times are scaled down. */
#include "prof/gpu/gpu_join_priv.h"
#include "prof/trace/trace_print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 256, LAPS_MAX = 1 << 18 };

/* A launch and its kernel in the trace. */
struct launched {
    const struct weir_clock_launch *launch;
    uint32_t correlation; /* 0 = not found */
    size_t kernel;        /* index of its event; SIZE_MAX = not found */
    int64_t start_ns;     /* start of the kernel */
};

struct clocks {
    struct weir_gpu_join *join;
    struct launched *launches;
    size_t n;
    struct weir_gpu_lanes lanes; /* blocks that run at the same time are in different rows */
    size_t laps;
    /* State of the launch that is being added. */
    const struct launched *now;
    struct weir_event kernel;   /* a copy, because adding events can move the array */
    uint64_t first_ns, last_ns; /* start of the first and end of the last block, by %globaltimer */
    double scale;
};

/* ---- kernels of the launches ---- */

static int by_thread(const void *a, const void *b)
{
    const struct weir_clock_launch *x = ((const struct launched *)a)->launch, *y = ((const struct launched *)b)->launch;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return x->before_ns < y->before_ns ? -1 : x->before_ns > y->before_ns;
}

static int by_correlation(const void *a, const void *b)
{
    const struct launched *x = a, *y = b;
    return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

/* Sorts launches by their kernel's start, because rows are assigned in this order. Launches without a kernel come last.
 */
static int by_start(const void *a, const void *b)
{
    const struct launched *x = a, *y = b;
    bool x_found = x->kernel != SIZE_MAX, y_found = y->kernel != SIZE_MAX;
    if (x_found != y_found)
        return x_found ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Returns the thread's last launch that began at or before at_ns, or NULL. */
static struct launched *launch_before(const struct clocks *c, int64_t tid, int64_t at_ns)
{
    size_t low = 0, high = c->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct weir_clock_launch *l = c->launches[middle].launch;
        bool earlier = l->tid < tid || (l->tid == tid && weir_gpu_join_ns(c->join, l->before_ns) <= at_ns);
        low = earlier ? middle + 1 : low;
        high = earlier ? high : middle;
    }
    return low > 0 && c->launches[low - 1].launch->tid == tid ? &c->launches[low - 1] : NULL;
}

static void find_calls(struct clocks *c)
{
    const struct weir_trace *trace = c->join->trace;
    for (size_t i = 0; i < c->join->n_calls; i++) {
        const struct weir_gpu_call *call = &c->join->calls[i];
        const char *name = weir_trace_text(trace, call->name);
        if (strncmp(name, "cudaLaunchKernel", 16) != 0 && strncmp(name, "cuLaunchKernel", 14) != 0)
            continue;
        struct launched *launched = launch_before(c, trace->tracks[call->track].tid, call->start_ns);
        if (launched && call->start_ns <= weir_gpu_join_ns(c->join, launched->launch->after_ns))
            launched->correlation = call->correlation;
    }
}

static void find_kernels(struct clocks *c, size_t first)
{
    const struct weir_trace *trace = c->join->trace;
    qsort(c->launches, c->n, sizeof *c->launches, by_correlation);
    for (size_t i = first; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        const struct launched key = {.correlation = event->correlation};
        if (event->cat != WEIR_CAT_KERNEL || !event->correlation)
            continue;
        struct launched *found = bsearch(&key, c->launches, c->n, sizeof key, by_correlation);
        if (found) {
            found->kernel = i;
            found->start_ns = event->start_ns;
        }
    }
}

/* ---- rows and times ---- */

static weir_text_id intern(const struct clocks *c, const char *text)
{
    return weir_trace_intern(c->join->trace, text, strlen(text));
}

static void add_event(struct clocks *c, const struct weir_event *event)
{
    if (c->join->rc == 0)
        c->join->rc = weir_trace_add(c->join->trace, event);
}

/* Converts ticks since the block's start to trace time, limited to the end of the kernel. */
static int64_t place(const struct clocks *c, const struct weir_kernel_clock_block *block, uint64_t ticks)
{
    double ns_per_tick = (block->ns > 0 ? block->ns * c->scale : (double)c->kernel.duration_ns) / (double)block->ticks;
    double offset_ns = block->ns > 0 ? (double)(block->begin_ns - c->first_ns) * c->scale : 0;
    int64_t ns = (int64_t)(offset_ns + (double)ticks * ns_per_tick);
    ns = ns < c->kernel.duration_ns ? ns : c->kernel.duration_ns;
    return c->kernel.start_ns + ns;
}

/* ---- events ---- */

static weir_text_id describe_block(const struct clocks *c, const struct weir_kernel_clock_block *block)
{
    char text[768];
    double left_ns = (double)c->kernel.duration_ns - (double)(c->last_ns - c->first_ns);
    int n =
        snprintf(text, sizeof text,
                 "\"block\": %" PRIu64 ", \"grid blocks\": %" PRIu64 ", \"threads\": %" PRIu32 ", \"SM\": %" PRIu32
                 ", \"launch\": %" PRIu32 ", \"iterations\": %" PRIu64 ", \"rows\": %" PRIu32 ", \"ticks\": %" PRIu64
                 ", \"ns\": %.0f, \"ns error\": %.1f, \"globaltimer step ns\": %.0f, \"empty warp lap ticks\": %" PRIu32
                 ", \"empty block lap ticks\": %" PRIu32 ", \"laps\": %" PRIu32 ", \"kernel ns\": %" PRId64
                 ", \"anchor error ns\": %.0f, \"launches without clocks\": %" PRIu64,
                 block->block, block->grid, block->threads, block->sm, c->now->correlation, block->iterations,
                 block->rows, block->ticks, block->ns, block->error_ns, block->step_ns, block->warp_lap_ticks,
                 block->block_lap_ticks, block->laps, c->kernel.duration_ns,
                 block->ns <= 0 ? (double)c->kernel.duration_ns
                 : left_ns > 0  ? left_ns
                                : 0,
                 c->now->launch->skipped);
    return weir_trace_intern(c->join->trace, text, n > 0 && (size_t)n < sizeof text ? (size_t)n : 0);
}

/* Adds the stages of one iteration, one after another, because the table contains only their durations. Returns the end
 * of the last stage, in ticks. */
static uint64_t draw_row(struct clocks *c, const struct weir_kernel_clock_block *block, uint32_t number, uint32_t track,
                         uint64_t before_ended)
{
    const struct weir_kernel_clock_kernel *kernel = c->now->launch->kernel;
    uint32_t row[1 + WEIR_KERNEL_CLOCK_STAGES_MAX];
    weir_kernel_clock_row(block, number, row);
    uint64_t at = weir_kernel_clock_row_begin(row, before_ended);
    for (uint32_t stage = 0; stage < block->n_stages; stage++) {
        uint32_t ticks = row[1 + stage];
        if (ticks == 0 || ticks == UINT32_MAX)
            continue;
        char text[64];
        int n = snprintf(text, sizeof text, "\"iteration\": %" PRIu32 ", \"ticks\": %" PRIu32, number, ticks);
        struct weir_event event = {.start_ns = place(c, block, at),
                                   .name = intern(c, kernel->stages[stage]),
                                   .args = weir_trace_intern(c->join->trace, text, (size_t)n),
                                   .track = track,
                                   .kind = WEIR_EVENT_RANGE,
                                   .cat = WEIR_CAT_GPU_STAGE};
        at += ticks;
        event.duration_ns = place(c, block, at) - event.start_ns;
        add_event(c, &event);
        c->laps++;
    }
    return at;
}

static void draw_block(void *user, const struct weir_kernel_clock_block *block)
{
    struct clocks *c = user;
    uint32_t device = (uint32_t)c->join->trace->tracks[c->kernel.track].pid;
    int64_t start_ns = place(c, block, 0), end_ns = place(c, block, block->ticks);
    bool fits = c->laps + (size_t)block->rows * block->n_stages <= LAPS_MAX;
    int number = fits ? weir_gpu_join_lane(c->join, &c->lanes, device, 0, start_ns, end_ns) : -1;
    if (number < 0) {
        c->join->trace->dropped++;
        return;
    }
    uint32_t track = weir_gpu_join_stream(c->join, device, WEIR_CLOCK_ROW + (int64_t)number);
    struct weir_event event = {.start_ns = start_ns,
                               .duration_ns = end_ns - start_ns,
                               .name = c->kernel.name,
                               .args = describe_block(c, block),
                               .track = track,
                               .kind = WEIR_EVENT_RANGE,
                               .cat = WEIR_CAT_GPU_STAGE};
    add_event(c, &event);
    uint64_t ended = 0;
    for (uint32_t i = 0; i < block->rows && c->join->rc == 0; i++)
        ended = draw_row(c, block, i, track, ended);
}

static void note_span(void *user, const struct weir_kernel_clock_block *block)
{
    struct clocks *c = user;
    if (block->ns <= 0)
        return;
    uint64_t end_ns = block->begin_ns + (uint64_t)block->ns;
    c->first_ns = block->begin_ns < c->first_ns ? block->begin_ns : c->first_ns;
    c->last_ns = end_ns > c->last_ns ? end_ns : c->last_ns;
}

static void draw_launch(struct clocks *c, const struct launched *launched)
{
    const struct weir_clock_launch *l = launched->launch;
    c->now = launched;
    c->kernel = c->join->trace->events[launched->kernel];
    c->first_ns = UINT64_MAX;
    c->last_ns = 0;
    weir_kernel_clock_each(l->kernel, l->table, l->bytes, l->launch, l->step_ns, note_span, c, NULL);
    if (c->last_ns < c->first_ns)
        c->first_ns = c->last_ns = 0;
    double span_ns = (double)(c->last_ns - c->first_ns);
    c->scale = span_ns > (double)c->kernel.duration_ns ? (double)c->kernel.duration_ns / span_ns : 1;
    weir_kernel_clock_each(l->kernel, l->table, l->bytes, l->launch, l->step_ns, draw_block, c, NULL);
}

void weir_gpu_join_clocks(struct weir_gpu_join *join, size_t first)
{
    const struct weir_clock_launches *taken = &join->take->clocks;
    struct clocks c = {.join = join, .n = taken->n, .lanes.max = LANES};
    if (taken->n == 0 || join->rc < 0)
        return;
    c.launches = malloc(taken->n * sizeof *c.launches);
    if (!c.launches) {
        join->rc = -ENOMEM;
        return;
    }
    for (size_t i = 0; i < c.n; i++)
        c.launches[i] = (struct launched){.launch = &taken->at[i], .kernel = SIZE_MAX};
    qsort(c.launches, c.n, sizeof *c.launches, by_thread);
    find_calls(&c);
    find_kernels(&c, first);
    qsort(c.launches, c.n, sizeof *c.launches, by_start);
    for (size_t i = 0; i < c.n && c.launches[i].kernel != SIZE_MAX && join->rc == 0; i++)
        draw_launch(&c, &c.launches[i]);
    free(c.launches);
    free(c.lanes.at);
}
