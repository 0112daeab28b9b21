/* kernel_clock_trace.h: the clocks inside kernels of a trace that has them (gpu_join_clocks.c), added up by kernel. */
#ifndef WEIR_PROF_GPU_KERNEL_CLOCK_TRACE_H
#define WEIR_PROF_GPU_KERNEL_CLOCK_TRACE_H

#include "weir/base.h"
#include "weir/kernel_clock.h"
#include "weir/trace.h"

enum { WEIR_KERNEL_CLOCKS_MAX = 64 };

struct weir_kernel_clocks {
    struct weir_kernel_clock *at; /* in the order in which they first ran */
    int n;
    uint64_t left_out; /* blocks of further kernels, and what no block's range is around */
};

/* The trace is sorted; a file may hold anything. 0 or -ENOMEM, then there are none. */
int weir_kernel_clocks_make(struct weir_kernel_clocks *clocks, const struct weir_trace *trace);
void weir_kernel_clocks_clear(struct weir_kernel_clocks *clocks);

/* Nothing without clocks. */
void weir_kernel_clocks_print(FILE *out, const struct weir_kernel_clocks *clocks);
/* Those of a trace; nothing without clocks, or memory. */
void weir_kernel_clocks_print_trace(FILE *out, const struct weir_trace *trace);
/* The member "kernel_clocks" of an object that is open in json. */
void weir_kernel_clocks_json(struct weir_json *json, const struct weir_kernel_clocks *clocks);
/* One CSV file of all: the stages of each kernel, then those of each iteration of each block of the trace that they are
 * of. */
int weir_kernel_clocks_export(const struct weir_kernel_clocks *clocks, const struct weir_trace *trace, const char *path,
                              struct weir_err *err);

#endif
