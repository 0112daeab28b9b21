/* gpu_idle_priv.h: states of the threads of a trace over time. */
#ifndef WEIR_ANALYZE_GPU_IDLE_GPU_IDLE_PRIV_H
#define WEIR_ANALYZE_GPU_IDLE_GPU_IDLE_PRIV_H

#include "weir/trace.h"

/* State of a thread: the highest one among its open ranges. */
enum weir_host_state {
    WEIR_HOST_NONE, /* nothing recorded except steps and annotations */
    WEIR_HOST_OPERATOR,
    WEIR_HOST_CALL, /* another CUDA call */
    WEIR_HOST_COPY, /* an asynchronous copy's call */
    WEIR_HOST_ALLOCATION,
    WEIR_HOST_SYNC,
    WEIR_HOST_DATA,
    WEIR_HOST_MEASUREMENT,
    WEIR_HOST_STATES
};

/* The thread's state from at_ns to the next point of its track; while building, a change of an open range's count. */
struct weir_host_point {
    int64_t at_ns;
    uint32_t track;
    uint8_t state; /* enum weir_host_state */
    int8_t change;
};

struct weir_host_call {
    uint32_t correlation, track;
    int64_t start_ns, end_ns;
};

struct weir_host {
    struct weir_host_point *points; /* by track and time, one per start or end of ranges */
    size_t *first;                  /* per track t: points first[t] to first[t + 1] */
    struct weir_host_call *calls;   /* by correlation and start */
    size_t n_calls;
    uint32_t step_track; /* track of the steps; UINT32_MAX: none */
};

#define WEIR_HOST_NO_TRACK UINT32_MAX

/* Clamps times to 126 years so that their differences do not overflow. */
int64_t weir_host_clamp(int64_t ns);
int64_t weir_host_end(const struct weir_event *event);

/* 0 or -ENOMEM, then empty. */
int weir_host_make(struct weir_host *host, const struct weir_trace *trace);
void weir_host_clear(struct weir_host *host);

/* The call that launched an activity starting at at_ns: of those with this correlation, the last that began by then,
 * else the first; NULL: none. */
const struct weir_host_call *weir_host_launch(const struct weir_host *host, uint32_t correlation, int64_t at_ns);

/* Iterates over a thread's points. */
struct weir_host_cursor {
    const struct weir_host_point *points;
    size_t n, next; /* next: first point after the current position */
};

/* Starts at at_ns. WEIR_HOST_NO_TRACK has no points. */
struct weir_host_cursor weir_host_seek(const struct weir_host *host, uint32_t track, int64_t at_ns);
static inline enum weir_host_state weir_host_state(const struct weir_host_cursor *cursor)
{
    return cursor->next ? (enum weir_host_state)cursor->points[cursor->next - 1].state : WEIR_HOST_NONE;
}
/* Time of the next point; INT64_MAX after the last. */
static inline int64_t weir_host_until(const struct weir_host_cursor *cursor)
{
    return cursor->next < cursor->n ? cursor->points[cursor->next].at_ns : INT64_MAX;
}
static inline void weir_host_move(struct weir_host_cursor *cursor, int64_t at_ns)
{
    while (weir_host_until(cursor) <= at_ns)
        cursor->next++;
}

#endif
