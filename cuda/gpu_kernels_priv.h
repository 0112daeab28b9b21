/* gpu_kernels_priv.h: C functions that launch the kernels. They return a cudaError_t; streams are cudaStream_t. The
 * GPU's context must be current. */
#ifndef WEIR_CUDA_GPU_KERNELS_PRIV_H
#define WEIR_CUDA_GPU_KERNELS_PRIV_H

#include "pipeline/gpu/gpu_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads all kernels that have no stage clocks, because the first launch of a kernel that is not loaded can wait for all
 * running work. */
int weir_gpu_kernels_load(void);

/* Implements weir_gpu_ops.prepare. The arguments must have been checked. */
int weir_gpu_kernels_prepare(const struct weir_gpu_prepare *prepare, int sms, void *stream);
/* Implements weir_gpu_ops.clock_samples. Also loads the kernels that have stage clocks, because the clock is sampled
 * before their first launch. */
int weir_gpu_kernels_clock_samples(uint64_t *to, uint32_t n, void *stream);
int weir_gpu_kernels_busy(uint64_t ns, int sms, void *stream);

#ifdef __cplusplus
}
#endif

#endif
