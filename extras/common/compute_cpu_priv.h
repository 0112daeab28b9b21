/* compute_cpu_priv.h: declarations shared by the files of the CPU backend. */
#ifndef WEIR_EXTRAS_COMMON_COMPUTE_CPU_PRIV_H
#define WEIR_EXTRAS_COMMON_COMPUTE_CPU_PRIV_H

#include "extras/common/compute_ops.h"
#include "extras/common/team.h"

/* ---- blas.c: matrix products through a BLAS library, which is opened with dlopen at first use and never linked ----
 */

/* The values of CBLAS_ORDER and CBLAS_TRANSPOSE, and the signature of cblas_sgemm and cblas_dgemm, copied from the
 * reference CBLAS (https://netlib.org/blas/cblas.h). Matrices are row-major, and leading dimensions count numbers. */
enum { WEIR_BLAS_ROW_MAJOR = 101, WEIR_BLAS_AS_IS = 111, WEIR_BLAS_TRANSPOSED = 112 };
typedef void weir_blas_gemm(int order, int transpose_a, int transpose_b, int m, int n, int k, weir_real alpha,
                            const weir_real *a, int lda, const weir_real *b, int ldb, weir_real beta, weir_real *c,
                            int ldc);

struct weir_blas {
    weir_blas_gemm *gemm;
    void (*set_threads)(int threads); /* only in OpenBLAS; otherwise NULL */
    int callers_max;                  /* maximum number of concurrent callers of gemm */
    char name[64];                    /* e.g. "OpenBLAS 0.3.21" */
};

/* 0 or -ENOENT (no library found; err names the package to install). The library stays open until the process ends,
 * because it has threads of its own. */
int weir_blas_open(struct weir_blas *blas, struct weir_err *err);
/* Restricts gemm to the calling thread, so that the library's own threads are not used. Must be called by every thread
 * that calls gemm. */
void weir_blas_use_one_thread(const struct weir_blas *blas);

/* ---- compute_cpu.c ---- */

struct weir_cpu {
    struct weir_blas blas;
    struct weir_team *team;
    /* scratch_numbers per thread, for the columns of a band of rows and the gradients of weight and bias. */
    weir_real *scratch;
    size_t scratch_numbers;
    weir_real sent[WEIR_SENT_MAX]; /* ring of sent numbers */
    unsigned sent_count, received_count;
    uint64_t memory_bytes;
    char description[96];
};

/* Allocates zeroed numbers aligned to a cache line, to be released with free. Returns NULL if memory is exhausted. */
weir_real *weir_cpu_allocate(size_t numbers);

/* ---- compute_cpu_convolve.c: members of weir_compute_cpu ---- */

int weir_cpu_reserve(void *self, const struct weir_convolution *convolution);
void weir_cpu_convolve(void *self, const struct weir_convolution *convolution, int n, const weir_real *x,
                       size_t x_stride, const weir_real *weight, const weir_real *bias, weir_real *y);
void weir_cpu_convolve_backward(void *self, const struct weir_convolution *convolution, int n, const weir_real *x,
                                size_t x_stride, const weir_real *weight, const weir_real *dy,
                                weir_real *weight_gradient, weir_real *bias_gradient, weir_real *dx);

#endif
