/* gpu_trace.h: the GPU part of a recording window. It is collected through the CUDA module (gpu_trace.c) and added to
 * the records of our own threads (gpu_join.c, gpu_events.c). One recording at a time. */
#ifndef WEIR_PROF_GPU_GPU_TRACE_H
#define WEIR_PROF_GPU_GPU_TRACE_H

#include "weir/base.h"
#include "weir/kernel_clock.h"
#include "weir/trace.h"

struct weir_gpu_take; /* the result of one recording */

/* Checks whether GPUs can be recorded here. Returns 0, or the error that weir_gpu_take_start would return. Writes the
 * version of the library, such as "CUPTI 13.0 (API 130001)". */
int weir_gpu_take_check(char *library, size_t size, struct weir_err *err);

/* Starts recording kernels, copies, memsets, calls and synchronisation, and allocations if `memory` is set. bytes_max
 * limits the size of the records. The first call loads CUPTI, which takes a while. Returns -ENODEV, -ENOTSUP or -EBUSY
 * if GPUs cannot be recorded here, with the reason in err. */
int weir_gpu_take_start(uint64_t bytes_max, bool memory, struct weir_err *err);
/* Returns whether the program itself reports its allocations on this GPU. Its reports replace CUPTI's, which show only
 * the memory pools from which the program allocates. */
typedef bool weir_gpu_own_memory_fn(int device);
/* Waits for all launched GPU work and ends the recording. The caller owns *out. It can be set although the call failed,
 * and is NULL after a successful call if nothing was recorded. */
int weir_gpu_take_stop(struct weir_gpu_take **out, weir_gpu_own_memory_fn *own_memory, struct weir_err *err);
/* Accepts NULL. */
void weir_gpu_take_free(struct weir_gpu_take **take);
/* Returns the number of lost records; accepts NULL. */
uint64_t weir_gpu_take_dropped(const struct weir_gpu_take *take);

/* Adds GPU records to the trace of a window, which already contains the window's ranges: calls on their threads' rows,
 * GPU work on separate rows, External ids, annotations, memory, devices and versions. begin_ns and end_ns are the
 * window's times from weir_gpu_now_ns; begin_ns corresponds to the trace's begin_ns. Work launched in the window
 * belongs to the window even if it ran later. Returns 0 or -ENOMEM. */
int weir_gpu_join(struct weir_trace *trace, const struct weir_gpu_take *take, uint64_t begin_ns, uint64_t end_ns);

/* Returns the time on the records' clock: ticks of weir_clock, in ns. */
uint64_t weir_gpu_now_ns(void);

/* ---- kernel_clock_trace.c: reads clocks inside kernels from a trace (written by gpu_join_clocks.c) and adds them up
 * per kernel. */

enum { WEIR_KERNEL_CLOCKS_MAX = 64 };

struct weir_kernel_clocks {
    struct weir_kernel_clock *at; /* in order of each kernel's first block */
    int n;
    uint64_t left_out; /* blocks of kernels beyond WEIR_KERNEL_CLOCKS_MAX, and laps outside all blocks */
};

/* Reads the clocks of a trace, which must be sorted. Returns 0, or -ENOMEM with empty clocks. */
int weir_kernel_clocks_make(struct weir_kernel_clocks *clocks, const struct weir_trace *trace);
void weir_kernel_clocks_clear(struct weir_kernel_clocks *clocks);

/* Prints the clocks, or nothing if none exist. */
void weir_kernel_clocks_print(FILE *out, const struct weir_kernel_clocks *clocks);
/* Prints the clocks of a trace, or nothing if none exist or memory is short. */
void weir_kernel_clocks_print_trace(FILE *out, const struct weir_trace *trace);
/* Adds the member "kernel_clocks" to the open JSON object. */
void weir_kernel_clocks_json(struct weir_json *json, const struct weir_kernel_clocks *clocks);
/* Writes one CSV file: first the stages of each kernel, then the stages of each iteration of each block. */
int weir_kernel_clocks_export(const struct weir_kernel_clocks *clocks, const struct weir_trace *trace, const char *path,
                              struct weir_err *err);

#endif
