/* trace_write.h: writes a trace as the chrome-trace JSON that Perfetto, TensorBoard's PyTorch plugin and
 * HolisticTraceAnalysis read: docs/trace.md has the dialect. */
#ifndef WEIR_PROF_TRACE_TRACE_WRITE_H
#define WEIR_PROF_TRACE_TRACE_WRITE_H

#include "base/err.h"
#include "prof/trace/events.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sorts the trace and writes it to path (through zlib when the name ends in .gz): aside first, then renamed, so that
 * there is a whole file or none. Errors name the path and what to do. */
int weir_trace_write(struct weir_trace *trace, const char *path, struct weir_err *err);

/* HOST_PID.UNIXNS.pt.trace.json.gz in folder, as TensorBoard's plugin wants it; the folder is made when it is not
 * there. worker: NULL = HOST_PID. */
int weir_trace_path(char *path, size_t size, const char *folder, const char *worker, bool gzip, struct weir_err *err);

#ifdef __cplusplus
}
#endif

#endif
