#include "cuda/cuda_context.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

static struct {
    pthread_once_t once;
    CUresult (*get)(CUcontext *context);
    CUresult (*set)(CUcontext context);
} current = {.once = PTHREAD_ONCE_INIT};

static void load_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* never closed, because the CUDA runtime uses it */
    void *get = driver ? dlsym(driver, "cuCtxGetCurrent") : NULL,
         *set = driver ? dlsym(driver, "cuCtxSetCurrent") : NULL;
    memcpy(&current.get, &get, sizeof get);
    memcpy(&current.set, &set, sizeof set);
}

void *weir_cuda_context_now(void)
{
    CUcontext context = NULL;
    pthread_once(&current.once, load_driver);
    if (current.get && current.set)
        current.get(&context);
    return context;
}

void weir_cuda_context_set(void *context)
{
    pthread_once(&current.once, load_driver);
    if (current.set)
        current.set(context);
}

bool weir_cuda_is_lost(int error)
{
    switch ((cudaError_t)error) {
    case cudaErrorDevicesUnavailable:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorUnknown:
#if CUDART_VERSION >= 13000
    case cudaErrorContained:
#endif
        return true;
    default:
        return false;
    }
}

int weir_cuda_failed(int error, const char *gpu, const char *doing, struct weir_err *err)
{
    cudaGetLastError(); /* resets the last error, which the next call would otherwise return */
    const char *text = cudaGetErrorString((cudaError_t)error), *name = cudaGetErrorName((cudaError_t)error);
    if (weir_cuda_is_lost(error))
        return weir_err_set(err, -EIO, "%s is lost: %s (%s), noticed while %s; see dmesg for its Xid", gpu, text, name,
                            doing);
    if (error == cudaErrorMemoryAllocation)
        return weir_err_set(err, -ENOMEM, "%s ran out of memory while %s", gpu, doing);
    return weir_err_set(err, -EIO, "%s: %s failed: %s (%s)", gpu, doing, text, name);
}
