/* Implements gpu_ops.h with the CUDA runtime. Functions run on the program's threads, so each call makes our context
 * current and restores the previous one. */
#include "base/text.h"
#include "cuda/cuda_context.h"
#include "cuda/gpu_kernels_priv.h"
#include "pipeline/gpu/gpu_ops.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

extern const struct weir_gpu_ops weir_gpu_cuda;

struct weir_gpu {
    int number;
    char name[128];
    CUcontext context; /* primary context of the GPU */
    int sms;
    int usual_priority, urgent_priority; /* stream priorities */
};

/* ---- the current context ---- */

/* Begins a call: makes our context current and returns the previous one, for leave(). */
static CUcontext enter(const struct weir_gpu *gpu)
{
    weir_cuda_call_begin();
    CUcontext before = weir_cuda_context_now();
    if (before != gpu->context)
        weir_cuda_context_set(gpu->context);
    return before;
}

static void leave(const struct weir_gpu *gpu, CUcontext before)
{
    if (before != gpu->context)
        weir_cuda_context_set(before);
    weir_cuda_call_end();
}

/* ---- errors ---- */

/* doing: the failed operation, such as "waiting for an event". */
static int fail(const struct weir_gpu *gpu, cudaError_t error, const char *doing, struct weir_err *err)
{
    char name[sizeof gpu->name + 32];
    snprintf(name, sizeof name, "GPU %d (%s)", gpu->number, gpu->name);
    return weir_cuda_failed(error, name, doing, err);
}

/* Ends a call: restores the previous context. Returns 0, or a negative code with err. */
static int done(const struct weir_gpu *gpu, CUcontext before, cudaError_t error, const char *doing,
                struct weir_err *err)
{
    leave(gpu, before);
    return error == cudaSuccess ? 0 : fail(gpu, error, doing, err);
}

static int no_driver(struct weir_err *err)
{
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (driver == 0)
        return weir_err_set(
            err, -ENODEV, "no NVIDIA driver is loaded: libcuda.so.1 is missing or a stub; check that nvidia-smi works");
    return weir_err_set(err, -ENODEV,
                        "the NVIDIA driver supports CUDA %d.%d, but this module needs CUDA %d.%d; update the driver",
                        driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

/* Sets err to the reason why a GPU cannot be opened. */
static int refused(cudaError_t error, const char *what, struct weir_err *err)
{
    cudaGetLastError();
    if (error == cudaErrorInsufficientDriver)
        return no_driver(err);
    if (error == cudaErrorNoDevice)
        return weir_err_set(err, -ENODEV, "the NVIDIA driver reports no GPU%s%s",
                            getenv("CUDA_VISIBLE_DEVICES") ? ": CUDA_VISIBLE_DEVICES is " : "",
                            getenv("CUDA_VISIBLE_DEVICES") ? getenv("CUDA_VISIBLE_DEVICES") : "");
    if (error == cudaErrorMemoryAllocation)
        return weir_err_set(err, -ENOMEM,
                            "%s has too little memory for a context; nvidia-smi lists the processes that use it", what);
    return weir_err_set(err, -ENODEV, "%s cannot be used: %s (%s)", what, cudaGetErrorString(error),
                        cudaGetErrorName(error));
}

/* ---- GPUs ---- */

static int gpu_count(int *n, struct weir_err *err)
{
    *n = 0;
    cudaError_t error = cudaGetDeviceCount(n);
    if (error == cudaSuccess && *n == 0)
        error = cudaErrorNoDevice;
    return error == cudaSuccess ? 0 : refused(error, "CUDA", err);
}

static int check_number(int number, struct weir_err *err)
{
    int n, rc = gpu_count(&n, err);
    if (rc < 0)
        return rc;
    if (number >= 0 && number < n)
        return 0;
    return weir_err_set(err, -ENODEV, "there is no GPU %d: this machine has %d, numbered from 0", number, n);
}

static int attribute(int number, enum cudaDeviceAttr what)
{
    int value = 0;
    if (cudaDeviceGetAttribute(&value, what, number) != cudaSuccess)
        cudaGetLastError();
    return value;
}

/* Reads the number at the start of a PCI device's sysfs file; returns 0 if the file is missing. */
static double pci_number(const char *pci, const char *name)
{
    char path[128], text[64] = "";
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", pci, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (!fgets(text, sizeof text, file))
        text[0] = '\0';
    fclose(file);
    return strtod(text, NULL);
}

/* Returns the PCIe generation for a link speed in GT/s per lane; 0: unknown. */
static int pcie_generation(double gt_per_s)
{
    static const double rates[] = {2.5, 5, 8, 16, 32, 64};
    for (int i = 0; i < (int)(sizeof rates / sizeof rates[0]); i++)
        if (gt_per_s > rates[i] * 0.99 && gt_per_s < rates[i] * 1.01)
            return i + 1;
    return 0;
}

static void describe_link(int number, struct weir_gpu_info *info)
{
    if (cudaDeviceGetPCIBusId(info->pci, sizeof info->pci, number) != cudaSuccess) {
        cudaGetLastError();
        info->pci[0] = '\0';
        return;
    }
    for (char *c = info->pci; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    info->pcie_generation = pcie_generation(pci_number(info->pci, "current_link_speed"));
    info->pcie_width = info->pcie_generation > 0 ? (int)pci_number(info->pci, "current_link_width") : 0;
}

/* Creates the primary context if necessary and makes it current on the calling thread. */
static int make_context(int number, CUcontext *context, struct weir_err *err)
{
    char what[32];
    snprintf(what, sizeof what, "GPU %d", number);
    cudaError_t error = cudaSetDevice(number);
    if (error == cudaSuccess)
        error = cudaFree(NULL); /* before CUDA 12, cudaSetDevice does not create the context */
    if (error != cudaSuccess)
        return refused(error, what, err);
    *context = weir_cuda_context_now();
    return *context ? 0 : weir_err_set(err, -ENODEV, "%s cannot be used: libcuda.so.1 provides no context", what);
}

static int measure_memory(int number, struct weir_gpu_info *info, struct weir_err *err)
{
    CUcontext before = weir_cuda_context_now(), context;
    size_t free_bytes = 0, total_bytes = 0;
    int rc = make_context(number, &context, err);
    if (rc == 0 && cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
        cudaGetLastError();
    info->free_bytes = free_bytes;
    info->total_bytes = total_bytes;
    weir_cuda_context_set(before);
    return rc;
}

static int gpu_describe(int number, bool measure, struct weir_gpu_info *info, struct weir_err *err)
{
    *info = (struct weir_gpu_info){.number = number, .jpeg_engines = -1};
    int rc = check_number(number, err);
    if (rc < 0)
        return rc;
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, number);
    if (error != cudaSuccess)
        return refused(error, "the GPU", err);
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, properties.name);
    info->major = properties.major;
    info->minor = properties.minor;
    info->sms = attribute(number, cudaDevAttrMultiProcessorCount);
    info->copy_engines = attribute(number, cudaDevAttrAsyncEngineCount);
    cudaDriverGetVersion(&info->driver_version);
    cudaRuntimeGetVersion(&info->runtime_version);
    describe_link(number, info);
    return measure ? measure_memory(number, info, err) : 0;
}

static int take_into_use(struct weir_gpu *gpu, struct weir_err *err)
{
    int rc = make_context(gpu->number, &gpu->context, err);
    if (rc < 0)
        return rc;
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&gpu->usual_priority, &gpu->urgent_priority);
    if (error == cudaSuccess)
        error = (cudaError_t)weir_gpu_kernels_load();
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction)
        return weir_err_set(
            err, -ENODEV, "this module contains no kernels for GPU %d (%s); build with CMAKE_CUDA_ARCHITECTURES=native",
            gpu->number, gpu->name);
    return error == cudaSuccess ? 0 : fail(gpu, error, "loading the kernels", err);
}

static int gpu_open(struct weir_gpu **out, int number, struct weir_err *err)
{
    struct weir_gpu_info info;
    *out = NULL;
    int rc = gpu_describe(number, false, &info, err);
    if (rc < 0)
        return rc;
    struct weir_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return weir_err_set(err, -ENOMEM, "out of memory");
    gpu->number = number;
    gpu->sms = info.sms;
    memcpy(gpu->name, info.name, sizeof gpu->name);
    CUcontext before = weir_cuda_context_now();
    rc = take_into_use(gpu, err);
    weir_cuda_context_set(before);
    if (rc < 0)
        free(gpu);
    else
        *out = gpu;
    return rc;
}

/* Does not release the primary context, because the program may use it as well. */
static void gpu_close(struct weir_gpu **gpu)
{
    free(*gpu);
    *gpu = NULL;
}

/* ---- memory ---- */

static int gpu_memory(struct weir_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes, struct weir_err *err)
{
    size_t free_now = 0, total = 0;
    CUcontext before = enter(gpu);
    cudaError_t error = cudaMemGetInfo(&free_now, &total);
    *free_bytes = free_now;
    *total_bytes = total;
    return done(gpu, before, error, "querying GPU memory", err);
}

/* If pinning fails for any reason except a lost GPU, the memory can still be used as pageable memory. */
static int gpu_pin(struct weir_gpu *gpu, void *memory, size_t bytes, struct weir_err *err)
{
    CUcontext before = enter(gpu);
    cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
    leave(gpu, before);
    if (error == cudaSuccess)
        return 0;
    if (weir_cuda_is_lost(error))
        return fail(gpu, error, "pinning memory", err);
    cudaGetLastError();
    return weir_err_set(err, -ENOMEM,
                        "%s of the host's memory cannot be pinned: %s (%s); raise ulimit -l or reduce --prefetch",
                        weir_size((double)bytes).text, cudaGetErrorString(error), cudaGetErrorName(error));
}

static void gpu_unpin(struct weir_gpu *gpu, void *memory)
{
    if (!memory)
        return;
    CUcontext before = enter(gpu);
    if (cudaHostUnregister(memory) != cudaSuccess)
        cudaGetLastError();
    leave(gpu, before);
}

static int gpu_alloc(struct weir_gpu *gpu, size_t bytes, void **memory, struct weir_err *err)
{
    size_t free_bytes = 0, total_bytes = 0;
    *memory = NULL;
    CUcontext before = enter(gpu);
    cudaError_t error = cudaMalloc(memory, bytes);
    if (error == cudaErrorMemoryAllocation && cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
        leave(gpu, before);
        cudaGetLastError();
        return weir_err_set(err, -ENOMEM,
                            "GPU %d (%s) cannot allocate %s (%s of %s are free); reduce --batch-size or --prefetch",
                            gpu->number, gpu->name, weir_size((double)bytes).text, weir_size((double)free_bytes).text,
                            weir_size((double)total_bytes).text);
    }
    return done(gpu, before, error, "allocating memory", err);
}

static void gpu_free(struct weir_gpu *gpu, void *memory)
{
    CUcontext before = enter(gpu);
    if (cudaFree(memory) != cudaSuccess)
        cudaGetLastError();
    leave(gpu, before);
}

/* ---- streams and events ---- */

static int gpu_stream_new(struct weir_gpu *gpu, bool urgent, void **stream, struct weir_err *err)
{
    cudaStream_t made = NULL;
    CUcontext before = enter(gpu);
    cudaError_t error =
        cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, urgent ? gpu->urgent_priority : gpu->usual_priority);
    *stream = error == cudaSuccess ? made : NULL;
    return done(gpu, before, error, "creating a stream", err);
}

static void gpu_stream_free(struct weir_gpu *gpu, void *stream)
{
    if (!stream)
        return;
    CUcontext before = enter(gpu);
    if (cudaStreamDestroy(stream) != cudaSuccess)
        cudaGetLastError();
    leave(gpu, before);
}

static int gpu_event_new(struct weir_gpu *gpu, bool timed, void **event, struct weir_err *err)
{
    cudaEvent_t made = NULL;
    CUcontext before = enter(gpu);
    cudaError_t error = cudaEventCreateWithFlags(&made, cudaEventBlockingSync | (timed ? 0 : cudaEventDisableTiming));
    *event = error == cudaSuccess ? made : NULL;
    return done(gpu, before, error, "creating an event", err);
}

static void gpu_event_free(struct weir_gpu *gpu, void *event)
{
    if (!event)
        return;
    CUcontext before = enter(gpu);
    if (cudaEventDestroy(event) != cudaSuccess)
        cudaGetLastError();
    leave(gpu, before);
}

static int gpu_record(struct weir_gpu *gpu, void *event, void *stream, struct weir_err *err)
{
    CUcontext before = enter(gpu);
    return done(gpu, before, cudaEventRecord(event, stream), "recording an event", err);
}

static int gpu_stream_wait(struct weir_gpu *gpu, void *stream, void *event, struct weir_err *err)
{
    CUcontext before = enter(gpu);
    return done(gpu, before, cudaStreamWaitEvent(stream, event, 0), "making a stream wait for an event", err);
}

static int gpu_passed(struct weir_gpu *gpu, void *event, struct weir_err *err)
{
    CUcontext before = enter(gpu);
    cudaError_t error = cudaEventQuery(event);
    if (error == cudaErrorNotReady) {
        cudaGetLastError();
        leave(gpu, before);
        return 0;
    }
    int rc = done(gpu, before, error, "querying an event", err);
    return rc < 0 ? rc : 1;
}

static int gpu_wait(struct weir_gpu *gpu, void *event, struct weir_err *err)
{
    CUcontext before = enter(gpu);
    return done(gpu, before, cudaEventSynchronize(event), "waiting for an event", err);
}

static int gpu_elapsed(struct weir_gpu *gpu, void *from, void *to, int64_t *ns, struct weir_err *err)
{
    float ms = 0;
    CUcontext before = enter(gpu);
    cudaError_t error = cudaEventElapsedTime(&ms, from, to);
    *ns = error == cudaSuccess ? (int64_t)((double)ms * 1e6) : 0;
    if (error != cudaErrorNotReady && error != cudaErrorInvalidResourceHandle)
        return done(gpu, before, error, "reading event times", err);
    leave(gpu, before);
    cudaGetLastError();
    return weir_err_set(err, -EINVAL, "elapsed: both events must record times and must have completed");
}

/* ---- queued work ---- */

static int gpu_copy_in(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream,
                       struct weir_err *err)
{
    CUcontext before = enter(gpu);
    return done(gpu, before, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copying to the GPU",
                err);
}

static int gpu_copy_out(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream,
                        struct weir_err *err)
{
    CUcontext before = enter(gpu);
    return done(gpu, before, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "copying from the GPU",
                err);
}

static int gpu_copy_within(struct weir_gpu *gpu, void *to, const void *from, size_t bytes, void *stream,
                           struct weir_err *err)
{
    CUcontext before = enter(gpu);
    return done(gpu, before, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
                "copying within the GPU", err);
}

static bool is_valid(const struct weir_gpu_prepare *p)
{
    if (p->n < 0 || p->width < 1 || p->height < 1 || p->out_width < 1 || p->out_height < 1 || !p->columns != !p->rows)
        return false;
    if ((unsigned)p->dtype > WEIR_GPU_BF16 || (uintptr_t)p->tensor % 256 != 0)
        return false;
    return p->columns ||
           (p->x >= 0 && p->y >= 0 && p->x <= p->width - p->out_width && p->y <= p->height - p->out_height);
}

static int gpu_prepare(struct weir_gpu *gpu, const struct weir_gpu_prepare *prepare, void *stream, struct weir_err *err)
{
    if (!is_valid(prepare))
        return weir_err_set(err, -EINVAL,
                            "prepare: arguments are out of range (%d images of %dx%d to %dx%d+%d+%d, dtype %d)",
                            prepare->n, prepare->width, prepare->height, prepare->out_width, prepare->out_height,
                            prepare->x, prepare->y, (int)prepare->dtype);
    if (prepare->n == 0)
        return 0;
    CUcontext before = enter(gpu);
    cudaError_t error = (cudaError_t)weir_gpu_kernels_prepare(prepare, gpu->sms, stream);
    return done(gpu, before, error, "preparing images", err);
}

static int gpu_clock_samples(struct weir_gpu *gpu, uint64_t *to, uint32_t n, void *stream, struct weir_err *err)
{
    CUcontext before = enter(gpu);
    cudaError_t error = (cudaError_t)weir_gpu_kernels_clock_samples(to, n, stream);
    return done(gpu, before, error, "sampling the GPU clock", err);
}

static int gpu_busy(struct weir_gpu *gpu, uint64_t ns, void *stream, struct weir_err *err)
{
    CUcontext before = enter(gpu);
    cudaError_t error = (cudaError_t)weir_gpu_kernels_busy(ns, gpu->sms, stream);
    return done(gpu, before, error, "keeping the GPU busy", err);
}

const struct weir_gpu_ops weir_gpu_cuda = {
    .count = gpu_count,
    .describe = gpu_describe,
    .open = gpu_open,
    .close = gpu_close,
    .memory = gpu_memory,
    .pin = gpu_pin,
    .unpin = gpu_unpin,
    .alloc = gpu_alloc,
    .free = gpu_free,
    .stream_new = gpu_stream_new,
    .stream_free = gpu_stream_free,
    .event_new = gpu_event_new,
    .event_free = gpu_event_free,
    .record = gpu_record,
    .stream_wait = gpu_stream_wait,
    .passed = gpu_passed,
    .wait = gpu_wait,
    .elapsed = gpu_elapsed,
    .copy_in = gpu_copy_in,
    .copy_out = gpu_copy_out,
    .copy_within = gpu_copy_within,
    .prepare = gpu_prepare,
    .clock_samples = gpu_clock_samples,
    .busy = gpu_busy,
};
