/* profile_parts.h: declarations shared by the files that implement weir.profile. */
#ifndef WEIR_PYTHON_SRC_PROFILE_PARTS_H
#define WEIR_PYTHON_SRC_PROFILE_PARTS_H

#include "python/src/py.h"
#include "weir/recorder.h"

struct weir_loader;
struct weir_trace;

/* Returns a new object that owns the trace. The trace is freed on failure. */
PyObject *weir_profile_trace_new(struct weir_trace *trace);

/* ---- open loaders, of which a trace contains the latest; these functions do not need the interpreter's lock ---- */

void weir_profile_loader_opened(const struct weir_loader *loader);
/* Call this before the loader is closed. */
void weir_profile_loader_closes(const struct weir_loader *loader);
/* Records the counters of the latest loader (weir_profiler_config.on_sample). */
void weir_profile_count_loader(void *unused);
/* Writes the latest loader's workers and memory as JSON members for a trace file; empty without a loader. */
void weir_profile_loader_text(char *text, size_t size);

/* ---- stacks of Python functions, for with_stack ---- */

/* Returns the number of the calling thread's stack (weir_stack_text), or 0 if it is unavailable. Requires the
 * interpreter's lock. Clears all exceptions. */
uint32_t weir_profile_stack(void);

/* Attaches the current stack to the calling thread's next records, if stacks are being recorded. Returns the previous
 * value of weir_stack_self, so that the caller can restore it. */
static inline uint32_t weir_profile_stack_here(void)
{
    uint32_t before = weir_stack_self;
    if (weir_recording() & WEIR_RECORDING_STACKS)
        weir_stack_self = weir_profile_stack();
    return before;
}

#endif
