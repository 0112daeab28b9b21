/* cuda_module.h: opens the module that contains all CUDA code, libweir_cuda.so.
 *
 * The program and the library know only the module's function tables. The module is opened when a GPU is first
 * requested, and stays loaded. If WEIR_CUDA_MODULE is set, the module is loaded from this path. Otherwise it is
 * searched for next to the file that contains this code (the program or libweir.so), then at the install path, then by
 * the dynamic linker. Any thread can call these functions.
 *
 * Opening the module sets the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 32, unless it is already set. With
 * CUDA's default of 8, streams share queues to the GPU, so work on one stream waits for earlier work on another. While
 * a kernel of 20 ms runs on another stream, for example, the JPEG engines of an H200 decode 7,208 images a second
 * instead of 33,334. CUDA reads the variable when it creates its context, so a program that creates a context earlier
 * must set the variable itself. A program whose other threads can read the environment at that time must also set it
 * earlier, because setting it is not thread-safe. */
#ifndef WEIR_PROF_GPU_CUDA_MODULE_H
#define WEIR_PROF_GPU_CUDA_MODULE_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_gpu_ops;       /* pipeline/gpu/gpu_ops.h: memory, streams, events, kernels */
struct weir_gpu_jpeg_ops;  /* decoders/gpu/gpu_jpeg_ops.h: decodes JPEGs on the GPU */
struct weir_gpu_trace_ops; /* prof/gpu/gpu_trace_ops.h: records GPU work with CUPTI */
struct weir_nvtx_ops;      /* prof/gpu/gpu_trace_ops.h: ranges for Nsight Systems */

/* Version of the tables below. Increment it whenever a table, or a type that its functions use, changes. */
enum { WEIR_CUDA_ABI = 8 };

/* The function table of an extra (extras/), which is looked up by name. */
struct weir_cuda_extra {
    const char *name;
    const void *ops;
};

struct weir_cuda_module {
    uint32_t abi;
    uint32_t bytes;         /* size of this structure in the module */
    const char *built_with; /* such as "CUDA 13.0, nvJPEG 13.0.4" */
    const struct weir_gpu_ops *gpu;
    const struct weir_gpu_jpeg_ops *jpeg;   /* NULL if built without nvJPEG */
    const struct weir_gpu_trace_ops *trace; /* NULL if built without CUPTI */
    const struct weir_nvtx_ops *nvtx;
    const struct weir_cuda_extra *extras; /* the module's extras; the last entry has a NULL name */
};

/* The module exports this function as "weir_cuda_module_table". */
typedef const struct weir_cuda_module *(*weir_cuda_module_entry)(void);
#define WEIR_CUDA_MODULE_ENTRY "weir_cuda_module_table"

/* Opens the module at the first call; later calls return the same result or error. Returns 0, or -ENODEV if the module
 * is missing, cannot be loaded or has another version; err then contains the file name and what to do. */
int weir_cuda_module_open(const struct weir_cuda_module **module, struct weir_err *err);

/* Opens the module and returns an extra's table. Returns NULL with -ENODEV as above, or with -ENOTSUP if the module was
 * built without the extra. */
const void *weir_cuda_module_extra(const char *name, struct weir_err *err);

/* Returns the path of the opened module, or "" if it is not open. */
const char *weir_cuda_module_path(void);

#ifdef __cplusplus
}
#endif

/* ---- elf_file.c: detects truncated shared libraries. The dynamic linker trusts a library's headers and maps the
 * missing pages of a truncated file. An access to these pages raises SIGBUS. */

enum { WEIR_ELF_WHY = 128 };

/* Returns true if the file is a 64-bit little-endian shared library that is as long as its headers require. Also
 * returns true if it cannot be read or is not a regular file, because dlopen reports this better. Otherwise writes the
 * reason to why, as a clause that begins with "it". */
bool weir_elf_is_whole(const char *path, char why[WEIR_ELF_WHY]);

#endif
