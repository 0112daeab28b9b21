#include "extras/common/compute_cpu_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In order of preference: Debian's OpenBLAS, the distribution's default BLAS, the reference CBLAS. */
static const char *const libraries[] = {"libopenblas.so.0", "libblas.so.3", "libcblas.so.3"};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

#ifdef WEIR_REAL_DOUBLE
static const char gemm_name[] = "cblas_dgemm";
#else
static const char gemm_name[] = "cblas_sgemm";
#endif

/* Returns the maximum number of threads that may call OpenBLAS concurrently, according to its configuration string.
 * OpenBLAS has memory for MAX_THREADS threads of its own and for MAX_THREADS callers. With more callers, version 0.3.21
 * occasionally returns wrong products. A single-threaded build gets one caller, because its configuration string does
 * not show whether it was built with locks. */
static int callers_max(const char *config)
{
    static const char word[] = "MAX_THREADS=";
    const char *found = strstr(config, word);
    int threads = found ? atoi(found + strlen(word)) : 0;
    return strstr(config, "SINGLE_THREADED") ? 1 : threads > 0 ? threads : INT_MAX;
}

/* Stores the function's address in *function, a pointer to a function pointer. */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol;
}

/* Fills in *blas for a library that has gemm. openblas_get_config returns a string that begins like "OpenBLAS 0.3.21
 * DYNAMIC_ARCH". Returns false if the library uses 64-bit integers. */
static bool examine(struct weir_blas *blas, void *library, const char *file)
{
    const char *(*config)(void) = NULL;
    snprintf(blas->name, sizeof blas->name, "BLAS of %s", file);
    blas->callers_max = INT_MAX;
    find(library, "openblas_set_num_threads", &blas->set_threads);
    if (!find(library, "openblas_get_config", &config))
        return true;
    const char *text = config(), *end = strchr(text, ' ');
    end = end ? strchrnul(end + 1, ' ') : strchr(text, '\0');
    blas->callers_max = callers_max(text);
    snprintf(blas->name, sizeof blas->name, "%.*s%s", (int)(end - text), text,
             blas->callers_max == 1 ? " built for one thread" : "");
    return !strstr(text, "USE64BITINT");
}

int weir_blas_open(struct weir_blas *blas, struct weir_err *err)
{
    *blas = (struct weir_blas){0};
    for (int i = 0; i < LIBRARIES; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
        if (library && find(library, gemm_name, &blas->gemm) && examine(blas, library, libraries[i]))
            return 0;
        if (library)
            dlclose(library);
    }
    return weir_err_set(err, -ENOENT,
                        "no BLAS library with 32-bit integers found (tried %s first); on Debian, run: apt install "
                        "libopenblas0-pthread",
                        libraries[0]);
}

/* OpenMP builds of OpenBLAS keep one thread count per calling thread. In other builds the last call sets it for all
 * threads. */
void weir_blas_use_one_thread(const struct weir_blas *blas)
{
    if (blas->set_threads)
        blas->set_threads(1);
}
