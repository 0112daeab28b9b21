/* motion_cuda_priv.h: shared by the files of the CUDA backend of motion (table in motion_cuda.c). Functions return a
 * cudaError_t and queue on the stream, a cudaStream_t. Arguments have been checked. */
#ifndef WEIR_EXTRAS_MOTION_CUDA_MOTION_CUDA_PRIV_H
#define WEIR_EXTRAS_MOTION_CUDA_MOTION_CUDA_PRIV_H

#ifdef __cplusplus
extern "C" {
#endif

#include "extras/motion/motion_ops.h"

/* ---- motion_fused.cu ---- */

/* Launch parameters for rows of a given size. */
struct weir_motion_plan {
    int dofs, bodies;   /* 0: not set */
    int group;          /* queries per warp whose blended rows are held at once: 8, 4, 2 or 1 */
    int warps;          /* of a block */
    int shared_bytes;   /* of a block */
    int blocks;         /* resident on the GPU */
    int clocked_blocks; /* the same, with clocks */
};

/* sms: number of multiprocessors of the current GPU. */
int weir_motion_kernels_plan(struct weir_motion_plan *plan, int dofs, int bodies, int sms);
int weir_motion_kernels_pass(const struct weir_motion_pass *pass, const struct weir_motion_plan *plan, void *stream);

/* ---- motion_kernels.cu ---- */

/* cudaErrorInvalidValue: no such operator for these types. */
int weir_motion_kernels_operate(const struct weir_motion_operator *operation, void *stream);
int weir_motion_kernels_advance(size_t n, float *times, float dt_s, void *stream);

#ifdef __cplusplus
}
#endif

#endif
