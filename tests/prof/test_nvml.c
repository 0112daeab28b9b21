/* GPUs by NVML. The test's environment puts a stand-in for libnvidia-ml.so.1 first. */
#include "prof/gpu/nvml.h"

#include <criterion/criterion.h>
#include <string.h>

Test(nvml, figures_of_a_gpu)
{
    char why[256] = "";
    struct weir_nvml_gpu gpu;
    cr_assert_eq(weir_nvml_count(why, sizeof why), 2, "%s", why);
    cr_assert(weir_nvml_read(&gpu, 0));
    cr_assert_str_eq(gpu.name, "Fake GPU");
    cr_assert_float_eq(gpu.busy, 0.37, 1e-9);
    cr_assert_eq(gpu.memory_bytes, 80ull << 30);
    cr_assert_eq(gpu.memory_used_bytes, 10ull << 30);
    cr_assert_float_eq(gpu.to_gpu_bytes_per_s, 2e9, 1);
    cr_assert_float_eq(gpu.from_gpu_bytes_per_s, 1e6, 1);
    cr_assert_not(weir_nvml_read(&gpu, 2));
    cr_assert_not(weir_nvml_read(&gpu, -1));
}

Test(nvml, a_gpu_that_shows_nothing)
{
    struct weir_nvml_gpu gpu;
    cr_assert(weir_nvml_read(&gpu, 1));
    cr_assert_str_eq(gpu.name, "GPU 1");
    cr_assert(gpu.busy < 0 && gpu.to_gpu_bytes_per_s < 0 && gpu.from_gpu_bytes_per_s < 0);
    cr_assert_eq(gpu.memory_bytes, 0);
}

Test(nvml, processes)
{
    cr_assert(weir_nvml_has_process(0, 4242));
    cr_assert_not(weir_nvml_has_process(0, 4243));
    cr_assert_not(weir_nvml_has_process(1, 4242));
    cr_assert_not(weir_nvml_has_process(9, 4242));
}
