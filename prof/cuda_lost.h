/* cuda_lost.h: which of the runtime's errors mean that the GPU is lost to the process. Of the CUDA module. */
#ifndef WEIR_PROF_CUDA_LOST_H
#define WEIR_PROF_CUDA_LOST_H

#include <stdbool.h>

/* error: a cudaError_t. After these the context is of no use, whatever is done, and every later call has the same one.
 */
bool weir_cuda_is_lost(int error);

#endif
