/* gpu_timing.h: weir.stage(cuda=True), which times stages with events on the stream that is current when they begin. */
#ifndef WEIR_PYTHON_SRC_GPU_TIMING_H
#define WEIR_PYTHON_SRC_GPU_TIMING_H

#include "python/src/py.h"
#include "weir/report.h"

/* Returns 0, or -EPERM if a parent process has used a GPU, because CUDA then does not work in a child of fork(). */
int weir_gpu_usable(struct weir_err *err);
/* Declares that this process uses a GPU. what names the user in errors. Returns 0, or -1 with an exception if the GPU
 * is not usable. */
int weir_gpu_use(const char *what);

/* Returns 0 if there is a GPU whose stages can be timed, or -1 with an exception. */
int weir_gpu_timing_check(void);
/* Begins a stage on this thread. Returns 0, or -1 with an exception. */
int weir_gpu_timing_begin(int stage);
/* Ends the innermost open call of the stage, and all calls inside it. */
void weir_gpu_timing_end(int stage);
/* Ends all stages that are open on this thread. */
void weir_gpu_timing_end_thread(void);

/* Stores the totals of the calls timed so far in *mark, which must be NULL or an earlier mark. Returns 0 or -ENOMEM.
 * The caller frees the mark with weir_gpu_timing_unmark, which accepts a NULL mark. */
struct weir_gpu_mark;
int weir_gpu_timing_mark(struct weir_gpu_mark **mark);
void weir_gpu_timing_unmark(struct weir_gpu_mark **mark);
/* Adds rows for the calls that completed since the mark then, or for all calls if then is NULL. */
void weir_gpu_timing_add(struct weir_report_gpu *gpu, const struct weir_gpu_mark *then);

#endif
