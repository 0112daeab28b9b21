/* cuda_module.h: the one loadable module that all CUDA code is in, libweir_cuda.so.
 *
 * The program and the library know only the tables of functions below; the module is opened when a GPU is first asked
 * for, and stays. It is looked for where WEIR_CUDA_MODULE says, else beside the file that this code is in (the program,
 * or libweir.so), else where "make install" puts it, else where the linker looks. Any thread.
 *
 * Opening it sets the environment's CUDA_DEVICE_MAX_CONNECTIONS to 32 unless it is set. With CUDA's own 8, streams
 * share queues to the GPU, and work on one waits for what another has in front of it: beside a kernel of 20 ms on a
 * stream of its own, the JPEG engines of an H200 decode 7,208 images a second instead of 33,334. CUDA looks at it when
 * it makes its context: a program that has made one before sets it itself, first of all. So does one whose other
 * threads may be reading the environment: setting it is not safe beside that. */
#ifndef WEIR_PROF_GPU_CUDA_MODULE_H
#define WEIR_PROF_GPU_CUDA_MODULE_H

#include "weir/base.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_gpu_ops;       /* pipeline/gpu/gpu_ops.h: memory, streams, events, kernels */
struct weir_gpu_jpeg_ops;  /* decoders/gpu/gpu_jpeg_ops.h: JPEGs to planes on the GPU */
struct weir_gpu_trace_ops; /* prof/gpu/gpu_trace_ops.h: what ran on GPUs and when, by CUPTI */
struct weir_nvtx_ops;      /* prof/gpu/nvtx_ops.h: ranges for Nsight */

/* Changes whenever one of these tables, or anything they pass, does. */
enum { WEIR_CUDA_ABI = 8 };

/* A table of functions of an extra (extras/), by the name under which the extra looks for it. */
struct weir_cuda_extra {
    const char *name;
    const void *ops;
};

struct weir_cuda_module {
    uint32_t abi;
    uint32_t bytes;         /* of this structure, as the module knows it */
    const char *built_with; /* "CUDA 13.0, nvJPEG 13.0.4" */
    const struct weir_gpu_ops *gpu;
    const struct weir_gpu_jpeg_ops *jpeg;   /* NULL: built without nvJPEG */
    const struct weir_gpu_trace_ops *trace; /* NULL: built without CUPTI */
    const struct weir_nvtx_ops *nvtx;
    const struct weir_cuda_extra *extras; /* of the extras built in; a NULL name ends them */
};

/* What the module exports, as "weir_cuda_module_table". */
typedef const struct weir_cuda_module *(*weir_cuda_module_entry)(void);
#define WEIR_CUDA_MODULE_ENTRY "weir_cuda_module_table"

/* Opens the module, once; the same answer, or the same error, from then on. 0, or -ENODEV: there is none, it cannot be
 * loaded, or it is of another version; err names the file and says what to do. */
int weir_cuda_module_open(const struct weir_cuda_module **module, struct weir_err *err);

/* Opens the module and returns an extra's table of functions. NULL: err has -ENODEV as above, or -ENOTSUP: the module
 * was built without the extra. */
const void *weir_cuda_module_extra(const char *name, struct weir_err *err);

/* The file that was opened, "" before. */
const char *weir_cuda_module_path(void);

#ifdef __cplusplus
}
#endif

#endif
