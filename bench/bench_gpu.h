/* bench_gpu.h: the GPU, for a benchmark that drives it without the loader. */
#ifndef WEIR_BENCH_BENCH_GPU_H
#define WEIR_BENCH_BENCH_GPU_H

#include "pipeline/gpu/gpu_ops.h"

/* Unless WEIR_CUDA_MODULE names a module, has it name the one in the folder above this program's, if there is one.
 * Before the program starts threads. */
void bench_gpu_find_module(void);

/* Opens GPU 0 by the CUDA module: the one that WEIR_CUDA_MODULE names, else the one beside the program weir, in the
 * folder above this program's. Close it with (*ops)->close. -ENODEV: there is nothing to be measured here. Before the
 * program starts threads. */
int bench_gpu_open(const struct weir_gpu_ops **ops, struct weir_gpu **gpu, struct weir_err *err);

#endif
