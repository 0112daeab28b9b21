#include "workloads/blas.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Debian's OpenBLAS; whatever its alternatives system has chosen as BLAS; the reference CBLAS of others. */
static const char *const libraries[] = {"libopenblas.so.0", "libblas.so.3", "libcblas.so.3"};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

#ifdef WEIR_REAL_DOUBLE
static const char gemm_name[] = "cblas_dgemm";
#else
static const char gemm_name[] = "cblas_sgemm";
#endif

/* Writes the function of this name to where function points, for ISO C has no cast from a data pointer to a function.
 */
static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol;
}

/* OpenBLAS has functions of its own: openblas_get_config gives "OpenBLAS 0.3.21 DYNAMIC_ARCH ...". Products are
 * computed in the thread that asks for them, because the engine spreads them, and what is around them, over its own
 * threads. */
static void configure(struct weir_blas *blas, void *library, const char *file)
{
    void (*set_threads)(int) = NULL;
    const char *(*config)(void) = NULL;
    if (find(library, "openblas_set_num_threads", &set_threads))
        set_threads(1);
    if (find(library, "openblas_get_config", &config)) {
        snprintf(blas->name, sizeof blas->name, "%s", config());
        char *end = strchr(blas->name, ' ');
        end = end ? strchr(end + 1, ' ') : NULL;
        if (end)
            *end = '\0';
    } else {
        snprintf(blas->name, sizeof blas->name, "BLAS of %s", file);
    }
}

int weir_blas_open(struct weir_blas *blas, struct weir_err *err)
{
    *blas = (struct weir_blas){0};
    for (int i = 0; i < LIBRARIES; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
        if (library && find(library, gemm_name, &blas->gemm)) {
            configure(blas, library, libraries[i]);
            return 0;
        }
        if (library)
            dlclose(library);
    }
    return weir_err_set(err, -ENOENT,
                        "no BLAS library is there (%s was looked for first); Debian's is installed by "
                        "apt install libopenblas0-pthread",
                        libraries[0]);
}
