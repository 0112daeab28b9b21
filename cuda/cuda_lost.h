/* cuda_lost.h: what the runtime's errors mean, and the words for them. Of the CUDA module. Errors are cudaError_t. */
#ifndef WEIR_CUDA_CUDA_LOST_H
#define WEIR_CUDA_CUDA_LOST_H

#include "base/err.h"

#include <stdbool.h>

/* After these the context is of no use, whatever is done, and every later call has the same one. */
bool weir_cuda_is_lost(int error);

/* gpu: "GPU 0 (NVIDIA H200)"; doing: "waiting for an event". -EIO, -ENOMEM; the runtime forgets the error. */
int weir_cuda_failed(int error, const char *gpu, const char *doing, struct weir_err *err);

#endif
