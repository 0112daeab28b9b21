#include "prof/gpu/nvml.h"
#include "base/shared_library.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- NVML's ABI ---- */

typedef struct nvml_device *nvml_device;
struct utilization {
    unsigned gpu, memory; /* percent */
};
struct memory {
    unsigned long long total, free, used;
};
struct process {
    unsigned pid;
    unsigned long long used_gpu_memory;
    unsigned gpu_instance_id, compute_instance_id;
};
enum { NVML_SUCCESS = 0, PCIE_TX = 0, PCIE_RX = 1, PROCESSES = 256 };

static struct {
    pthread_once_t once;
    int n; /* GPUs; -1: NVML cannot be used */
    char why[256];
    int (*init)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned index, nvml_device *device);
    int (*name)(nvml_device device, char *name, unsigned size);
    int (*utilization)(nvml_device device, struct utilization *utilization);
    int (*memory)(nvml_device device, struct memory *memory);
    int (*pcie)(nvml_device device, int counter, unsigned *kb_per_s);
    int (*processes)(nvml_device device, unsigned *n, struct process *processes);
} nvml = {.once = PTHREAD_ONCE_INIT, .n = -1};

static void open_library(void)
{
    static const char *const files[] = {"libnvidia-ml.so.1", NULL};
    const struct weir_symbol symbols[] = {
        {"nvmlInit_v2", &nvml.init},
        {"nvmlDeviceGetCount_v2", &nvml.count},
        {"nvmlDeviceGetHandleByIndex_v2", &nvml.handle},
        {"nvmlDeviceGetName", &nvml.name},
        {"nvmlDeviceGetUtilizationRates", &nvml.utilization},
        {"nvmlDeviceGetMemoryInfo", &nvml.memory},
        {"nvmlDeviceGetPcieThroughput", &nvml.pcie},
        {"nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes},
    };
    unsigned n = 0;
    if (!weir_shared_library_open(files, symbols, sizeof symbols / sizeof *symbols, "it is part of NVIDIA's driver",
                                  nvml.why, sizeof nvml.why))
        return;
    int status = nvml.init();
    if (status == NVML_SUCCESS)
        status = nvml.count(&n);
    if (status != NVML_SUCCESS) {
        snprintf(nvml.why, sizeof nvml.why, "NVML cannot reach a driver (status %d)", status);
        return;
    }
    nvml.n = n > WEIR_NVML_GPUS ? WEIR_NVML_GPUS : (int)n;
}

/* ---- queries ---- */

int weir_nvml_count(char *why, size_t why_size)
{
    pthread_once(&nvml.once, open_library);
    if (nvml.n < 0)
        snprintf(why, why_size, "%s", nvml.why);
    return nvml.n;
}

static bool handle_of(nvml_device *device, int index)
{
    pthread_once(&nvml.once, open_library);
    return index >= 0 && index < nvml.n && nvml.handle((unsigned)index, device) == NVML_SUCCESS;
}

static double pcie_bytes_per_s(nvml_device device, int counter)
{
    unsigned kb_per_s;
    return nvml.pcie(device, counter, &kb_per_s) == NVML_SUCCESS ? 1000.0 * kb_per_s : -1;
}

bool weir_nvml_read(struct weir_nvml_gpu *gpu, int index)
{
    nvml_device device;
    struct utilization utilization;
    struct memory memory;
    memset(gpu, 0, sizeof *gpu);
    if (!handle_of(&device, index))
        return false;
    if (nvml.name(device, gpu->name, sizeof gpu->name) != NVML_SUCCESS)
        snprintf(gpu->name, sizeof gpu->name, "GPU %d", index);
    gpu->busy = nvml.utilization(device, &utilization) == NVML_SUCCESS ? utilization.gpu / 100.0 : -1;
    if (nvml.memory(device, &memory) == NVML_SUCCESS) {
        gpu->memory_used_bytes = memory.used;
        gpu->memory_bytes = memory.total;
    }
    gpu->to_gpu_bytes_per_s = pcie_bytes_per_s(device, PCIE_RX);
    gpu->from_gpu_bytes_per_s = pcie_bytes_per_s(device, PCIE_TX);
    return true;
}

bool weir_nvml_has_process(int index, pid_t pid)
{
    nvml_device device;
    struct process processes[PROCESSES];
    unsigned n = PROCESSES;
    if (!handle_of(&device, index) || nvml.processes(device, &n, processes) != NVML_SUCCESS)
        return false;
    for (unsigned i = 0; i < n && i < PROCESSES; i++)
        if (processes[i].pid == (unsigned)pid)
            return true;
    return false;
}
