/* blas.h: matrix products of a BLAS library, which is opened at first use and never linked. */
#ifndef WEIR_EXTRAS_COMMON_BLAS_H
#define WEIR_EXTRAS_COMMON_BLAS_H

#include "extras/common/real.h"
#include "weir/base.h"

/* The values of CBLAS_ORDER and CBLAS_TRANSPOSE, and the arguments of cblas_sgemm and cblas_dgemm, as the reference
 * CBLAS has them (https://netlib.org/blas/cblas.h): matrices by rows, leading dimensions in numbers. */
enum { WEIR_BLAS_ROW_MAJOR = 101, WEIR_BLAS_AS_IS = 111, WEIR_BLAS_TRANSPOSED = 112 };
typedef void weir_blas_gemm(int order, int transpose_a, int transpose_b, int m, int n, int k, weir_real alpha,
                            const weir_real *a, int lda, const weir_real *b, int ldb, weir_real beta, weir_real *c,
                            int ldc);

struct weir_blas {
    weir_blas_gemm *gemm;
    void (*set_threads)(int threads); /* OpenBLAS only; else NULL */
    int callers_max;                  /* maximum concurrent callers of gemm */
    char name[64];                    /* "OpenBLAS 0.3.21" */
};

/* 0 or -ENOENT (no library; err names the package to install). The library remains open until the process ends, as it
 * has threads. */
int weir_blas_open(struct weir_blas *blas, struct weir_err *err);
/* Makes gemm use only the calling thread, without the library's own threads. Call it in every thread that calls gemm.
 */
void weir_blas_use_one_thread(const struct weir_blas *blas);

#endif
