/* gpu_trace.h: the GPUs' part of a recorded window: asked for through the CUDA module (gpu_trace.c), and joined with
 * what our own threads recorded (gpu_join.c, gpu_events.c). One recording at a time. */
#ifndef WEIR_PROF_GPU_GPU_TRACE_H
#define WEIR_PROF_GPU_GPU_TRACE_H

#include "weir/base.h"
#include "weir/trace.h"

struct weir_gpu_take; /* what one recording brought */

/* Whether recording works here: 0, or why not as start would say. library: "CUPTI 13.0 (API 130001)". */
int weir_gpu_take_check(char *library, size_t size, struct weir_err *err);

/* Starts recording: kernels, copies, memsets, calls, synchronisations; memory: allocations as well. bytes_max: of
 * records kept. Loads what it needs the first time, which takes a while. -ENODEV, -ENOTSUP, -EBUSY: cannot be had here,
 * err says why. */
int weir_gpu_take_start(uint64_t bytes_max, bool memory, struct weir_err *err);
/* Whether the program itself records what it allocates on this GPU: its own account is what it means, and allocations
 * that CUPTI sees are the pools below it. */
typedef bool weir_gpu_own_memory_fn(int device);
/* Ends it; waits until the GPUs have done what was launched. *out is the caller's; it may be there although something
 * failed, and NULL although nothing did (there was no recording). */
int weir_gpu_take_stop(struct weir_gpu_take **out, weir_gpu_own_memory_fn *own_memory, struct weir_err *err);
/* Accepts NULL. */
void weir_gpu_take_free(struct weir_gpu_take **take);
/* Records that were lost; take may be NULL. */
uint64_t weir_gpu_take_dropped(const struct weir_gpu_take *take);

/* Adds what belongs to the window to its trace, which holds the window's ranges already: calls on the rows of their
 * threads, what GPUs did on rows of their own, External ids, annotations, memory, devices, versions. begin_ns and
 * end_ns: the window by weir_gpu_now_ns; the first is the trace's begin_ns. What was launched in the window belongs to
 * it even if it ran later. 0 or -ENOMEM. */
int weir_gpu_join(struct weir_trace *trace, const struct weir_gpu_take *take, uint64_t begin_ns, uint64_t end_ns);

/* The clock that records are in: ticks of clock.h as ns. */
uint64_t weir_gpu_now_ns(void);

#endif
