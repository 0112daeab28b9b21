/* bench_gpu.h: access to GPU 0 for benchmarks that do not use the loader. */
#ifndef WEIR_BENCH_BENCH_GPU_H
#define WEIR_BENCH_BENCH_GPU_H

#include "pipeline/gpu/gpu_ops.h"

/* Sets WEIR_CUDA_MODULE to the CUDA module in the parent of this program's folder, if the module exists there and the
 * variable is not set yet. Call this before starting threads, because it changes the environment. */
void bench_gpu_find_module(void);

/* Opens GPU 0 through the CUDA module, which bench_gpu_find_module locates. Close the GPU with (*ops)->close. Returns
 * -ENODEV if there is no GPU to measure. Call this before starting threads. */
int bench_gpu_open(const struct weir_gpu_ops **ops, struct weir_gpu **gpu, struct weir_err *err);

#endif
