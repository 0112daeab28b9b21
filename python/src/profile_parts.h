/* profile_parts.h: what the files that weir.profile is made of share. */
#ifndef WEIR_PYTHON_SRC_PROFILE_PARTS_H
#define WEIR_PYTHON_SRC_PROFILE_PARTS_H

#include "python/src/py.h"

struct weir_trace;

/* weir.record_function. 0, or -1 with an exception, as the others. */
int weir_profile_range_begin(PyObject *module);
/* Traces and their averages. */
int weir_profile_trace_begin(PyObject *module);
/* The class that weir.profile is made of, and what schedules are made of. */
int weir_profile_object_begin(PyObject *module);

/* A new object that owns the trace, also when it fails. */
PyObject *weir_profile_trace_new(struct weir_trace *trace);

#endif
