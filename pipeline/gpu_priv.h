/* gpu_priv.h: what a GPU in use is made of. */
#ifndef WEIR_PIPELINE_GPU_PRIV_H
#define WEIR_PIPELINE_GPU_PRIV_H

#include "pipeline/gpu.h"
#include "pipeline/gpu_ops.h"

struct weir_device {
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    int number;
    struct weir_gpu_info info;
};

#endif
