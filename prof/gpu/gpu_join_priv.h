/* gpu_join_priv.h: what the join of a GPU's records with a window's ranges keeps while it works. */
#ifndef WEIR_PROF_GPU_GPU_JOIN_PRIV_H
#define WEIR_PROF_GPU_GPU_JOIN_PRIV_H

#include "prof/gpu/clock_sources.h"
#include "prof/gpu/gpu_trace.h"
#include "prof/gpu/gpu_trace_ops.h"

/* After CUPTI was torn down once its clock is compared with ours at both ends of a window, within some 50 ns each. */
enum { WEIR_GPU_DEVICES = 16, WEIR_GPU_CLOCK_ERROR_NS = 100 };

struct weir_gpu_take {
    const struct weir_gpu_trace_ops *ops;
    struct weir_gpu_records *records;
    int n_devices;
    struct weir_gpu_properties devices[WEIR_GPU_DEVICES];
    bool own_memory[WEIR_GPU_DEVICES]; /* the program says itself what it allocates there (weir_memory_allocated) */
    int driver_version, runtime_version, cupti_version;
    struct weir_clock_launches clocks;
};

/* A call of the runtime's or the driver's API that began in the window. */
struct weir_gpu_call {
    int64_t start_ns, end_ns; /* of the trace */
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
    int32_t around; /* the range it is in; -1 = none */
};

/* What runs from the first to the last thing on a stream that was launched inside an annotation or a stage. */
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
    int rc;                      /* the first failure; what follows does nothing */
    struct weir_gpu_call *calls; /* gpu_join.c: by start, then by correlation */
    size_t n_calls, calls_room;
    struct weir_gpu_range *ranges; /* by start */
    size_t n_ranges;
    struct weir_gpu_span *spans;
    size_t n_spans, spans_room;
    struct weir_gpu_memory *memory;
    size_t n_memory, memory_room;
    struct weir_gpu_wait *waits;
    size_t n_waits, waits_room;
    uint64_t clamped; /* that began before the call that launched them, by the clocks */
};

/* Room for one more of n; false: rc is set. */
bool weir_gpu_join_room(struct weir_gpu_join *join, void *array, size_t n, size_t *room, size_t size);
/* A record's time in the trace. */
int64_t weir_gpu_join_ns(const struct weir_gpu_join *join, uint64_t ns);
/* The row of a thread, with its name; of a stream. */
uint32_t weir_gpu_join_thread(struct weir_gpu_join *join, int32_t tid);
uint32_t weir_gpu_join_stream(struct weir_gpu_join *join, uint32_t device, int64_t row);
/* The call of the window with that correlation, or NULL. */
const struct weir_gpu_call *weir_gpu_join_call(const struct weir_gpu_join *join, uint32_t correlation);
bool weir_gpu_join_is_step(const struct weir_trace *trace, const struct weir_event *event);

/* gpu_events.c: adds what is no call. */
void weir_gpu_join_events(struct weir_gpu_join *join);
/* gpu_join_clocks.c: adds the stages inside kernels, from the event first on; the calls are in any order. */
void weir_gpu_join_clocks(struct weir_gpu_join *join, size_t first);

#endif
