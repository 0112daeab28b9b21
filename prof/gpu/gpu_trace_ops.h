/* gpu_trace_ops.h: functions that record GPU work and CUDA calls while a window records. Implemented by the CUDA module
 * (cupti.c) and by a stand-in for tests.
 *
 * Times are in ns on the clock passed to start. One recording at a time. Its result can be read on another thread while
 * the next recording runs. */
#ifndef WEIR_PROF_GPU_GPU_TRACE_OPS_H
#define WEIR_PROF_GPU_GPU_TRACE_OPS_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_gpu_record_kind {
    WEIR_GPU_RECORD_RUNTIME, /* a runtime API call (below: a driver API call): name, tid, correlation */
    WEIR_GPU_RECORD_DRIVER,
    WEIR_GPU_RECORD_KERNEL,
    WEIR_GPU_RECORD_COPY,
    WEIR_GPU_RECORD_MEMSET,
    WEIR_GPU_RECORD_SYNC,     /* a thread waits for an event, a stream or the context, or a stream waits for an event */
    WEIR_GPU_RECORD_MEMORY,   /* GPU memory allocated (bytes > 0) or freed */
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
        *name; /* of kernels: demangled; of calls: without suffixes such as _v7000. Valid until the records are freed */
    int32_t pid, tid;                 /* calls and memory only */
    uint32_t cbid;                    /* calls only: CUPTI's id of the function */
    uint32_t correlation;             /* same number for a call and the GPU work that it caused; 0 = none */
    uint32_t device, context, stream; /* stream: UINT32_MAX = none, in waits for an event or a context */
    uint64_t bytes;                   /* copies and memsets only */
    int64_t memory_bytes;             /* memory only; negative if freed */
    uint64_t address;
    /* Kernels only: */
    uint32_t grid[3], block[3];
    uint32_t registers, static_shared_bytes, dynamic_shared_bytes;
    uint32_t graph, graph_node; /* 0 = not from a graph; also set for copies and memsets */
    float occupancy; /* number of this kernel's blocks that fit on a multiprocessor at the same time; 0 = unknown */
    /* Copies and memsets only: names in traces, such as "HtoD", "Pinned" and "Device". */
    const char *copy_kind, *from_kind, *to_kind;
    int32_t from_device, to_device; /* -1 except in copies between GPUs */
    /* Synchronisation only. sync is an enum weir_gpu_sync. Waits for an event contain the event, and the call and
     * stream that last recorded it. */
    uint8_t sync;
    uint32_t event;
    int64_t recorded_by; /* correlation number of the call; -1 = unknown */
    int64_t recorded_on; /* number of the stream; -1 = unknown */
};

/* Device properties, with the names that traces use. */
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
    uint64_t (*now_ns)(void); /* monotonic, callable on any thread, and the same in all recordings of a process */
    uint64_t bytes_max;       /* limit of the records' size; records beyond it are dropped and counted */
    bool memory;              /* record memory events */
};

struct weir_gpu_trace_ops {
    /* Returns 0 if recording works in this process. Otherwise returns an error, with the reason in err (no driver,
     * CUPTI in use by another tool, no permission). */
    int (*check)(struct weir_err *err);
    /* Writes the library's version, such as "CUPTI 13.0 (API 130001)". */
    void (*library)(char *text, size_t size);
    /* Starts recording. The first call loads CUPTI. On failure nothing is recorded; errors are the same as in check. */
    int (*start)(const struct weir_gpu_trace_config *config, struct weir_err *err);
    /* Ends the recording: waits for the GPUs, collects the records, and tears CUPTI down, so that later launches have
     * no overhead. The caller owns *records. It can be set even after a failure, because a failed tear-down is an
     * error, and is NULL if there are no records. */
    int (*stop)(struct weir_gpu_records **records, struct weir_err *err);
    /* Passes each record to on_record, in no particular order. Can be called repeatedly and on any thread, but not
     * concurrently. */
    void (*each)(struct weir_gpu_records *records, void (*on_record)(void *user, const struct weir_gpu_record *record),
                 void *user);
    /* Returns the number of lost records. */
    uint64_t (*dropped)(const struct weir_gpu_records *records);
    /* Accepts NULL. */
    void (*free)(struct weir_gpu_records *records);
    /* Fills at most n entries. Returns the number of devices or -errno. */
    int (*properties)(struct weir_gpu_properties *properties, int n, struct weir_err *err);
    /* Returns the versions of driver, runtime and CUPTI, such as 13000, 13000 and 130001. */
    void (*versions)(int *driver, int *runtime, int *cupti);
};

/* ---- Ranges for Nsight Systems; implemented by the CUDA module (nvtx_cuda.c). */

struct weir_nvtx_ops {
    /* Returns whether a tool is attached; Nsight attaches itself when the program starts. Without a tool, every call
     * costs only a load and a branch. */
    int (*active)(void);
    /* Returns a handle for a string. It is created once and stays valid until the process ends. */
    void *(*intern)(const char *text);
    /* Open and close a range of the calling thread in the domain "weir". Ranges nest. */
    void (*push)(void *text, uint64_t item);
    void (*pop)(void);
    void (*name_thread)(uint32_t tid, const char *name);
};

#endif
