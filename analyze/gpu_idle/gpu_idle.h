/* gpu_idle.h: causes of a GPU's idle time, from a trace.
 *
 *     struct weir_gpu_idle idle;
 *     weir_steps_split(trace, &steps);
 *     weir_gpu_idle_make(&idle, trace, steps, n_steps);
 *     weir_gpu_idle_print(stdout, &idle);
 *     weir_gpu_idle_clear(&idle);
 *
 * Activities of a device (kernels, copies, memsets) are merged over its streams. Each gap between them is divided by
 * the states of the thread that launched the next activity, from the start of the gap to that launch;
 * docs/trace-averages.md has the rules. Times are ns. Nothing here reads a clock or a file. One thread at a time per
 * trace. */
#ifndef WEIR_ANALYZE_GPU_IDLE_GPU_IDLE_H
#define WEIR_ANALYZE_GPU_IDLE_GPU_IDLE_H

#include "weir/base.h"
#include "weir/report.h"
#include "weir/trace.h"

#include <stdint.h>
#include <stdio.h>

/* Host code in a gap that runs longer than this without the start or end of an operator or CUDA call counts as other
 * host code. Python and the autograd engine take less between two operators (0.34 ms in a trace of PyTorch 2.11). */
#define WEIR_IDLE_HOST_CODE_NS 1000000

enum weir_idle_cause {
    WEIR_IDLE_LAUNCHING,   /* operators and launch calls, and latency from the launch to the activity's start */
    WEIR_IDLE_SYNC,        /* in a synchronising call, and after one that drained the queue */
    WEIR_IDLE_DATA,        /* waits for data */
    WEIR_IDLE_ALLOCATING,  /* allocates or frees device or pinned memory */
    WEIR_IDLE_QUEUED,      /* the next activity was launched before the gap */
    WEIR_IDLE_OTHER,       /* other host code, or unknown */
    WEIR_IDLE_MEASUREMENT, /* in a range named "measurement": a harness's own synchronisation, never the first cause */
    WEIR_IDLE_CAUSES,
    WEIR_IDLE_COPIES = WEIR_IDLE_CAUSES, /* as first cause: no idle time, but only copies run */
    WEIR_IDLE_NONE
};

/* One device. idle_ns is the sum of cause_ns; busy_ns + idle_ns is end_ns - begin_ns. */
struct weir_idle_device {
    int64_t device;
    /* From the start of the first step or activity to the end of the last one. */
    int64_t begin_ns, end_ns;
    int64_t busy_ns, idle_ns;
    int64_t copies_alone_ns;               /* of busy_ns: copies run, and no kernel or memset */
    int64_t before_ns, after_ns;           /* of idle_ns: before the first activity, after the last */
    int64_t cause_ns[WEIR_IDLE_CAUSES];    /* of idle_ns */
    uint64_t cause_gaps[WEIR_IDLE_CAUSES]; /* gaps of which this was the largest part */
    uint64_t kernels, copies;              /* in the span; memsets are neither */
    uint64_t step_kernels;                 /* launched within the steps */
    /* Launches into an empty queue: latency from the end of the launch call to the activity's start, at least 0. */
    uint64_t launches;
    int64_t delay_p50_ns, delay_p99_ns;
};

struct weir_gpu_idle {
    struct weir_idle_device *devices; /* by number */
    int n_devices;
    uint64_t devices_left_out; /* beyond WEIR_IDLE_DEVICES_MOST */
    int64_t n_steps;           /* 0: the trace has no steps */
};

enum { WEIR_IDLE_DEVICES_MOST = 64 };

/* steps: of weir_steps_split; may be empty. Events may be in any order. 0 or -ENOMEM; then idle is empty. */
int weir_gpu_idle_make(struct weir_gpu_idle *idle, const struct weir_trace *trace, const struct weir_step *steps,
                       int64_t n_steps);
void weir_gpu_idle_clear(struct weir_gpu_idle *idle);

/* The largest of the causes and copies alone, if it is at least 5 % of the time; else WEIR_IDLE_NONE. */
enum weir_idle_cause weir_gpu_idle_first(const struct weir_idle_device *device);

/* The largest cause of idle time, without measurement; WEIR_IDLE_NONE: the device was never idle. */
enum weir_idle_cause weir_gpu_idle_largest(const struct weir_idle_device *device);
/* "waiting for data"; "none" for WEIR_IDLE_NONE. */
const char *weir_idle_cause_name(enum weir_idle_cause cause);

/* Prints a block per device, or a line that there is none. */
void weir_gpu_idle_print(FILE *out, const struct weir_gpu_idle *idle);
/* Fills in a report's figures of one GPU; traced_s is 0 when the trace does not have it. */
void weir_gpu_idle_report(struct weir_report_idle *report, const struct weir_gpu_idle *idle, int64_t number);
/* Writes the member "gpu_idle" to the open object. */
void weir_gpu_idle_json(struct weir_json *json, const struct weir_gpu_idle *idle);

#endif
