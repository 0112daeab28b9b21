#include "bench/bench_gpu.h"
#include "prof/gpu/cuda_module.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bench_gpu_find_module(void)
{
    char path[PATH_MAX], module[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        return;
    path[n] = '\0';
    *strrchr(path, '/') = '\0';
    snprintf(module, sizeof module, "%s/../libweir_cuda.so", path);
    if (access(module, R_OK) == 0)
        setenv("WEIR_CUDA_MODULE", module, 0);
}

int bench_gpu_open(const struct weir_gpu_ops **ops, struct weir_gpu **gpu, struct weir_err *err)
{
    const struct weir_cuda_module *module;
    bench_gpu_find_module();
    int rc = weir_cuda_module_open(&module, err);
    if (rc == 0 && !module->gpu)
        rc = weir_err_set(err, -ENODEV, "%s has no GPU", weir_cuda_module_path());
    if (rc < 0)
        return rc;
    *ops = module->gpu;
    return module->gpu->open(gpu, 0, err);
}
