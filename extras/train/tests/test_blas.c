/* Tests how the engine handles builds of OpenBLAS: with OpenMP, single-threaded, and with 64-bit integers. A fake
 * library with OpenBLAS's name is loaded first, so that dlopen finds it. */
#include "extras/common/compute_ops.h"
#include "extras/train/tests/policy_fixture.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static void *find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    cr_assert(symbol, "%s", name);
    return symbol;
}

static void *load_fake(const char *configuration)
{
    void *library = dlopen(FAKE_OPENBLAS, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    void (*configure)(const char *);
    *(void **)&configure = find(library, "fake_openblas_configure");
    configure(configuration);
    return library;
}

static int callers_with_many(void *library)
{
    int (*count)(void);
    *(void **)&count = find(library, "fake_openblas_callers_with_many");
    return count();
}

static void open_engine(void **self, int threads, const char *wanted)
{
    const struct weir_compute_ops *ops = &weir_compute_cpu;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(ops->open(self, &(struct weir_compute_config){.threads = threads}, &err), 0, "%s", err.text);
    cr_assert_str_eq(ops->describe(*self), wanted);
}

/* OpenBLAS calls omp_set_num_threads, which applies only to the calling thread. */
Test(blas, each_thread_computes_its_products_alone)
{
    void *library = load_fake("OpenBLAS 0.3.21 NO_LAPACKE USE_OPENMP Haswell MAX_THREADS=64");
    struct weir_policy_config config = fixture_config();
    struct weir_policy *policy;
    struct fixture_batch batch;
    config.threads = 3;
    cr_assert_eq(weir_policy_open(&policy, &config, NULL), 0);
    cr_assert_str_eq(weir_policy_engine(policy), "OpenBLAS 0.3.21, 3 threads");
    fixture_batch_open(&batch, &config, 2, 1);
    weir_policy_forward(policy, &batch.inputs);
    weir_policy_backward(policy);
    cr_assert_eq(callers_with_many(library), 0);
    fixture_batch_close(&batch);
    weir_policy_close(&policy);
}

/* OpenBLAS has memory for MAX_THREADS callers only. */
Test(blas, has_no_more_threads_than_the_library_is_built_for)
{
    void *self;
    load_fake("OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=4");
    open_engine(&self, 5, "OpenBLAS 0.3.21, 4 threads");
    weir_compute_cpu.close(self);
    open_engine(&self, 2, "OpenBLAS 0.3.21, 2 threads");
    weir_compute_cpu.close(self);
}

Test(blas, has_one_thread_where_the_library_has_no_locks)
{
    void *self;
    load_fake("OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Haswell SINGLE_THREADED");
    open_engine(&self, 5, "OpenBLAS 0.3.21 built for one thread, 1 thread");
    weir_compute_cpu.close(self);
}

/* The engine must not use the fake library, but may find another one on the machine. */
Test(blas, is_none_of_64_bit_integers)
{
    void *self;
    struct weir_err err = WEIR_ERR_NONE;
    load_fake("OpenBLAS 9.8.7  USE64BITINT NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=64");
    if (weir_compute_cpu.open(&self, &(struct weir_compute_config){.threads = 2}, &err) == 0)
        cr_assert(!strstr(weir_compute_cpu.describe(self), "9.8.7"));
    else
        cr_assert_eq(err.code, -ENOENT, "%s", err.text);
    weir_compute_cpu.close(self);
}
