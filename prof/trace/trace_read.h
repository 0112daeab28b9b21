/* trace_read.h: reads a chrome trace, Weir's or torch.profiler's, plain or gzip, element by element. */
#ifndef WEIR_PROF_TRACE_TRACE_READ_H
#define WEIR_PROF_TRACE_TRACE_READ_H

#include "weir/base.h"
#include "weir/trace.h"

/* Whether the file is a trace, judged by its first bytes. False for unreadable files. */
bool weir_trace_recognised(const char *path);

/* Reads a whole trace: ranges, instants, counters and [memory] events; not flows and async ranges. Errors name the
 * file, the place in it, and the remedy. */
int weir_trace_read(struct weir_trace **out, const char *path, struct weir_err *err);

#endif
