/* Defines the only exported symbol of libweir_cuda.so, a function that returns the module's function tables. */
#include "base/extras.h"
#include "prof/gpu/cuda_module.h"

#include <stddef.h>

#ifdef WEIR_HAVE_NVJPEG
#include <nvjpeg.h>
#endif

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

#ifdef WEIR_HAVE_NVJPEG
extern const struct weir_gpu_jpeg_ops weir_gpu_jpeg_nvjpeg;
#define NVJPEG_OPS  &weir_gpu_jpeg_nvjpeg
#define NVJPEG_TEXT ", nvJPEG " TEXT(NVJPEG_VER_MAJOR) "." TEXT(NVJPEG_VER_MINOR) "." TEXT(NVJPEG_VER_PATCH)
#else
#define NVJPEG_OPS  NULL
#define NVJPEG_TEXT ""
#endif

#ifdef WEIR_HAVE_CUPTI
extern const struct weir_gpu_trace_ops weir_gpu_trace_cupti;
#define CUPTI_OPS &weir_gpu_trace_cupti
#else
#define CUPTI_OPS NULL
#endif

__attribute__((visibility("default"))) const struct weir_cuda_module *weir_cuda_module_table(void);

extern const struct weir_gpu_ops weir_gpu_cuda;
extern const struct weir_nvtx_ops weir_nvtx_cuda;

#define DECLARE(name) extern const struct weir_##name##_ops weir_##name##_cuda;
#define ROW(name)     {#name, &weir_##name##_cuda},
WEIR_EXTRA_CUDA(DECLARE)
static const struct weir_cuda_extra extras[] = {WEIR_EXTRA_CUDA(ROW){NULL, NULL}};

static const struct weir_cuda_module table = {
    .abi = WEIR_CUDA_ABI,
    .bytes = sizeof table,
    .built_with = "CUDA " WEIR_CUDA_TOOLKIT NVJPEG_TEXT,
    .gpu = &weir_gpu_cuda,
    .jpeg = NVJPEG_OPS,
    .trace = CUPTI_OPS,
    .nvtx = &weir_nvtx_cuda,
    .extras = extras,
};

const struct weir_cuda_module *weir_cuda_module_table(void)
{
    return &table;
}
