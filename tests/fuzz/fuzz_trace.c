/* libFuzzer: reads arbitrary bytes as a trace file, and computes averages, the step split, GPU idle time and clocks
 * inside kernels. */
#include "analyze/gpu_idle/gpu_idle.h"
#include "prof/gpu/kernel_clock_trace.h"
#include "prof/trace/trace_read.h"
#include "weir/trace.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct weir_trace *trace)
{
    static FILE *nowhere;
    const struct weir_averages_config config = {.by_shape = true, .by_stack = 2};
    const struct weir_averages_table table = {"self_cpu_time_total", -1, false, "title"};
    struct weir_averages *averages;
    struct weir_step *steps;
    nowhere = nowhere ? nowhere : fopen("/dev/null", "w");
    if (weir_averages_open(&averages, trace, &config) == 0) {
        weir_averages_print(nowhere, averages, &table);
        weir_averages_close(&averages);
    }
    int64_t n_steps = weir_steps_split(trace, &steps);
    struct weir_gpu_idle idle;
    if (n_steps >= 0 && weir_gpu_idle_make(&idle, trace, steps, n_steps) == 0) {
        weir_gpu_idle_print(nowhere, &idle);
        weir_gpu_idle_clear(&idle);
    }
    free(steps);
    struct weir_kernel_clocks clocks;
    if (weir_kernel_clocks_make(&clocks, trace) == 0) {
        weir_kernel_clocks_print(nowhere, &clocks);
        weir_kernel_clocks_clear(&clocks);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/dev/shm/weir_fuzz_trace_XXXXXX";
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_trace *trace;
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
    weir_trace_recognised(path);
    if (weir_trace_read(&trace, path, &err) == 0)
        look(trace);
    else if (err.code >= 0 || !*err.text)
        abort(); /* an error without a code or a message */
    weir_trace_free(&trace);
    unlink(path);
    return 0;
}
