/* gpu_timing.h: weir.stage(cuda=True): stages timed by events on the stream that is current when they begin. */
#ifndef WEIR_PYTHON_SRC_GPU_TIMING_H
#define WEIR_PYTHON_SRC_GPU_TIMING_H

#include "python/src/py.h"
#include "weir/report.h"

/* 0, or -EPERM: the parent process uses GPUs, which do not survive fork(). */
int weir_gpu_usable(struct weir_err *err);
/* Declares that this process uses GPUs: 0, or -1 with an exception if it cannot. */
int weir_gpu_use(const char *what);

/* 0 if there is a GPU to time stages on; -1 with an exception. */
int weir_gpu_timing_check(void);
/* Begins a stage on this thread: 0, or -1 with an exception. */
int weir_gpu_timing_begin(int stage);
/* Ends the stage of this number that began last. */
void weir_gpu_timing_end(int stage);
/* Ends all stages that are open on this thread. */
void weir_gpu_timing_end_thread(void);

/* The calls timed so far. *mark is owned by the caller: 0, or -ENOMEM. unmark accepts NULL. */
struct weir_gpu_mark;
int weir_gpu_timing_mark(struct weir_gpu_mark **mark);
void weir_gpu_timing_unmark(struct weir_gpu_mark **mark);
/* Adds rows for the calls completed since then; NULL: since the beginning. */
void weir_gpu_timing_add(struct weir_report_gpu *gpu, const struct weir_gpu_mark *then);

/* Sets the function that returns the current GPU and stream, a tuple of two numbers. */
PyObject *weir_gpu_timing_set(PyObject *module, PyObject *current);

#endif
