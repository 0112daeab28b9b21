/* gpu_device.h: the members of struct weir_device, an open GPU. */
#ifndef WEIR_PIPELINE_GPU_GPU_DEVICE_H
#define WEIR_PIPELINE_GPU_GPU_DEVICE_H

#include "pipeline/gpu/gpu.h"
#include "pipeline/gpu/gpu_ops.h"

#include <stdatomic.h>

struct weir_device {
    _Atomic int users; /* references; dropping the last one closes the GPU */
    const struct weir_gpu_ops *ops;
    struct weir_gpu *gpu;
    int number;
    struct weir_gpu_info info;
};

#endif
