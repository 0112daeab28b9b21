/* motion_cuda_priv.h: declarations shared by the files of the CUDA backend of motion (its function table is in
 * motion_cuda.c). All functions return a cudaError_t. Those with a stream, a cudaStream_t, queue work on it. Callers
 * have checked the arguments. */
#ifndef WEIR_EXTRAS_MOTION_CUDA_MOTION_CUDA_PRIV_H
#define WEIR_EXTRAS_MOTION_CUDA_MOTION_CUDA_PRIV_H

#ifdef __cplusplus
extern "C" {
#endif

#include "extras/motion/motion_ops.h"

/* ---- motion_fused.cu ---- */

/* Launch parameters for rows with these numbers of dofs and bodies. */
struct weir_motion_plan {
    int dofs, bodies;   /* 0: not yet planned */
    int group;          /* number of blended rows that a warp holds in shared memory: 8, 4, 2 or 1 */
    int warps;          /* warps per block */
    int shared_bytes;   /* shared memory per block */
    int blocks;         /* number of blocks that the GPU runs at the same time */
    int clocked_blocks; /* number of blocks that run at the same time with clocks */
};

/* Fills in the plan for the current GPU, which has sms multiprocessors. */
int weir_motion_kernels_plan(struct weir_motion_plan *plan, int dofs, int bodies, int sms);
int weir_motion_kernels_pass(const struct weir_motion_pass *pass, const struct weir_motion_plan *plan, void *stream);

/* ---- motion_kernels.cu ---- */

/* Returns cudaErrorInvalidValue if the operator does not exist for these types. */
int weir_motion_kernels_operate(const struct weir_motion_operator *operation, void *stream);
int weir_motion_kernels_advance(size_t n, float *times, float dt_s, void *stream);

#ifdef __cplusplus
}
#endif

#endif
