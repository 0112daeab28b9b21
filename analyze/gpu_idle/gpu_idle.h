/* gpu_idle.h: finds the causes of a GPU's idle time in a trace.
 *
 *     struct weir_gpu_idle idle;
 *     weir_steps_split(trace, &steps);
 *     weir_gpu_idle_make(&idle, trace, steps, n_steps);
 *     weir_gpu_idle_print(stdout, &idle);
 *     weir_gpu_idle_clear(&idle);
 *
 * The activities of a device (kernels, copies, memsets) are merged over its streams. Each gap between activities is
 * divided according to the states of the thread that launched the next activity, from the start of the gap to this
 * launch. docs/internals/trace.md explains the rules. Times are in ns. These functions read no clock and no file. Only
 * one thread at a time can use a trace. */
#ifndef WEIR_ANALYZE_GPU_IDLE_GPU_IDLE_H
#define WEIR_ANALYZE_GPU_IDLE_GPU_IDLE_H

#include "weir/base.h"
#include "weir/report.h"
#include "weir/trace.h"

#include <stdint.h>
#include <stdio.h>

/* If host code in a gap runs longer than this without the start or end of an operator or CUDA call, it counts as other
 * host code. Python and the autograd engine take less time between two operators (0.34 ms in a trace of PyTorch 2.11).
 */
#define WEIR_IDLE_HOST_CODE_NS 1000000

enum weir_idle_cause {
    WEIR_IDLE_LAUNCHING,   /* operators and launch calls, and the latency between launch and start */
    WEIR_IDLE_SYNC,        /* during a synchronising call, and after one that drained the queue */
    WEIR_IDLE_DATA,        /* the thread waits for data */
    WEIR_IDLE_ALLOCATING,  /* the thread allocates or frees device memory or pinned memory */
    WEIR_IDLE_QUEUED,      /* the next activity was launched before the gap began */
    WEIR_IDLE_OTHER,       /* other or unknown host code */
    WEIR_IDLE_MEASUREMENT, /* in a range named "measurement", for a harness's own synchronisation; never the first cause
                            */
    WEIR_IDLE_CAUSES,
    WEIR_IDLE_COPIES = WEIR_IDLE_CAUSES, /* first cause only: the GPU is not idle, but runs only copies */
    WEIR_IDLE_NONE
};

/* Figures of one device. idle_ns is the sum of cause_ns, and busy_ns + idle_ns is end_ns - begin_ns. */
struct weir_idle_device {
    int64_t device;
    /* From the start of the first step or activity to the end of the last step or activity. */
    int64_t begin_ns, end_ns;
    int64_t busy_ns, idle_ns;
    int64_t copies_alone_ns;               /* part of busy_ns with copies but no kernel or memset */
    int64_t pageable_ns;                   /* part of busy_ns with copies from the host's pageable memory */
    int64_t before_ns, after_ns;           /* parts of idle_ns before the first and after the last activity */
    int64_t cause_ns[WEIR_IDLE_CAUSES];    /* parts of idle_ns by cause */
    uint64_t cause_gaps[WEIR_IDLE_CAUSES]; /* number of gaps with this cause as their largest part */
    uint64_t kernels, copies;              /* number of kernels and of copies; excludes memsets */
    uint64_t step_kernels;                 /* number of kernels launched during the steps */
    /* Launches into an empty queue. Their delay is the time from the end of the launch call to the activity's start, at
     * least 0. */
    uint64_t launches;
    int64_t delay_p50_ns, delay_p99_ns;
};

/* The loader that the training loop waits for, according to the names of its waits. */
enum weir_idle_loader {
    WEIR_IDLE_LOADER_UNKNOWN,
    WEIR_IDLE_LOADER_INLINE,  /* a DataLoader of PyTorch with num_workers=0 */
    WEIR_IDLE_LOADER_WORKERS, /* a DataLoader with worker processes, which its trace does not contain */
    WEIR_IDLE_LOADER_WEIR
};

/* The thread of the steps, from the start of the first step to the end of the last. Without steps, times are 0. */
struct weir_idle_loop {
    int64_t ns, wait_ns; /* wait_ns: the thread waits for data */
    /* The shortest and longest wait of a step. 0 if the trace has WEIR_IDLE_ENOUGH_STEPS or more. */
    int64_t step_wait_min_ns, step_wait_max_ns;
    enum weir_idle_loader loader;
};

struct weir_gpu_idle {
    struct weir_idle_device *devices; /* sorted by number */
    int n_devices;
    uint64_t devices_left_out; /* devices beyond WEIR_IDLE_DEVICES_MOST */
    int64_t n_steps;           /* 0 if the trace has no steps */
    struct weir_idle_loop loop;
};

enum {
    WEIR_IDLE_DEVICES_MOST = 64,
    WEIR_IDLE_ENOUGH_STEPS = 10 /* number of steps that show the bursts of a loader with several workers */
};

/* Analyses a trace, whose events can be in any order. steps is the result of weir_steps_split and can be empty. Returns
 * 0, or -ENOMEM with an empty result. */
int weir_gpu_idle_make(struct weir_gpu_idle *idle, const struct weir_trace *trace, const struct weir_step *steps,
                       int64_t n_steps);
void weir_gpu_idle_clear(struct weir_gpu_idle *idle);

/* Returns the largest cause, including copies alone, or WEIR_IDLE_NONE if it takes less than 5 % of the time. */
enum weir_idle_cause weir_gpu_idle_first(const struct weir_idle_device *device);

/* Returns the largest cause of idle time except measurement, or WEIR_IDLE_NONE if the device was never idle. */
enum weir_idle_cause weir_gpu_idle_largest(const struct weir_idle_device *device);
/* Returns a name such as "waiting for data", or "none" for WEIR_IDLE_NONE. */
const char *weir_idle_cause_name(enum weir_idle_cause cause);
/* Returns the mean time of a step without the wait for data: of the loop's thread or of the GPU (device can be NULL),
 * whichever is longer. Returns -1 if the trace has no steps or its loop never waits for data. */
int64_t weir_gpu_idle_step_ns(const struct weir_gpu_idle *idle, const struct weir_idle_device *device);

/* Prints a block per device: the main cause of idle time, what helps, and a table. Without devices it prints the loop's
 * wait for data. */
void weir_gpu_idle_print(FILE *out, const struct weir_gpu_idle *idle);
/* Fills in a report's figures for GPU `number`. If the trace does not contain this GPU, traced_s is 0. */
void weir_gpu_idle_report(struct weir_report_idle *report, const struct weir_gpu_idle *idle, int64_t number);
/* Adds the member "gpu_idle" to the open JSON object. */
void weir_gpu_idle_json(struct weir_json *json, const struct weir_gpu_idle *idle);

#endif
