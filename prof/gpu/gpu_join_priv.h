/* gpu_join_priv.h: working state of the join of GPU records with a window's ranges. */
#ifndef WEIR_PROF_GPU_GPU_JOIN_PRIV_H
#define WEIR_PROF_GPU_GPU_JOIN_PRIV_H

#include "prof/gpu/clock_sources.h"
#include "prof/gpu/gpu_trace.h"
#include "prof/gpu/gpu_trace_ops.h"

/* After CUPTI was torn down, its clock is compared with ours at both ends of a window, within about 50 ns each. */
enum { WEIR_GPU_DEVICES = 16, WEIR_GPU_CLOCK_ERROR_NS = 100 };

struct weir_gpu_take {
    const struct weir_gpu_trace_ops *ops;
    struct weir_gpu_records *records;
    int n_devices;
    struct weir_gpu_properties devices[WEIR_GPU_DEVICES];
    bool own_memory[WEIR_GPU_DEVICES]; /* the program reports its own allocations there (weir_memory_allocated) */
    int driver_version, runtime_version, cupti_version;
    struct weir_clock_launches clocks;
};

/* A call of the runtime or driver API that began in the window. */
struct weir_gpu_call {
    int64_t start_ns, end_ns; /* in trace time */
    uint64_t external_id;
    uint32_t correlation, track, cbid;
    weir_text_id name;
    int32_t range; /* innermost range around its start, index into ranges; -1 = none */
    bool driver;
};

/* A range of one of our threads that calls may belong to. */
struct weir_gpu_range {
    int64_t end_ns;
    uint32_t event;
    int32_t around; /* the enclosing range; -1 = none */
};

/* From the start of the first to the end of the last work on a stream that was launched inside an annotation or a
 * stage. */
struct weir_gpu_span {
    int64_t start_ns, end_ns;
    int32_t range;
    uint32_t track;
};

struct weir_gpu_memory {
    int64_t at_ns, bytes;
    uint64_t address;
    uint32_t track;
    int32_t device;
};

struct weir_gpu_wait {
    struct weir_event event;
    uint32_t device, stream;
};

struct weir_gpu_join {
    struct weir_trace *trace;
    const struct weir_gpu_take *take;
    uint64_t begin_ns, end_ns;   /* the window, by the records' clock */
    int rc;                      /* the first failure; later steps do nothing */
    struct weir_gpu_call *calls; /* gpu_join.c: sorted by start, then by correlation */
    size_t n_calls;
    struct weir_gpu_range *ranges; /* sorted by start */
    size_t n_ranges;
    struct weir_gpu_span *spans;
    size_t n_spans;
    struct weir_gpu_memory *memory;
    size_t n_memory;
    struct weir_gpu_wait *waits;
    size_t n_waits;
    uint64_t clamped; /* records that, by the clocks, began before the call that launched them */
};

/* Makes room for one more than n; on failure sets rc and returns false. */
bool weir_gpu_join_room(struct weir_gpu_join *join, void *array, size_t n, size_t size);
/* Converts a record's time to trace time. */
int64_t weir_gpu_join_ns(const struct weir_gpu_join *join, uint64_t ns);
/* The row of a thread, with its name; and of a stream. */
uint32_t weir_gpu_join_thread(struct weir_gpu_join *join, int32_t tid);
uint32_t weir_gpu_join_stream(struct weir_gpu_join *join, uint32_t device, int64_t row);
/* Returns the window's call with that correlation, or NULL. */
const struct weir_gpu_call *weir_gpu_join_call(const struct weir_gpu_join *join, uint32_t correlation);
bool weir_gpu_join_is_step(const struct weir_trace *trace, const struct weir_event *event);

/* gpu_events.c: adds everything except calls. */
void weir_gpu_join_events(struct weir_gpu_join *join);
/* gpu_join_clocks.c: adds the stages inside kernels, starting at event `first`; the calls may be in any order. */
void weir_gpu_join_clocks(struct weir_gpu_join *join, size_t first);

#endif
