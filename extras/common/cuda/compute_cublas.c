/* Matrix products through cuBLAS, which is opened with dlopen when a network first uses a GPU, and never linked. */
#include "extras/common/cuda/compute_cuda_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cublas_v2.h>

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

static const char file[] = "libcublas.so." TEXT(CUBLAS_VER_MAJOR);

struct weir_cublas {
    __typeof__(cublasCreate) *create;
    __typeof__(cublasDestroy) *destroy;
    __typeof__(cublasSetStream) *set_stream;
    __typeof__(cublasGetVersion) *get_version;
    __typeof__(cublasGemmStridedBatchedEx) *gemm;
    cublasHandle_t handle;
    cublasComputeType_t compute;
};

static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol); /* ISO C does not allow a cast to a function pointer */
    return symbol;
}

/* The library stays open until the process ends, because it may have threads and contexts of its own. */
static int load(struct weir_cublas *blas, struct weir_err *err)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library && find(library, "cublasCreate_v2", &blas->create) &&
        find(library, "cublasDestroy_v2", &blas->destroy) && find(library, "cublasSetStream_v2", &blas->set_stream) &&
        find(library, "cublasGetVersion_v2", &blas->get_version) &&
        find(library, "cublasGemmStridedBatchedEx", &blas->gemm))
        return 0;
    return weir_err_set(err, -ENOENT,
                        "%s cannot be opened: %s; install cuBLAS (CUDA Toolkit, or pip install nvidia-cublas) and add "
                        "its folder to LD_LIBRARY_PATH",
                        file, library ? "required functions are missing" : dlerror());
}

int weir_cublas_open(struct weir_cublas **out, void *stream, bool amp, struct weir_err *err)
{
    *out = NULL;
    struct weir_cublas *blas = calloc(1, sizeof *blas);
    if (!blas)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = load(blas, err);
    if (rc == 0) {
        cublasStatus_t status = blas->create(&blas->handle);
        if (status == CUBLAS_STATUS_SUCCESS)
            status = blas->set_stream(blas->handle, stream);
        if (status != CUBLAS_STATUS_SUCCESS)
            rc = weir_err_set(err, status == CUBLAS_STATUS_ALLOC_FAILED ? -ENOMEM : -ENODEV,
                              "%s cannot be used: cublasStatus_t %d", file, (int)status);
    }
    if (rc < 0) {
        weir_cublas_close(blas);
        return rc;
    }
    blas->compute = amp ? CUBLAS_COMPUTE_32F_FAST_16F : CUBLAS_COMPUTE_32F;
    *out = blas;
    return 0;
}

void weir_cublas_close(struct weir_cublas *blas)
{
    if (!blas)
        return;
    if (blas->handle)
        blas->destroy(blas->handle);
    free(blas);
}

int weir_cublas_version(const struct weir_cublas *blas)
{
    int version = 0;
    blas->get_version(blas->handle, &version);
    return version;
}

/* cuBLAS expects column-major matrices. It therefore sees the transposes of ours, and computes c' = b' a'. */
void weir_cublas_gemm(struct weir_cuda_compute *self, const struct weir_gemm *g, const struct weir_cublas_batch *batch)
{
    const float one = 1, beta = g->beta;
    const struct weir_cublas_batch once = {.count = 1};
    const struct weir_cublas *blas = self->blas;
    batch = batch ? batch : &once;
    if (self->err.code < 0)
        return;
    cublasStatus_t status = blas->gemm(
        blas->handle, g->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, g->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, g->n,
        g->m, g->k, &one, g->b, CUDA_R_32F, g->ldb, batch->stride_b, g->a, CUDA_R_32F, g->lda, batch->stride_a, &beta,
        g->c, CUDA_R_32F, g->ldc, batch->stride_c, batch->count, blas->compute, CUBLAS_GEMM_DEFAULT);
    weir_cuda_compute_library(self, (int)status, "cuBLAS", "computing a matrix product");
}
