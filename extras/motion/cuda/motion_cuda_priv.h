/* motion_cuda_priv.h: what the files of the CUDA backend of motion share (motion_cuda.c has its table). Functions
 * return a cudaError_t; what they launch is queued on the stream, a cudaStream_t. What is given has been checked. */
#ifndef WEIR_EXTRAS_MOTION_CUDA_MOTION_CUDA_PRIV_H
#define WEIR_EXTRAS_MOTION_CUDA_MOTION_CUDA_PRIV_H

#ifdef __cplusplus
extern "C" {
#endif

#include "extras/motion/motion_ops.h"

/* ---- motion_fused.cu ---- */

/* How passes over rows of a size are launched. */
struct weir_motion_plan {
    int dofs, bodies;   /* 0: there is none yet */
    int group;          /* queries whose blended rows a warp holds at once: 8, 4, 2 or 1 */
    int warps;          /* of a block */
    int shared_bytes;   /* of a block */
    int blocks;         /* that the GPU runs at once */
    int clocked_blocks; /* the same, with clocks */
};

/* sms: multiprocessors of the current GPU. */
int weir_motion_kernels_plan(struct weir_motion_plan *plan, int dofs, int bodies, int sms);
int weir_motion_kernels_pass(const struct weir_motion_pass *pass, const struct weir_motion_plan *plan, void *stream);

/* ---- motion_kernels.cu ---- */

/* cudaErrorInvalidValue: there is no such operator on such types. */
int weir_motion_kernels_operate(const struct weir_motion_operator *operation, void *stream);
int weir_motion_kernels_advance(size_t n, float *times, float dt_s, void *stream);

#ifdef __cplusplus
}
#endif

#endif
