/* gpu_idle_priv.h: the states of a trace's threads over time. */
#ifndef WEIR_ANALYZE_GPU_IDLE_GPU_IDLE_PRIV_H
#define WEIR_ANALYZE_GPU_IDLE_GPU_IDLE_PRIV_H

#include "analyze/gpu_idle/gpu_idle.h"
#include "weir/trace.h"

/* States of a thread. If several ranges are open, the highest state applies. */
enum weir_host_state {
    WEIR_HOST_NONE, /* nothing is recorded, except steps and annotations */
    WEIR_HOST_OPERATOR,
    WEIR_HOST_CALL, /* any other CUDA call */
    WEIR_HOST_COPY, /* a call that starts an asynchronous copy */
    WEIR_HOST_ALLOCATION,
    WEIR_HOST_SYNC,
    WEIR_HOST_DATA,
    WEIR_HOST_MEASUREMENT,
    WEIR_HOST_STATES
};

/* The thread's state from at_ns to the next point of its track. During construction: a change in the number of open
 * ranges. */
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
    struct weir_host_point *points; /* sorted by track and time; one for each time at which ranges start or end */
    size_t *first;                  /* track t has the points first[t] to first[t + 1] - 1 */
    struct weir_host_call *calls;   /* sorted by correlation number and start */
    size_t n_calls;
    uint32_t step_track; /* track that contains the steps, or WEIR_HOST_NO_TRACK */
    enum weir_idle_loader loader;
};

#define WEIR_HOST_NO_TRACK UINT32_MAX

/* Limits a time to about +-126 years, so that the difference of two times does not overflow. */
int64_t weir_host_clamp(int64_t ns);
int64_t weir_host_end(const struct weir_event *event);

/* Returns 0, or -ENOMEM with an empty result. */
int weir_host_make(struct weir_host *host, const struct weir_trace *trace);
void weir_host_clear(struct weir_host *host);

/* Returns the call that launched an activity that started at at_ns, or NULL. If several calls have this correlation
 * number, returns the last one that began by at_ns, or else the first one. */
const struct weir_host_call *weir_host_launch(const struct weir_host *host, uint32_t correlation, int64_t at_ns);

/* Returns the time between begin_ns and end_ns in which the thread waits for data. */
int64_t weir_host_data_ns(const struct weir_host *host, uint32_t track, int64_t begin_ns, int64_t end_ns);

/* Iterates over the points of a thread. */
struct weir_host_cursor {
    const struct weir_host_point *points;
    size_t n, next; /* next: index of the first point after the current position */
};

/* Positions a cursor at at_ns. For WEIR_HOST_NO_TRACK there are no points. */
struct weir_host_cursor weir_host_seek(const struct weir_host *host, uint32_t track, int64_t at_ns);
static inline enum weir_host_state weir_host_state(const struct weir_host_cursor *cursor)
{
    return cursor->next ? (enum weir_host_state)cursor->points[cursor->next - 1].state : WEIR_HOST_NONE;
}
/* Returns the time of the next point, or INT64_MAX after the last point. */
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
