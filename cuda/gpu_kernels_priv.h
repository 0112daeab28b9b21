/* gpu_kernels_priv.h: the kernels, as C calls. They return a cudaError_t; streams are cudaStream_t. The GPU's context
 * is current. */
#ifndef WEIR_CUDA_GPU_KERNELS_PRIV_H
#define WEIR_CUDA_GPU_KERNELS_PRIV_H

#include "pipeline/gpu/gpu_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads them all, but those with clocks: the first launch of a kernel that is not loaded may wait for everything that
 * runs. */
int weir_gpu_kernels_load(void);

/* As weir_gpu_ops.prepare; what was given makes sense. */
int weir_gpu_kernels_prepare(const struct weir_gpu_prepare *prepare, int sms, void *stream);
/* Loads those with clocks, too: who asks for readings is about to launch them. */
int weir_gpu_kernels_clock_samples(uint64_t *to, uint32_t n, void *stream);
int weir_gpu_kernels_busy(uint64_t ns, int sms, void *stream);

#ifdef __cplusplus
}
#endif

#endif
