/* nvml.h: utilisation, memory and PCIe traffic of NVIDIA GPUs, from NVML (libnvidia-ml.so.1 of the driver, opened by
 * the first call). No CUDA context is created, so no GPU memory is used. All functions can be called on any thread. */
#ifndef WEIR_PROF_GPU_NVML_H
#define WEIR_PROF_GPU_NVML_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { WEIR_NVML_GPUS = 64 };

struct weir_nvml_gpu {
    char name[96];
    double busy; /* fraction of the last 0.17 to 1 s in which a kernel ran; -1: unknown */
    uint64_t memory_used_bytes, memory_bytes;
    double to_gpu_bytes_per_s, from_gpu_bytes_per_s; /* over PCIe, of the last 20 ms; -1: unknown */
};

/* Returns the number of GPUs, or -1 with one line in why. */
int weir_nvml_count(char *why, size_t why_size);

/* Returns false if the GPU cannot be queried. Takes about 50 ms, because NVML measures PCIe traffic for 20 ms in each
 * direction. */
bool weir_nvml_read(struct weir_nvml_gpu *gpu, int index);

/* Returns whether the process uses the GPU. NVML has the PIDs of the host, so a process is not found inside a container
 * with PIDs of its own. */
bool weir_nvml_has_process(int index, pid_t pid);

#endif
