/* nvtx_ops.h: ranges for Nsight Systems; implemented by the CUDA module (nvtx_cuda.c). */
#ifndef WEIR_PROF_GPU_NVTX_OPS_H
#define WEIR_PROF_GPU_NVTX_OPS_H

#include <stdint.h>

struct weir_nvtx_ops {
    /* Returns whether a tool is attached; Nsight attaches itself when the program starts. Without a tool, every call
     * costs only a load and a branch. */
    int (*active)(void);
    /* Returns a handle for a string. It is created once and stays valid until the process ends. */
    void *(*intern)(const char *text);
    /* Open and close a range of the calling thread in the domain "weir". Ranges nest. */
    void (*push)(void *text, uint64_t item);
    void (*pop)(void);
    void (*name_thread)(uint32_t tid, const char *name);
};

#endif
