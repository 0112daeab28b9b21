/* trace_read.h: reads a chrome trace, Weir's or torch.profiler's, plain or gzip, element by element. */
#ifndef WEIR_PROF_TRACE_TRACE_READ_H
#define WEIR_PROF_TRACE_TRACE_READ_H

#include "weir/base.h"
#include "weir/trace.h"

/* Whether the file is a trace, by its first bytes. False also for files that cannot be read. */
bool weir_trace_recognised(const char *path);

/* The whole trace. Ranges, instants, counters and [memory] events; flows and async ranges are left out. Errors name the
 * file, where in it, and what to do. */
int weir_trace_read(struct weir_trace **out, const char *path, struct weir_err *err);

#endif
