#include "cuda/cupti_priv.h"

#include <cuda.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- CUPTI ---- */

static struct {
    pthread_once_t once;
    bool there;
    struct weir_cupti functions;
    char why[256];
} library = {.once = PTHREAD_ONCE_INIT};

struct symbol {
    const char *name;
    size_t offset;
    bool needed;
};

#define SYMBOL(name, field, needed)                                                                                    \
    {                                                                                                                  \
        name, offsetof(struct weir_cupti, field), needed                                                               \
    }
static const struct symbol symbols[] = {
    SYMBOL("cuptiGetVersion", get_version, true),
    SYMBOL("cuptiSubscribe", subscribe, true),
    SYMBOL("cuptiUnsubscribe", unsubscribe, true),
    SYMBOL("cuptiEnableCallback", enable_callback, true),
    SYMBOL("cuptiGetCallbackName", get_callback_name, true),
    SYMBOL("cuptiFinalize", finalize, true),
    SYMBOL("cuptiSetThreadIdType", set_thread_id_type, true),
    SYMBOL("cuptiActivityRegisterTimestampCallback", register_timestamp, true),
    SYMBOL("cuptiActivityRegisterCallbacks", register_callbacks, true),
    SYMBOL("cuptiActivityEnable", enable, true),
    SYMBOL("cuptiActivityDisable", disable, true),
    SYMBOL("cuptiActivityFlushAll", flush_all, true),
    SYMBOL("cuptiActivityGetNextRecord", get_next_record, true),
    SYMBOL("cuptiActivityGetNumDroppedRecords", get_num_dropped, true),
    SYMBOL("cuptiActivityEnableDriverApi", enable_driver_api, false),
    SYMBOL("cuptiActivityEnableAllSyncRecords", enable_all_sync_records, false),
};

static bool load_symbols(void *handle)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(handle, symbols[i].name);
        if (!found && symbols[i].needed) {
            snprintf(library.why, sizeof library.why, "the CUPTI library is too old: it has no %s", symbols[i].name);
            return false;
        }
        memcpy((char *)&library.functions + symbols[i].offset, &found, sizeof found);
    }
    return true;
}

/* Loads CUPTI and checks its version. Records have the layout of the headers at build time, and the layout differs
 * between major versions. */
static void open_library(void)
{
    char name[32];
    snprintf(name, sizeof name, "libcupti.so.%d", CUDART_VERSION / 1000);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        handle = dlopen("libcupti.so", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(library.why, sizeof library.why, "CUPTI cannot be loaded: %.200s", dlerror());
        return;
    }
    uint32_t version = 0;
    library.there = load_symbols(handle);
    if (!library.there || (library.functions.get_version(&version) == CUPTI_SUCCESS &&
                           version / 10000 == CUPTI_API_VERSION / 10000 && version >= CUPTI_API_VERSION))
        return;
    library.there = false;
    snprintf(library.why, sizeof library.why,
             "the installed CUPTI has API version %u, but Weir was built for version %d", version, CUPTI_API_VERSION);
}

/* Returns the number of CUDA devices, or -ENODEV with the reason. */
static int count_devices(struct weir_err *err)
{
    int n = 0;
    cudaError_t rc = cudaGetDeviceCount(&n);
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (rc != cudaSuccess && driver == 0)
        return weir_err_set(err, -ENODEV, "no NVIDIA driver is loaded");
    if (rc != cudaSuccess)
        return weir_err_set(err, -ENODEV, "no GPU: %s", cudaGetErrorString(rc));
    return n > 0 ? n : weir_err_set(err, -ENODEV, "the driver reports no GPU");
}

/* Does not load CUPTI on machines without a GPU: without a driver, every call of CUPTI 13.2 recurses until it crashes.
 */
const struct weir_cupti *weir_cupti_open(struct weir_err *err)
{
    if (count_devices(err) < 0)
        return NULL;
    pthread_once(&library.once, open_library);
    if (library.there)
        return &library.functions;
    weir_err_set(err, -ENODEV, "%s; install the CUDA Toolkit %d.%d, or add its CUPTI folder to LD_LIBRARY_PATH",
                 library.why, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return NULL;
}

static const struct meaning {
    CUptiResult result;
    int code;
    const char *text;
} meanings[] = {
    {CUPTI_ERROR_NOT_INITIALIZED, -ENODEV, "CUPTI is not initialised; check that the driver is loaded (nvidia-smi)"},
    {CUPTI_ERROR_OUT_OF_MEMORY, -ENOMEM, "CUPTI is out of memory"},
    {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, -EACCES,
     "the driver permits profiling only to administrators; run with CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN), or "
     "load the driver with NVreg_RestrictProfilingToAdminUsers=0"},
    {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, -EBUSY,
     "another tool uses CUPTI in this process (Nsight, compute-sanitizer, a framework's profiler); use one at a time"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, -EACCES,
     "profiling is not permitted on this virtual GPU; its host must enable it"},
    {CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, -ENOTSUP,
     "CUPTI does not work while confidential computing is enabled"},
    {CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, -ENOTSUP, "CUPTI does not work on this MIG instance"},
    {CUPTI_ERROR_UNKNOWN, -ENODEV,
     "CUPTI failed for an unknown reason; check that the driver is loaded and new enough"},
};

int weir_cupti_fail(CUptiResult result, const char *what, struct weir_err *err)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (meanings[i].result == result)
            return weir_err_set(err, meanings[i].code, "%s (%s: CUPTI error %d)", meanings[i].text, what, (int)result);
    return weir_err_set(err, -EIO, "%s: CUPTI error %d (its name is in cupti_result.h)", what, (int)result);
}

void weir_cupti_library(char *text, size_t size)
{
    uint32_t version = 0;
    struct weir_err err = WEIR_ERR_NONE;
    const struct weir_cupti *cupti = weir_cupti_open(&err);
    if (!cupti || cupti->get_version(&version) != CUPTI_SUCCESS)
        snprintf(text, size, "%s", err.text);
    else
        snprintf(text, size, "CUPTI %u.%u (API %u)", version / 10000, version / 100 % 100, version);
}

void weir_cupti_versions(int *driver, int *runtime, int *cupti)
{
    uint32_t version = 0;
    const struct weir_cupti *functions = weir_cupti_open(NULL);
    *driver = *runtime = 0;
    cudaDriverGetVersion(driver);
    cudaRuntimeGetVersion(runtime);
    if (functions)
        functions->get_version(&version);
    *cupti = (int)version;
}

/* ---- CUDA ---- */

int weir_cupti_properties(struct weir_gpu_properties *properties, int n, struct weir_err *err)
{
    int devices = count_devices(err);
    for (int i = 0; i < n && i < devices; i++) {
        struct cudaDeviceProp p;
        cudaError_t rc = cudaGetDeviceProperties(&p, i);
        if (rc != cudaSuccess)
            return weir_err_set(err, -EIO, "GPU %d: %s", i, cudaGetErrorString(rc));
        properties[i] = (struct weir_gpu_properties){
            .id = i,
            .total_bytes = p.totalGlobalMem,
            .major = p.major,
            .minor = p.minor,
            .threads_per_block = p.maxThreadsPerBlock,
            .threads_per_multiprocessor = p.maxThreadsPerMultiProcessor,
            .registers_per_block = p.regsPerBlock,
            .warp_size = p.warpSize,
            .shared_per_block = p.sharedMemPerBlock,
            .shared_per_block_optin = p.sharedMemPerBlockOptin,
            .shared_per_multiprocessor = p.sharedMemPerMultiprocessor,
            .multiprocessors = p.multiProcessorCount,
            .registers_per_multiprocessor = p.regsPerMultiprocessor,
        };
        snprintf(properties[i].name, sizeof properties[i].name, "%.127s", p.name);
    }
    return devices;
}

/* The CUDA driver API, used instead of the runtime, which would make the device current on the calling thread and
 * create a context on an unused device. */
struct driver {
    void *handle;
    __typeof__(&cuDeviceGet) device_get;
    __typeof__(&cuDeviceGetCount) device_count;
    __typeof__(&cuDevicePrimaryCtxGetState) state;
    __typeof__(&cuDevicePrimaryCtxRetain) retain;
    __typeof__(&cuDevicePrimaryCtxRelease) release;
    __typeof__(&cuCtxPushCurrent) push;
    __typeof__(&cuCtxPopCurrent) pop;
    __typeof__(&cuCtxSynchronize) synchronize;
};

static bool load(const struct driver *driver, const char *name, void *function)
{
    void *symbol = dlsym(driver->handle, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load_driver(struct driver *driver)
{
    driver->handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* already loaded, because CUDA is in use */
    return driver->handle && load(driver, "cuDeviceGet", &driver->device_get) &&
           load(driver, "cuDeviceGetCount", &driver->device_count) &&
           load(driver, "cuDevicePrimaryCtxGetState", &driver->state) &&
           load(driver, "cuDevicePrimaryCtxRetain", &driver->retain) &&
           load(driver, "cuDevicePrimaryCtxRelease_v2", &driver->release) &&
           load(driver, "cuCtxPushCurrent_v2", &driver->push) && load(driver, "cuCtxPopCurrent_v2", &driver->pop) &&
           load(driver, "cuCtxSynchronize", &driver->synchronize);
}

static CUresult wait_for_gpu(const struct driver *driver, int number)
{
    CUdevice device;
    CUcontext context;
    unsigned flags;
    int active = 0;
    CUresult rc = driver->device_get(&device, number);
    if (rc == CUDA_SUCCESS)
        rc = driver->state(device, &flags, &active);
    if (rc != CUDA_SUCCESS || !active)
        return rc;
    rc = driver->retain(&context, device);
    if (rc != CUDA_SUCCESS)
        return rc;
    rc = driver->push(context);
    if (rc == CUDA_SUCCESS) {
        rc = driver->synchronize();
        driver->pop(&context);
    }
    driver->release(device);
    return rc;
}

void weir_cupti_count_devices(void)
{
    struct driver driver;
    int n;
    if (load_driver(&driver))
        driver.device_count(&n);
}

int weir_cupti_wait_for_gpus(struct weir_err *err)
{
    struct driver driver;
    int n = 0, failed = 0;
    if (!load_driver(&driver) || driver.device_count(&n) != CUDA_SUCCESS)
        return weir_err_set(err, -EIO, "cannot wait for the GPUs: the driver library lacks the required functions");
    for (int i = 0; i < n; i++) {
        CUresult rc = wait_for_gpu(&driver, i);
        if (rc != CUDA_SUCCESS)
            failed = weir_err_set(err, -EIO, "cannot wait for GPU %d: CUDA error %d", i, (int)rc);
    }
    return failed;
}
