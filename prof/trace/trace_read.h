/* trace_read.h: reads a Chrome trace written by Weir or torch.profiler, plain or gzip, one element at a time. */
#ifndef WEIR_PROF_TRACE_TRACE_READ_H
#define WEIR_PROF_TRACE_TRACE_READ_H

#include "weir/base.h"
#include "weir/trace.h"

/* Returns whether the file is a trace, judging by its first bytes, or by its name if it is empty or damaged. Returns
 * false for files that cannot be opened. */
bool weir_trace_recognised(const char *path);

/* Reads a trace's ranges, instants, counters and [memory] events; skips flows and async ranges. Error messages contain
 * the file name and, if the file is damaged, the byte offset. */
int weir_trace_read(struct weir_trace **out, const char *path, struct weir_err *err);

/* The same, with the events' other args (weir_event.args), the devices, and the operators' FLOPs that weir.profile adds
 * to a trace of torch.profiler, which has none: the last member, "weir_flops": {"EXTERNAL ID": FLOPS}. */
int weir_trace_read_whole(struct weir_trace **out, const char *path, struct weir_err *err);

/* Reads a trace that torch.profiler recorded in this process during the window of `trace` and adds it to `trace`, which
 * stays sorted. Ranges of threads are cut to the window; events outside it are left out,
 * except work of devices, which may run later. External ids are moved above the numbers in `trace`. After an error
 * `trace` is incomplete. */
int weir_trace_merge(struct weir_trace *trace, const char *path, struct weir_err *err);

#endif
