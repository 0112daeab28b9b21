/* cuda_context.h: reads and sets the calling thread's current CUDA context. Functions of the CUDA module that run in
 * the program's threads restore with it what they found. cudaSetDevice could not put back that there was none, and
 * would make one on GPU 0 in the attempt. Any thread. */
#ifndef WEIR_CUDA_CUDA_CONTEXT_H
#define WEIR_CUDA_CUDA_CONTEXT_H

/* A CUcontext; NULL = none, or no driver. */
void *weir_cuda_context_now(void);
void weir_cuda_context_set(void *context);

#endif
