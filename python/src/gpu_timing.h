/* gpu_timing.h: weir.stage(cuda=True): stages by events on the stream that is current where they begin. */
#ifndef WEIR_PYTHON_SRC_GPU_TIMING_H
#define WEIR_PYTHON_SRC_GPU_TIMING_H

#include "python/src/py.h"
#include "weir/report.h"

/* 0, or -EPERM: the process that this one was forked from uses GPUs, which fork() does not take along. */
int weir_gpu_usable(struct weir_err *err);
/* This process uses GPUs from now on: 0, or -1 with an exception where they are not usable. */
int weir_gpu_use(const char *what);

/* 0 when there is a GPU to time stages on; -1 with an exception. */
int weir_gpu_timing_check(void);
/* A stage begins on this thread, and ends where the same stage began last: 0, or -1 with an exception. */
int weir_gpu_timing_begin(int stage);
void weir_gpu_timing_end(int stage);
/* All that are open on this thread end. */
void weir_gpu_timing_end_thread(void);
/* What was timed so far. *mark is owned by the caller: 0, or -ENOMEM. unmark accepts NULL. */
struct weir_gpu_mark;
int weir_gpu_timing_mark(struct weir_gpu_mark **mark);
void weir_gpu_timing_unmark(struct weir_gpu_mark **mark);
/* Adds the rows of what the GPUs have completed since then; NULL: since the beginning. */
void weir_gpu_timing_add(struct weir_report_gpu *gpu, const struct weir_gpu_mark *then);

/* Sets what gives the current GPU and stream: called without arguments, a tuple of two numbers. */
PyObject *weir_gpu_timing_set(PyObject *module, PyObject *current);

#endif
