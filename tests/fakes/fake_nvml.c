/* A stand-in for NVIDIA's libnvidia-ml.so.1: two GPUs. The second one hides everything but its handle, as old GPUs and
 * GPUs in containers do. Process 4242 uses the first. */
#include <string.h>

#define API __attribute__((visibility("default")))

struct nvml_device {
    unsigned index;
};
static struct nvml_device devices[2] = {{0}, {1}};

API int nvmlInit_v2(void);
API int nvmlDeviceGetCount_v2(unsigned *n);
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device);
API int nvmlDeviceGetName(struct nvml_device *device, char *name, unsigned size);
API int nvmlDeviceGetUtilizationRates(struct nvml_device *device, unsigned percent[2]);
API int nvmlDeviceGetMemoryInfo(struct nvml_device *device, unsigned long long memory[3]);
API int nvmlDeviceGetPcieThroughput(struct nvml_device *device, int counter, unsigned *kb_per_s);
struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
API int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned *n, struct process *processes);

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7 };

int nvmlInit_v2(void)
{
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = 2;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device)
{
    if (index > 1)
        return INVALID_ARGUMENT;
    *device = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetName(struct nvml_device *device, char *name, unsigned size)
{
    static const char fake[] = "Fake GPU";
    if (device->index == 1 || size < sizeof fake)
        return NOT_SUPPORTED;
    memcpy(name, fake, sizeof fake);
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, unsigned percent[2])
{
    if (device->index == 1)
        return NOT_SUPPORTED;
    percent[0] = 37;
    percent[1] = 11;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, unsigned long long memory[3])
{
    if (device->index == 1)
        return NOT_SUPPORTED;
    memory[0] = 80ull << 30;
    memory[1] = 70ull << 30;
    memory[2] = 10ull << 30;
    return SUCCESS;
}

int nvmlDeviceGetPcieThroughput(struct nvml_device *device, int counter, unsigned *kb_per_s)
{
    if (device->index == 1)
        return NOT_SUPPORTED;
    *kb_per_s = counter == 1 ? 2000000 : 1000; /* 1: received by the GPU */
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned *n, struct process *processes)
{
    if (device->index == 1)
        return NOT_SUPPORTED;
    if (*n < 1)
        return INSUFFICIENT_SIZE;
    *n = 1;
    memset(processes, 0, sizeof *processes);
    processes[0].pid = 4242;
    return SUCCESS;
}
