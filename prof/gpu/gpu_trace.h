/* gpu_trace.h: the GPU part of a recorded window: collected through the CUDA module (gpu_trace.c) and joined with the
 * records of our own threads (gpu_join.c, gpu_events.c). One recording at a time. */
#ifndef WEIR_PROF_GPU_GPU_TRACE_H
#define WEIR_PROF_GPU_GPU_TRACE_H

#include "weir/base.h"
#include "weir/trace.h"

struct weir_gpu_take; /* the result of one recording */

/* Checks whether recording works here. Returns 0, or the error that start would return. library: "CUPTI 13.0 (API
 * 130001)". */
int weir_gpu_take_check(char *library, size_t size, struct weir_err *err);

/* Starts recording kernels, copies, memsets, calls and synchronisation; with memory, allocations as well. bytes_max:
 * limit of kept records. The first call loads CUPTI, which takes a while. -ENODEV, -ENOTSUP, -EBUSY: not available
 * here, err has the reason. */
int weir_gpu_take_start(uint64_t bytes_max, bool memory, struct weir_err *err);
/* Whether the program itself records its allocations on this GPU. Its records take precedence: allocations seen by
 * CUPTI are the pools below them. */
typedef bool weir_gpu_own_memory_fn(int device);
/* Ends the recording after waiting for all launched GPU work. The caller owns *out, which may be set although the call
 * failed, and NULL although it succeeded (nothing was recorded). */
int weir_gpu_take_stop(struct weir_gpu_take **out, weir_gpu_own_memory_fn *own_memory, struct weir_err *err);
/* Accepts NULL. */
void weir_gpu_take_free(struct weir_gpu_take **take);
/* Number of lost records; take may be NULL. */
uint64_t weir_gpu_take_dropped(const struct weir_gpu_take *take);

/* Adds the window's GPU records to its trace, which already holds the window's ranges: calls on their threads' rows,
 * GPU work on rows of its own, External ids, annotations, memory, devices, versions. begin_ns and end_ns are the window
 * by weir_gpu_now_ns; begin_ns is the trace's begin_ns. Work launched in the window belongs to it even if it ran later.
 * Returns 0 or -ENOMEM. */
int weir_gpu_join(struct weir_trace *trace, const struct weir_gpu_take *take, uint64_t begin_ns, uint64_t end_ns);

/* The records' clock: ticks of weir_clock, as ns. */
uint64_t weir_gpu_now_ns(void);

#endif
