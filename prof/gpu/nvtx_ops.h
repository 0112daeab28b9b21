/* nvtx_ops.h: ranges for Nsight Systems; implemented by the CUDA module (nvtx_cuda.c). */
#ifndef WEIR_PROF_GPU_NVTX_OPS_H
#define WEIR_PROF_GPU_NVTX_OPS_H

#include <stdint.h>

struct weir_nvtx_ops {
    /* Returns true when a tool is attached (Nsight injects itself at start). Without one every call is a load and a
     * branch. */
    int (*active)(void);
    /* Returns a handle for the text, created once and valid for the life of the process. */
    void *(*intern)(const char *text);
    /* A range of the calling thread, in the domain "weir"; pushes and pops nest. */
    void (*push)(void *text, uint64_t item);
    void (*pop)(void);
    void (*name_thread)(uint32_t tid, const char *name);
};

#endif
