/* kernel_clock_trace.h: reads clocks inside kernels from a trace (written by gpu_join_clocks.c) and adds them up per
 * kernel. */
#ifndef WEIR_PROF_GPU_KERNEL_CLOCK_TRACE_H
#define WEIR_PROF_GPU_KERNEL_CLOCK_TRACE_H

#include "weir/base.h"
#include "weir/kernel_clock.h"
#include "weir/trace.h"

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
