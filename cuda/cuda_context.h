/* cuda_context.h: for functions of the CUDA module that run in the program's threads: the thread's current CUDA
 * context, and errors of the CUDA runtime (cudaError_t). Any thread. */
#ifndef WEIR_CUDA_CUDA_CONTEXT_H
#define WEIR_CUDA_CUDA_CONTEXT_H

#include "weir/base.h"

#include <stdbool.h>

/* Get and set the thread's context, a CUcontext; NULL = none, or no driver. cudaSetDevice cannot restore NULL: it would
 * create a context on GPU 0. */
void *weir_cuda_context_now(void);
void weir_cuda_context_set(void *context);

/* Whether the error has destroyed the context: every later call returns the same error. */
bool weir_cuda_is_lost(int error);
/* Sets err and returns -EIO or -ENOMEM; clears the runtime's last error. gpu: "GPU 0 (NVIDIA H200)"; doing: "waiting
 * for an event". */
int weir_cuda_failed(int error, const char *gpu, const char *doing, struct weir_err *err);

#endif
