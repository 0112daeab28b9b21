/* libFuzzer: reads arbitrary bytes as a trace file, and computes averages, the step split, GPU idle time and clocks
 * inside kernels; then the same with them merged into the trace of a window. */
#include "analyze/gpu_idle/gpu_idle.h"
#include "prof/gpu/gpu_trace.h"
#include "prof/trace/trace_read.h"
#include "tests/fuzz/fuzz.h"
#include "weir/trace.h"

#include <stdio.h>
#include <unistd.h>

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

/* Adds the file to a window of 1 s that contains one range. */
static void merge(const char *path)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_trace *trace;
    if (weir_trace_new(&trace) < 0)
        abort();
    trace->begin_ns = 1000;
    trace->end_ns = 1000000000;
    const struct weir_event event = {.start_ns = 2000, .duration_ns = 5000, .external_id = UINT64_MAX - 1};
    if (weir_trace_track(trace, 1, 1, false, 0) != 0 || weir_trace_add(trace, &event) < 0)
        abort();
    if (weir_trace_merge(trace, path, &err) == 0)
        look(trace);
    else if (err.code >= 0 || !*err.text)
        abort();
    for (size_t i = 0; i < trace->n_events; i++)
        if (!weir_cat_is_device((enum weir_cat)trace->events[i].cat) &&
            (trace->events[i].start_ns < 1000 || trace->events[i].duration_ns > 1000000000 - trace->events[i].start_ns))
            abort(); /* outside the window */
    weir_trace_free(&trace);
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
    merge(path);
    unlink(path);
    return 0;
}
