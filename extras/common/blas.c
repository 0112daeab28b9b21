#include "extras/common/blas.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
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

/* How many threads may call OpenBLAS at a time, by the words of its configuration. Its memory is laid out for
 * MAX_THREADS of its own and as many callers, and version 0.3.21 gives wrong products now and then when more call it.
 * So does a build without threads (SINGLE_THREADED) as soon as two do, unless its locks were built in, which it does
 * not tell. */
static int callers_max(const char *config)
{
    static const char word[] = "MAX_THREADS=";
    const char *found = strstr(config, word);
    int threads = found ? atoi(found + strlen(word)) : 0;
    return strstr(config, "SINGLE_THREADED") ? 1 : threads > 0 ? threads : INT_MAX;
}

/* What is known of a library that has gemm. openblas_get_config gives "OpenBLAS 0.3.21 DYNAMIC_ARCH ...". False: its
 * integers have 64 bits. */
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
    return weir_err_set(
        err, -ENOENT,
        "no BLAS library with 32-bit integers is there (%s was looked for first); Debian's is installed by "
        "apt install libopenblas0-pthread",
        libraries[0]);
}

/* OpenBLAS built with OpenMP has a number of threads for each caller; elsewhere the last call is for all. */
void weir_blas_use_one_thread(const struct weir_blas *blas)
{
    if (blas->set_threads)
        blas->set_threads(1);
}
