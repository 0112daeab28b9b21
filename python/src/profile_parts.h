/* profile_parts.h: shared by the files of weir.profile. */
#ifndef WEIR_PYTHON_SRC_PROFILE_PARTS_H
#define WEIR_PYTHON_SRC_PROFILE_PARTS_H

#include "python/src/py.h"
#include "weir/recorder.h"

struct weir_loader;
struct weir_trace;

/* A new object that owns the trace, even after failure. */
PyObject *weir_profile_trace_new(struct weir_trace *trace);

/* ---- the loader opened last, whose state a trace contains; any thread, with or without the interpreter's lock ---- */

void weir_profile_loader_opened(const struct weir_loader *loader);
/* Call before the loader is closed. */
void weir_profile_loader_closes(const struct weir_loader *loader);
/* Records its counters (weir_profiler_config.on_sample). */
void weir_profile_count_loader(void *unused);
/* Its workers and memory as members of a trace file, JSON text; empty without a loader. */
void weir_profile_loader_text(char *text, size_t size);

/* ---- stacks of Python functions, under with_stack ---- */

/* The number of the calling thread's stack (weir_stack_text), 0 if unavailable. Needs the interpreter's lock; leaves no
 * exception. */
uint32_t weir_profile_stack(void);

/* Attaches the stack to the calling thread's records, if a recording has stacks. Returns the previous value of
 * weir_stack_self, for restoring it. */
static inline uint32_t weir_profile_stack_here(void)
{
    uint32_t before = weir_stack_self;
    if (weir_recording() & WEIR_RECORDING_STACKS)
        weir_stack_self = weir_profile_stack();
    return before;
}

#endif
