/* gpu_join_priv.h: working state for adding GPU records to the trace of a window. */
#ifndef WEIR_PROF_GPU_GPU_JOIN_PRIV_H
#define WEIR_PROF_GPU_GPU_JOIN_PRIV_H

#include "prof/gpu/clock_sources.h"
#include "prof/gpu/gpu_trace.h"
#include "prof/gpu/gpu_trace_ops.h"

/* WEIR_GPU_CLOCK_ERROR_NS: CUPTI's clock and the recorder's clock are compared at both ends of a recording, each time
 * with an error of about 50 ns. */
enum { WEIR_GPU_DEVICES = 16, WEIR_GPU_CLOCK_ERROR_NS = 100 };

struct weir_gpu_take {
    const struct weir_gpu_trace_ops *ops;
    struct weir_gpu_records *records;
    int n_devices;
    struct weir_gpu_properties devices[WEIR_GPU_DEVICES];
    bool own_memory[WEIR_GPU_DEVICES]; /* the program reports its own allocations on this device (weir_memory_allocated)
                                        */
    int driver_version, runtime_version, cupti_version;
    struct weir_clock_launches clocks;
};

/* A runtime or driver API call that began in the window. */
struct weir_gpu_call {
    int64_t start_ns, end_ns; /* trace time */
    uint64_t external_id;
    uint32_t correlation, track, cbid;
    weir_text_id name;
    int32_t range; /* index in ranges of the innermost range at its start; -1 = none */
    bool driver;
};

/* A range of one of our threads, inside which calls can be made. */
struct weir_gpu_range {
    int64_t end_ns;
    uint32_t event;
    int32_t around; /* index of the enclosing range; -1 = none */
};

/* Work on a stream that was launched inside an annotation or a stage, from the start of the first kernel or copy to the
 * end of the last. */
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

/* Rows for events that can overlap: those of a stream that do have separate rows. */
struct weir_gpu_lanes {
    struct weir_gpu_lane {
        uint32_t device, stream;
        int64_t end_ns;
    } * at;
    size_t n, max;
};

struct weir_gpu_join {
    struct weir_trace *trace;
    const struct weir_gpu_take *take;
    uint64_t begin_ns, end_ns;   /* the window, on the records' clock */
    int rc;                      /* the first error; later steps then do nothing */
    struct weir_gpu_call *calls; /* sorted by start at first, later by correlation */
    size_t n_calls;
    struct weir_gpu_range *ranges; /* sorted by start */
    size_t n_ranges;
    struct weir_gpu_span *spans;
    size_t n_spans;
    struct weir_gpu_memory *memory;
    size_t n_memory;
    struct weir_gpu_wait *waits;
    size_t n_waits;
    uint64_t clamped; /* records whose measured start was before the call that launched them */
};

/* Makes room for one more element after n. On failure, sets rc and returns false. */
bool weir_gpu_join_room(struct weir_gpu_join *join, void *array, size_t n, size_t size);
/* Converts a record's time to trace time. */
int64_t weir_gpu_join_ns(const struct weir_gpu_join *join, uint64_t ns);
/* Return the row of a thread, named after the thread, and a row of a device. Missing rows are added. */
uint32_t weir_gpu_join_thread(struct weir_gpu_join *join, int32_t tid);
uint32_t weir_gpu_join_stream(struct weir_gpu_join *join, uint32_t device, int64_t row);
/* Takes a row of the stream that is idle from start_ns on. Returns its number among the stream's rows, or -1 if `max`
 * rows are in use or memory is short. Calls must be in the order of start_ns. */
int weir_gpu_join_lane(struct weir_gpu_join *join, struct weir_gpu_lanes *lanes, uint32_t device, uint32_t stream,
                       int64_t start_ns, int64_t end_ns);
/* Returns the call with this correlation number in the window, or NULL. */
const struct weir_gpu_call *weir_gpu_join_call(const struct weir_gpu_join *join, uint32_t correlation);
bool weir_gpu_join_is_step(const struct weir_trace *trace, const struct weir_event *event);

/* Adds all events except calls. Implemented in gpu_events.c. */
void weir_gpu_join_events(struct weir_gpu_join *join);
/* Adds the stages inside kernels. Kernels are among the events from index `first` on; calls can be in any order.
 * Implemented in gpu_join_clocks.c. */
void weir_gpu_join_clocks(struct weir_gpu_join *join, size_t first);

#endif
