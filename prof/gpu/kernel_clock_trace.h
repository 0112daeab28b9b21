/* kernel_clock_trace.h: clocks inside kernels, read from a trace (gpu_join_clocks.c) and summed by kernel. */
#ifndef WEIR_PROF_GPU_KERNEL_CLOCK_TRACE_H
#define WEIR_PROF_GPU_KERNEL_CLOCK_TRACE_H

#include "weir/base.h"
#include "weir/kernel_clock.h"
#include "weir/trace.h"

enum { WEIR_KERNEL_CLOCKS_MAX = 64 };

struct weir_kernel_clocks {
    struct weir_kernel_clock *at; /* in order of their first run */
    int n;
    uint64_t left_out; /* blocks of further kernels, and laps outside any block's range */
};

/* Requires a sorted trace with any content. Returns 0 or -ENOMEM, which leaves clocks empty. */
int weir_kernel_clocks_make(struct weir_kernel_clocks *clocks, const struct weir_trace *trace);
void weir_kernel_clocks_clear(struct weir_kernel_clocks *clocks);

/* Prints nothing if there are no clocks. */
void weir_kernel_clocks_print(FILE *out, const struct weir_kernel_clocks *clocks);
/* Prints the clocks of a trace; nothing if there are none or memory is short. */
void weir_kernel_clocks_print_trace(FILE *out, const struct weir_trace *trace);
/* Writes the member "kernel_clocks" of the open JSON object. */
void weir_kernel_clocks_json(struct weir_json *json, const struct weir_kernel_clocks *clocks);
/* Writes one CSV file: the stages of each kernel, then those of each iteration of each block in the trace. */
int weir_kernel_clocks_export(const struct weir_kernel_clocks *clocks, const struct weir_trace *trace, const char *path,
                              struct weir_err *err);

#endif
