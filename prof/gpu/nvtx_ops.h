/* nvtx_ops.h: ranges as Nsight Systems shows them; implemented by the CUDA module (nvtx_cuda.c). */
#ifndef WEIR_PROF_GPU_NVTX_OPS_H
#define WEIR_PROF_GPU_NVTX_OPS_H

#include <stdint.h>

struct weir_nvtx_ops {
    /* True when a tool listens (Nsight injects itself at start); without one every call is a load and a branch. */
    int (*active)(void);
    /* A handle for the text, made once; borrowed for the life of the process. */
    void *(*intern)(const char *text);
    /* A range of the calling thread, in the domain "weir"; pushes and pops nest. */
    void (*push)(void *text, uint64_t item);
    void (*pop)(void);
    void (*name_thread)(uint32_t tid, const char *name);
};

#endif
