/* gpu_idle.h: what a GPU waited for while it was idle, from a trace.
 *
 *     struct weir_gpu_idle idle;
 *     weir_steps_split(trace, &steps);
 *     weir_gpu_idle_make(&idle, trace, steps, n_steps);
 *     weir_gpu_idle_print(stdout, &idle);
 *     weir_gpu_idle_clear(&idle);
 *
 * The activities of a device (kernels, copies, memsets) are merged over its streams. Each gap between them is divided
 * by what the thread that launched the next activity did from the gap's beginning to that launch;
 * docs/trace-averages.md has the rules. Times are ns. Nothing here reads a clock or a file. One thread at a time per
 * trace. */
#ifndef WEIR_ANALYZE_GPU_IDLE_GPU_IDLE_H
#define WEIR_ANALYZE_GPU_IDLE_GPU_IDLE_H

#include "weir/base.h"
#include "weir/report.h"
#include "weir/trace.h"

#include <stdint.h>
#include <stdio.h>

/* Host code of a gap that runs longer than this without an operator or a CUDA call that begins or ends is not launching
 * anything. Python and the autograd engine between two operators take less (0.34 ms in a trace of PyTorch 2.11). */
#define WEIR_IDLE_HOST_CODE_NS 1000000

enum weir_idle_cause {
    WEIR_IDLE_LAUNCHING,   /* operators and launch calls; from the end of the launch to the activity's beginning */
    WEIR_IDLE_SYNC,        /* in a synchronising call, and what such a call that drained the queue exposed */
    WEIR_IDLE_DATA,        /* waits for data */
    WEIR_IDLE_ALLOCATING,  /* allocates or frees device or pinned memory */
    WEIR_IDLE_QUEUED,      /* the next activity had been launched before the gap began */
    WEIR_IDLE_OTHER,       /* other host code, or unknown */
    WEIR_IDLE_MEASUREMENT, /* in a range named "measurement": a harness's own synchronisation, never the first cause */
    WEIR_IDLE_CAUSES,
    WEIR_IDLE_COPIES = WEIR_IDLE_CAUSES, /* as first cause: no idle time, but only copies run */
    WEIR_IDLE_NONE
};

/* One device. idle_ns is the sum of cause_ns; busy_ns + idle_ns is end_ns - begin_ns. */
struct weir_idle_device {
    int64_t device;
    /* From the first step's beginning or the first activity's, whichever is earlier, to the last step's end or the last
     * activity's, whichever is later. */
    int64_t begin_ns, end_ns;
    int64_t busy_ns, idle_ns;
    int64_t copies_alone_ns;               /* of busy_ns: copies run, and no kernel or memset */
    int64_t before_ns, after_ns;           /* of idle_ns: before the first activity, after the last */
    int64_t cause_ns[WEIR_IDLE_CAUSES];    /* of idle_ns */
    uint64_t cause_gaps[WEIR_IDLE_CAUSES]; /* gaps that this was the largest part of */
    uint64_t kernels, copies;              /* in the span; memsets are neither */
    uint64_t step_kernels;                 /* launched within the steps */
    /* Launches into an empty queue: the activity's beginning less the end of the launch call, at least 0. */
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

/* steps: of weir_steps_split, which may be none. The events may be in any order. 0 or -ENOMEM, then idle is empty. */
int weir_gpu_idle_make(struct weir_gpu_idle *idle, const struct weir_trace *trace, const struct weir_step *steps,
                       int64_t n_steps);
void weir_gpu_idle_clear(struct weir_gpu_idle *idle);

/* The largest of the causes and of copies alone, if it is at least 5 % of the time; WEIR_IDLE_NONE: none is. */
enum weir_idle_cause weir_gpu_idle_first(const struct weir_idle_device *device);

/* The largest cause of idle time alone, however small, measurement apart; WEIR_IDLE_NONE: the device was never idle. */
enum weir_idle_cause weir_gpu_idle_largest(const struct weir_idle_device *device);
/* "waiting for data"; "none" of WEIR_IDLE_NONE. */
const char *weir_idle_cause_name(enum weir_idle_cause cause);

/* A block for each device, or a line that there is none. */
void weir_gpu_idle_print(FILE *out, const struct weir_gpu_idle *idle);
/* What a report says of it: GPU number's, traced_s 0 when the trace does not have it. */
void weir_gpu_idle_report(struct weir_report_idle *report, const struct weir_gpu_idle *idle, int64_t number);
/* The member "gpu_idle" of an object that is open in json. */
void weir_gpu_idle_json(struct weir_json *json, const struct weir_gpu_idle *idle);

#endif
