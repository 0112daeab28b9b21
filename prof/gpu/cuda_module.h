/* cuda_module.h: the loadable module with all CUDA code, libweir_cuda.so.
 *
 * The program and the library know only its tables of functions. The module is opened when a GPU is first requested,
 * and stays loaded. It is searched at WEIR_CUDA_MODULE if set, otherwise next to the file that contains this code (the
 * program or libweir.so), then at the install path, then by the dynamic linker. Any thread.
 *
 * Opening it sets the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 32 unless it is set. With CUDA's default of
 * 8, streams share queues to the GPU, and work on one stream waits for earlier work of another: alongside a kernel of
 * 20 ms on its own stream, the JPEG engines of an H200 decode 7,208 images a second instead of 33,334. CUDA reads the
 * variable when it creates its context, so a program that creates one earlier must set it first. So must a program
 * whose other threads may read the environment at that time, because setting it is not thread-safe. */
#ifndef WEIR_PROF_GPU_CUDA_MODULE_H
#define WEIR_PROF_GPU_CUDA_MODULE_H

#include "weir/base.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_gpu_ops;       /* pipeline/gpu/gpu_ops.h: memory, streams, events, kernels */
struct weir_gpu_jpeg_ops;  /* decoders/gpu/gpu_jpeg_ops.h: JPEGs to planes on the GPU */
struct weir_gpu_trace_ops; /* prof/gpu/gpu_trace_ops.h: records of GPU work, by CUPTI */
struct weir_nvtx_ops;      /* prof/gpu/nvtx_ops.h: ranges for Nsight */

/* Increment it whenever one of these tables, or a type they pass, changes. */
enum { WEIR_CUDA_ABI = 8 };

/* A function table of an extra (extras/), looked up by name. */
struct weir_cuda_extra {
    const char *name;
    const void *ops;
};

struct weir_cuda_module {
    uint32_t abi;
    uint32_t bytes;         /* size of this structure in the module */
    const char *built_with; /* "CUDA 13.0, nvJPEG 13.0.4" */
    const struct weir_gpu_ops *gpu;
    const struct weir_gpu_jpeg_ops *jpeg;   /* NULL: built without nvJPEG */
    const struct weir_gpu_trace_ops *trace; /* NULL: built without CUPTI */
    const struct weir_nvtx_ops *nvtx;
    const struct weir_cuda_extra *extras; /* built-in extras, terminated by a NULL name */
};

/* Exported by the module as "weir_cuda_module_table". */
typedef const struct weir_cuda_module *(*weir_cuda_module_entry)(void);
#define WEIR_CUDA_MODULE_ENTRY "weir_cuda_module_table"

/* Opens the module once; later calls return the same result or error. Returns 0, or -ENODEV when it is missing, cannot
 * be loaded or has another version; err names the file and the remedy. */
int weir_cuda_module_open(const struct weir_cuda_module **module, struct weir_err *err);

/* Opens the module and returns an extra's table. Returns NULL with -ENODEV as above, or -ENOTSUP when the module was
 * built without the extra. */
const void *weir_cuda_module_extra(const char *name, struct weir_err *err);

/* Path of the opened file; "" before that. */
const char *weir_cuda_module_path(void);

#ifdef __cplusplus
}
#endif

#endif
