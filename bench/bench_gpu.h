/* bench_gpu.h: GPU access for benchmarks that do not use the loader. */
#ifndef WEIR_BENCH_BENCH_GPU_H
#define WEIR_BENCH_BENCH_GPU_H

#include "pipeline/gpu/gpu_ops.h"

/* Unless WEIR_CUDA_MODULE is set, points it to the module in the folder above this program's, if there is one. Call it
 * before starting threads. */
void bench_gpu_find_module(void);

/* Opens GPU 0 through the CUDA module named by WEIR_CUDA_MODULE, else through the one beside the program weir in the
 * folder above this program's. Close it with (*ops)->close. Returns -ENODEV when there is nothing to measure. Call it
 * before starting threads. */
int bench_gpu_open(const struct weir_gpu_ops **ops, struct weir_gpu **gpu, struct weir_err *err);

#endif
