/* gpu_trace_ops.h: records of GPU work and CUDA calls while a window records; implemented by the CUDA module (cupti.c)
 * and by a stand-in for tests.
 *
 * Times are ns of the clock passed to start. One recording at a time; its result outlives it, so that another thread
 * may read it while the next recording runs. */
#ifndef WEIR_PROF_GPU_GPU_TRACE_OPS_H
#define WEIR_PROF_GPU_GPU_TRACE_OPS_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_gpu_record_kind {
    WEIR_GPU_RECORD_RUNTIME, /* a call of the runtime or driver API: name, tid, correlation */
    WEIR_GPU_RECORD_DRIVER,
    WEIR_GPU_RECORD_KERNEL,
    WEIR_GPU_RECORD_COPY,
    WEIR_GPU_RECORD_MEMSET,
    WEIR_GPU_RECORD_SYNC,   /* a wait of a thread for an event, a stream or the context, or of a stream for an event */
    WEIR_GPU_RECORD_MEMORY, /* GPU memory allocated (bytes > 0) or freed */
    WEIR_GPU_RECORD_OVERHEAD, /* overhead of the recording itself */
};

/* Same values as CUpti_ActivitySynchronizationType. */
enum weir_gpu_sync {
    WEIR_GPU_SYNC_UNKNOWN,
    WEIR_GPU_SYNC_EVENT,       /* the host waits for an event */
    WEIR_GPU_SYNC_STREAM_WAIT, /* a stream waits for an event */
    WEIR_GPU_SYNC_STREAM,      /* the host waits for a stream */
    WEIR_GPU_SYNC_CONTEXT,     /* the host waits for all work of a context */
};

struct weir_gpu_record {
    uint8_t kind;
    uint64_t start_ns, end_ns;
    const char
        *name; /* kernels: demangled; calls: without _v7000 and similar suffixes. Valid until the records are freed */
    int32_t pid, tid;                 /* calls and memory only */
    uint32_t cbid;                    /* calls only: CUPTI's number of the function */
    uint32_t correlation;             /* joins a call with the GPU work it caused; 0 = none */
    uint32_t device, context, stream; /* stream UINT32_MAX: none (waits for events or for a context) */
    uint64_t bytes;                   /* copies and memsets only */
    int64_t memory_bytes;             /* memory only; negative = freed */
    uint64_t address;
    /* kernels only */
    uint32_t grid[3], block[3];
    uint32_t registers, static_shared_bytes, dynamic_shared_bytes;
    uint32_t graph, graph_node; /* 0 = none; also set for copies and memsets */
    float occupancy;            /* blocks of this kernel that fit on a multiprocessor at once; 0 = unknown */
    /* copies and memsets only: "HtoD", "Pinned", "Device", as in trace names */
    const char *copy_kind, *from_kind, *to_kind;
    int32_t from_device, to_device; /* copies between GPUs only; otherwise -1 */
    /* Synchronisation only: enum weir_gpu_sync. For waits for an event: the event, and the call and stream of its
     * latest record. */
    uint8_t sync;
    uint32_t event;
    int64_t recorded_by; /* correlation; -1 = unknown */
    int64_t recorded_on; /* stream; -1 = unknown */
};

/* Device properties, as in trace files. */
struct weir_gpu_properties {
    int id;
    char name[128];
    uint64_t total_bytes;
    int major, minor, threads_per_block, threads_per_multiprocessor, registers_per_block, warp_size;
    uint64_t shared_per_block, shared_per_block_optin, shared_per_multiprocessor;
    int multiprocessors, registers_per_multiprocessor;
};

struct weir_gpu_records; /* the result of one recording */

struct weir_gpu_trace_config {
    uint64_t (*now_ns)(void); /* pure, monotonic, any thread; the same function in all recordings of a process */
    uint64_t bytes_max;       /* limit of kept records; more are dropped and counted */
    bool memory;              /* record memory events */
};

struct weir_gpu_trace_ops {
    /* Returns 0 when recording works in this process, or why not (no driver, CUPTI in use by another tool, no
     * permission). */
    int (*check)(struct weir_err *err);
    /* "CUPTI 13.0 (API 130001)" */
    void (*library)(char *text, size_t size);
    /* Starts recording; the first call loads CUPTI. On failure nothing is recorded; errors as for check. */
    int (*start)(const struct weir_gpu_trace_config *config, struct weir_err *err);
    /* Ends the recording: waits for the GPUs, collects, and tears CUPTI down so that later launches are as cheap as
     * before. The caller owns *records, which may be set even after a failure (a failed tear-down is an error); NULL:
     * none. */
    int (*stop)(struct weir_gpu_records **records, struct weir_err *err);
    /* Passes each record to on_record, in no particular order. Any thread, one at a time, repeatable. */
    void (*each)(struct weir_gpu_records *records, void (*on_record)(void *user, const struct weir_gpu_record *record),
                 void *user);
    /* Number of lost records. */
    uint64_t (*dropped)(const struct weir_gpu_records *records);
    /* Accepts NULL. */
    void (*free)(struct weir_gpu_records *records);
    /* Fills at most n entries. Returns the number of devices, or -errno. */
    int (*properties)(struct weir_gpu_properties *properties, int n, struct weir_err *err);
    /* Driver, runtime and CUPTI versions: 13000, 13000, 130001. */
    void (*versions)(int *driver, int *runtime, int *cupti);
};

#endif
