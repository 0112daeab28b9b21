#include "cuda/cuda_lost.h"

#include <errno.h>

#include <cuda_runtime_api.h>

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
    cudaGetLastError(); /* the runtime keeps it for whoever asks next */
    const char *text = cudaGetErrorString((cudaError_t)error), *name = cudaGetErrorName((cudaError_t)error);
    if (weir_cuda_is_lost(error))
        return weir_err_set(err, -EIO, "%s is lost: %s (%s), noticed while %s; see dmesg for its Xid", gpu, text, name,
                            doing);
    if (error == cudaErrorMemoryAllocation)
        return weir_err_set(err, -ENOMEM, "%s has no memory left while %s", gpu, doing);
    return weir_err_set(err, -EIO, "%s: %s failed: %s (%s)", gpu, doing, text, name);
}
