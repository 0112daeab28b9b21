/* make_gpu_trace FILE: records a few steps on a real GPU, or on the fake one if WEIR_CUDA_MODULE selects it. Trace
 * clients read the file (tests/checks/check_clients.sh). Exits with status 77 without a GPU. */
#include "tests/gpu/gpu_steps.h"
#include "weir/recorder.h"
#include "weir/stages.h"
#include "weir/trace.h"

#include <stdio.h>

static const char *path;
static bool written;

static void on_window(void *user, const struct weir_profiler_window *window)
{
    struct weir_err err = WEIR_ERR_NONE;
    (void)user;
    gpufx_check(window->trace != NULL, "no trace");
    gpufx_fine(weir_trace_write(window->trace, path, &err), &err);
    written = true;
    printf("%s: %zu events, %llu dropped\n", path, window->trace->n_events, (unsigned long long)window->dropped);
}

static void on_message(void *user, const char *line)
{
    (void)user;
    gpufx_check(false, "%s", line);
}

int main(int argc, char **argv)
{
    struct gpufx fx;
    struct gpu_steps steps;
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    struct weir_recorder *recorder;
    struct weir_err err = WEIR_ERR_NONE;
    gpufx_check(argc == 2, "usage: make_gpu_trace FILE.pt.trace.json[.gz]");
    path = argv[1];
    gpufx_open(&fx);
    gpu_steps_open(&steps, &fx);
    gpufx_fine(weir_loader_stages(), &err);
    gpufx_fine(weir_recorder_open(&recorder), &err);
    gpufx_fine(weir_thread_attach(recorder, "consumer", WEIR_ROLE_CONSUMER), &err);
    weir_profiler_config_default(&config);
    config.schedule = (struct weir_schedule){.wait = 1, .warmup = 2, .active = 6, .repeat = 1};
    config.gpu = config.record_shapes = config.profile_memory = config.with_stack = true;
    config.on_trace_ready = on_window;
    config.on_message = on_message;
    gpufx_fine(weir_profiler_open(&profiler, &config, &err), &err);
    for (int step = 0; step < 10; step++) {
        gpu_steps_run(&steps);
        weir_profiler_step(profiler);
    }
    weir_profiler_close(&profiler);
    weir_thread_detach();
    weir_recorder_close(&recorder);
    gpu_steps_close(&steps);
    gpufx_close(&fx);
    return !written;
}
