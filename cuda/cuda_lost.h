/* cuda_lost.h: tells errors of the CUDA runtime after which a GPU cannot be used from others, and makes error lines of
 * them. Part of the CUDA module; errors are cudaError_t. */
#ifndef WEIR_CUDA_CUDA_LOST_H
#define WEIR_CUDA_CUDA_LOST_H

#include "weir/base.h"

#include <stdbool.h>

/* After these errors the context cannot be used any more: every later call returns the same error. */
bool weir_cuda_is_lost(int error);

/* gpu: "GPU 0 (NVIDIA H200)"; doing: "waiting for an event". -EIO, -ENOMEM; the runtime forgets the error. */
int weir_cuda_failed(int error, const char *gpu, const char *doing, struct weir_err *err);

#endif
