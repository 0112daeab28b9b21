/* compute_cpu_priv.h: shared by the two files of the CPU backend. */
#ifndef WEIR_EXTRAS_COMMON_COMPUTE_CPU_PRIV_H
#define WEIR_EXTRAS_COMMON_COMPUTE_CPU_PRIV_H

#include "extras/common/blas.h"
#include "extras/common/compute_ops.h"
#include "extras/common/team.h"

struct weir_cpu {
    struct weir_blas blas;
    struct weir_team *team;
    /* scratch_numbers per thread: columns of a band of rows, gradients of weights. */
    weir_real *scratch;
    size_t scratch_numbers;
    weir_real sent[WEIR_SENT_MAX]; /* by turns */
    unsigned sent_count, received_count;
    char description[96];
};

/* Allocates zeroed numbers, aligned to a cache line; release with free. NULL: out of memory. */
weir_real *weir_cpu_allocate(size_t numbers);

/* Members of weir_compute_cpu (compute_cpu_convolve.c). */
int weir_cpu_reserve(void *self, const struct weir_convolution *convolution);
void weir_cpu_convolve(void *self, const struct weir_convolution *convolution, int n, const weir_real *x,
                       size_t x_stride, const weir_real *weight, const weir_real *bias, weir_real *y);
void weir_cpu_convolve_backward(void *self, const struct weir_convolution *convolution, int n, const weir_real *x,
                                size_t x_stride, const weir_real *weight, const weir_real *dy,
                                weir_real *weight_gradient, weir_real *bias_gradient, weir_real *dx);

#endif
