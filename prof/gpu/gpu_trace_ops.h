/* gpu_trace_ops.h: what ran on the GPUs, and what the program asked of CUDA, while a window records; implemented by the
 * CUDA module (cupti.c), and by a stand-in for tests.
 *
 * Times are those of the clock that was given, ns. One recording at a time; what it collected outlives it, so that
 * another thread may read it while the next one goes on. */
#ifndef WEIR_PROF_GPU_GPU_TRACE_OPS_H
#define WEIR_PROF_GPU_GPU_TRACE_OPS_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_gpu_record_kind {
    WEIR_GPU_RECORD_RUNTIME, /* a call of the runtime API, or of the driver's: name, tid, correlation */
    WEIR_GPU_RECORD_DRIVER,
    WEIR_GPU_RECORD_KERNEL,
    WEIR_GPU_RECORD_COPY,
    WEIR_GPU_RECORD_MEMSET,
    WEIR_GPU_RECORD_SYNC,     /* a wait: for an event, a stream, the context; or of a stream for an event */
    WEIR_GPU_RECORD_MEMORY,   /* GPU memory taken (bytes > 0) or given back */
    WEIR_GPU_RECORD_OVERHEAD, /* the recording's own */
};

/* As CUpti_ActivitySynchronizationType. */
enum weir_gpu_sync {
    WEIR_GPU_SYNC_UNKNOWN,
    WEIR_GPU_SYNC_EVENT,       /* the host waits for an event */
    WEIR_GPU_SYNC_STREAM_WAIT, /* a stream waits for an event */
    WEIR_GPU_SYNC_STREAM,      /* the host waits for a stream */
    WEIR_GPU_SYNC_CONTEXT,     /* the host waits for all of a context */
};

struct weir_gpu_record {
    uint8_t kind;
    uint64_t start_ns, end_ns;
    const char *name;     /* of kernels demangled, of calls without _v7000 and the like; until the records are freed */
    int32_t pid, tid;     /* of calls and memory */
    uint32_t cbid;        /* of calls: CUPTI's number of the function */
    uint32_t correlation; /* joins a call with what it made the GPU do; 0 = none */
    uint32_t device, context, stream; /* stream UINT32_MAX: none (waits for events, for a context) */
    uint64_t bytes;                   /* of copies and memsets */
    int64_t memory_bytes;             /* of memory: negative when given back */
    uint64_t address;
    /* kernels */
    uint32_t grid[3], block[3];
    uint32_t registers, static_shared_bytes, dynamic_shared_bytes;
    uint32_t graph, graph_node; /* 0 = none; copies and memsets too */
    float occupancy;            /* blocks of this kernel that fit on a multiprocessor at once; 0 = not known */
    /* copies and memsets: "HtoD", "Pinned", "Device" as in a trace's names */
    const char *copy_kind, *from_kind, *to_kind;
    int32_t from_device, to_device; /* of copies between GPUs; else -1 */
    /* synchronisations: enum weir_gpu_sync; of waits for events which event, and of its last record the call and the
     * stream */
    uint8_t sync;
    uint32_t event;
    int64_t recorded_by; /* correlation; -1 = not known */
    int64_t recorded_on; /* stream; -1 = not known */
};

/* As trace files give them. */
struct weir_gpu_properties {
    int id;
    char name[128];
    uint64_t total_bytes;
    int major, minor, threads_per_block, threads_per_multiprocessor, registers_per_block, warp_size;
    uint64_t shared_per_block, shared_per_block_optin, shared_per_multiprocessor;
    int multiprocessors, registers_per_multiprocessor;
};

struct weir_gpu_records; /* what one recording collected */

struct weir_gpu_trace_config {
    uint64_t (*now_ns)(void); /* pure, monotone, any thread; the same in all recordings of a process */
    uint64_t bytes_max;       /* of records kept; more are dropped and counted */
    bool memory;              /* record memory events */
};

struct weir_gpu_trace_ops {
    /* Why nothing can be recorded in this process (no driver, another tool has CUPTI, no permission); 0 when it can. */
    int (*check)(struct weir_err *err);
    /* "CUPTI 13.0 (API 130001)" */
    void (*library)(char *text, size_t size);
    /* Starts recording; the first time loads CUPTI. Fails and records nothing as check does. */
    int (*start)(const struct weir_gpu_trace_config *config, struct weir_err *err);
    /* Ends it: waits for the GPUs, collects, tears CUPTI down so that later launches cost what they did before. The
     * records are the caller's, there even after a failure when something was collected (a tear-down that did not work
     * is reported as an error); NULL: none. */
    int (*stop)(struct weir_gpu_records **records, struct weir_err *err);
    /* Hands them out, in no order; any thread, one at a time, as often as is wanted. */
    void (*each)(struct weir_gpu_records *records, void (*on_record)(void *user, const struct weir_gpu_record *record),
                 void *user);
    /* Records that were lost. */
    uint64_t (*dropped)(const struct weir_gpu_records *records);
    /* Accepts NULL. */
    void (*free)(struct weir_gpu_records *records);
    /* Devices there are; at most n are filled in. Their number, or -errno. */
    int (*properties)(struct weir_gpu_properties *properties, int n, struct weir_err *err);
    /* Driver, runtime and CUPTI versions: 13000, 13000, 130001. */
    void (*versions)(int *driver, int *runtime, int *cupti);
};

#endif
