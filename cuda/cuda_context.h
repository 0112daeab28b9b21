/* cuda_context.h: helpers for functions of the CUDA module that run on the program's threads: the thread's current CUDA
 * context, and errors of the CUDA runtime (cudaError_t). Can be called by any thread. */
#ifndef WEIR_CUDA_CUDA_CONTEXT_H
#define WEIR_CUDA_CUDA_CONTEXT_H

#include "weir/base.h"

#include <stdbool.h>

/* Get and set the thread's current context, a CUcontext; NULL if none exists or no driver. cudaSetDevice cannot be
 * used instead, because it cannot restore NULL; it would create a context on GPU 0. */
void *weir_cuda_context_now(void);
void weir_cuda_context_set(void *context);

/* Whether the error has destroyed the context, so that every later call returns the same error. */
bool weir_cuda_is_lost(int error);
/* Sets err and resets the runtime's last error. Returns -EIO or -ENOMEM. gpu: name for the message, such as "GPU 0
 * (NVIDIA H200)"; doing: the failed operation, such as "waiting for an event". */
int weir_cuda_failed(int error, const char *gpu, const char *doing, struct weir_err *err);

/* ---- cuda_calls.c: keeps CUPTI from being attached to or detached from the driver while one of our threads is in a
 * driver call: CUPTI 13.0 crashes in such a call. */

/* Bracket every use of the driver by a thread that can run while another thread starts or stops recording the GPU. Can
 * be nested. */
void weir_cuda_call_begin(void);
void weir_cuda_call_end(void);

/* Wait for such calls to end and keep new ones from beginning, until weir_cuda_calls_resume. The calls in progress must
 * not depend on this thread, and this thread must not be within a call. */
void weir_cuda_calls_pause(void);
void weir_cuda_calls_resume(void);

#endif
