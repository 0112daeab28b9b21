#include "analyze/trials/child.h"
#include "base/resources.h"
#include "extras/scenario/cli/scenario_cli.h"
#include "extras/scenario/mock_loader.h"
#include "pipeline/gpu/gpu.h"
#include "prof/gpu/cuda_module.h"
#include "weir/profiler.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_STEPS = 1, WARMUP_STEPS = 1, FIX_PREFETCH = 4, ITEM_UNIT_NS = 50 };

/* The resources of a run. */
struct parts {
    const struct scenario_run *run;
    struct weir_recorder *recorder;
    struct weir_cnn_gpu gpu;
    struct weir_scenario *scenario;
    struct weir_mock_loader *loader;
    struct weir_profiler *profiler;
    struct weir_err trace; /* error while writing the trace */
    char trace_path[4096];
};

/* With --fix, plans several workers per core, because an item sleeps longer than it computes. One core is left for the
 * thread that launches kernels. */
void weir_scenario_plan(struct scenario_run *run)
{
    uint64_t units, io_ns;
    run->workers = run->options->num_workers;
    run->prefetch = run->options->prefetch_factor;
    if (!run->fix || run->kind != WEIR_SCENARIO_DATALOADER)
        return;
    weir_scenario_item(run->kind, &units, &io_ns);
    int cores = weir_cores_usable() > 1 ? weir_cores_usable() - 1 : 1;
    int workers = cores * (int)((units * ITEM_UNIT_NS + io_ns) / (units * ITEM_UNIT_NS));
    workers = workers < WEIR_MOCK_WORKERS_MAX ? workers : WEIR_MOCK_WORKERS_MAX;
    run->workers = workers > run->workers ? workers : run->workers;
    run->prefetch = run->prefetch > FIX_PREFETCH ? run->prefetch : FIX_PREFETCH;
}

/* ---- the profiler ---- */

static void on_message(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "weir scenario: profile: %s\n", line);
}

static void on_window(void *user, const struct weir_profiler_window *window)
{
    struct parts *parts = user;
    snprintf(parts->trace_path, sizeof parts->trace_path, "%s", window->path ? window->path : "");
    if (window->error)
        weir_err_set(&parts->trace, -EIO, "%s", window->error);
}

static int open_profiler(struct parts *parts, struct weir_err *err)
{
    const struct scenario_options *o = parts->run->options;
    struct weir_profiler_config config;
    char worker[64];
    snprintf(worker, sizeof worker, "%s%s%s", weir_scenario_texts[parts->run->kind].name, parts->run->fix ? "_fix" : "",
             parts->run->device ? "" : "_cpu");
    weir_profiler_config_default(&config);
    config.schedule =
        (struct weir_schedule){.wait = WAIT_STEPS, .warmup = WARMUP_STEPS, .active = o->profile_steps, .repeat = 1};
    config.record_shapes = config.profile_memory = true;
    config.gpu = parts->run->device != NULL;
    config.with_stack = o->with_stack;
    config.folder = o->trace_dir;
    config.worker = worker;
    config.on_trace_ready = on_window;
    config.on_message = on_message;
    config.user = parts;
    return weir_profiler_open(&parts->profiler, &config, err);
}

/* ---- open ---- */

static int open_loader(struct parts *parts, struct weir_err *err)
{
    const struct scenario_options *o = parts->run->options;
    struct weir_mock_loader_config config = {
        .items = SCENARIO_ITEMS,
        .batch_size = o->batch_size,
        .workers = parts->run->workers,
        .prefetch = parts->run->prefetch,
        .persistent = o->persistent_workers,
        .image_floats = WEIR_CNN_IMAGE,
        .target_floats = WEIR_CNN_OUTPUTS,
        .seed = o->seed,
        .device = parts->run->device,
        .pin = o->pin_memory && parts->run->device ? weir_device_pin : NULL,
        .unpin = weir_device_unpin,
        .recorder = parts->recorder,
    };
    weir_scenario_item(parts->run->kind, &config.cpu_units, &config.io_ns);
    return weir_mock_loader_open(&parts->loader, &config, err);
}

static int open_gpu(struct parts *parts, struct weir_err *err)
{
    struct weir_device *device = parts->run->device;
    parts->gpu =
        (struct weir_cnn_gpu){.number = weir_device_number(device), .device = device, .copy_in = weir_device_copy_in};
    int rc = weir_device_stream(device, &parts->gpu.stream, err);
    if (rc == 0 && !(parts->gpu.ops = weir_cuda_module_extra("compute", err)))
        rc = err->code;
    return rc;
}

static int open_parts(struct parts *parts, struct weir_err *err)
{
    const struct weir_scenario_config config = {
        .kind = parts->run->kind,
        .fix = parts->run->fix,
        .gpu = parts->run->device ? &parts->gpu : NULL,
        .batch_size = parts->run->options->batch_size,
        .amp = parts->run->options->amp,
        .seed = parts->run->options->seed,
    };
    weir_loader_stages();
    int rc = weir_recorder_open(&parts->recorder);
    if (rc == 0)
        rc = weir_thread_attach(parts->recorder, "loop", WEIR_ROLE_CONSUMER);
    if (rc < 0)
        return weir_err_set(err, rc, "cannot set up the profiler: %s", strerror(-rc));
    rc = parts->run->device ? open_gpu(parts, err) : 0;
    if (rc == 0)
        rc = weir_scenario_open(&parts->scenario, &config, err);
    return rc == 0 ? open_loader(parts, err) : rc;
}

static void close_parts(struct parts *parts)
{
    weir_profiler_close(&parts->profiler);
    weir_mock_loader_close(&parts->loader);
    weir_scenario_close(&parts->scenario);
    if (parts->gpu.stream)
        weir_device_stream_free(parts->run->device, parts->gpu.stream);
    weir_thread_detach();
    weir_recorder_close(&parts->recorder);
}

/* ---- steps ---- */

/* Timestamps of one iteration. */
struct times {
    uint64_t start_ns, arrived_ns, end_ns; /* batch requested, batch received, step finished */
};

static int iterate(struct parts *parts, struct times *times, struct weir_err *err)
{
    const struct weir_mock_loader_batch *batch;
    times->start_ns = weir_clock_monotonic_ns();
    int rc = weir_mock_loader_next(parts->loader, &batch, err);
    times->arrived_ns = weir_clock_monotonic_ns();
    if (rc < 0)
        return rc;
    rc = weir_scenario_step(parts->scenario, batch->images, batch->targets, err);
    int done_rc = weir_scenario_measure(parts->scenario, rc == 0 ? err : NULL); /* then the batch is no longer read */
    times->end_ns = weir_clock_monotonic_ns();
    weir_mock_loader_release(parts->loader);
    return rc < 0 ? rc : done_rc;
}

static void add_times(struct scenario_result *result, const struct times *times, double factor)
{
    result->iteration_s += factor * (double)(times->end_ns - times->start_ns);
    result->step_s += factor * (double)(times->end_ns - times->arrived_ns);
    result->wait_s += factor * (double)(times->arrived_ns - times->start_ns);
}

static int run_steps(struct parts *parts, struct scenario_result *result, struct weir_err *err)
{
    const struct scenario_options *o = parts->run->options;
    int plain = o->warmup_steps, all = plain + WAIT_STEPS + WARMUP_STEPS + o->profile_steps;
    for (int i = 0; i < all; i++) {
        struct times times = {0};
        int rc = i == plain ? open_profiler(parts, err) : 0;
        if (rc == 0)
            rc = iterate(parts, &times, err);
        if (rc < 0)
            return rc;
        if (weir_interrupted)
            return 1;
        if (i >= all - o->profile_steps)
            add_times(result, &times, 1e-9 / o->profile_steps);
        weir_profiler_step(parts->profiler);
    }
    result->steps = o->profile_steps;
    result->first_step = WAIT_STEPS + WARMUP_STEPS;
    return 0;
}

/* ---- results ---- */

/* Counts the ranges whose names start with the prefix, and adds up their durations. */
static void find_shown(struct scenario_result *result, const char *begins)
{
    const struct weir_trace *trace = result->trace;
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        if (event->kind != WEIR_EVENT_RANGE ||
            strncmp(weir_trace_text(trace, event->name), begins, strlen(begins)) != 0)
            continue;
        result->shown_calls++;
        result->shown_s += 1e-9 * (double)event->duration_ns;
    }
}

static int make_idle(struct scenario_result *result)
{
    struct weir_step *steps;
    int64_t n = weir_steps_split(result->trace, &steps);
    if (n < 0)
        return (int)n;
    int rc = weir_gpu_idle_make(&result->idle, result->trace, steps, n);
    free(steps);
    return rc;
}

static int take_result(struct parts *parts, struct scenario_result *result, struct weir_err *err)
{
    struct weir_simple_cnn *cnn = weir_scenario_cnn(parts->scenario);
    weir_profiler_stop(parts->profiler);
    weir_profiler_flush(parts->profiler);
    result->trace = weir_profiler_take(parts->profiler);
    snprintf(result->trace_path, sizeof result->trace_path, "%s", parts->trace_path);
    snprintf(result->engine, sizeof result->engine, "%s", weir_simple_cnn_engine(cnn));
    result->parameters = weir_simple_cnn_parameters(cnn);
    result->loss = weir_simple_cnn_loss(cnn);
    result->loss_scale = weir_simple_cnn_loss_scale(cnn);
    int rc = weir_simple_cnn_finish(cnn, err);
    if (rc < 0)
        return rc;
    if (parts->trace.code < 0)
        return weir_err_set(err, parts->trace.code, "cannot write the trace: %s", parts->trace.text);
    if (!result->trace || make_idle(result) < 0)
        return weir_err_set(err, -ENOMEM, "out of memory for the trace; use fewer --profile_steps");
    find_shown(result, weir_scenario_texts[parts->run->kind].cpu_range);
    return 0;
}

int weir_scenario_run(const struct scenario_run *run, struct scenario_result *result, struct weir_err *err)
{
    struct parts parts = {.run = run};
    *result = (struct scenario_result){0};
    int rc = open_parts(&parts, err);
    if (rc == 0)
        rc = run_steps(&parts, result, err);
    if (rc == 0)
        rc = take_result(&parts, result, err);
    close_parts(&parts);
    return rc;
}

void weir_scenario_result_clear(struct scenario_result *result)
{
    weir_gpu_idle_clear(&result->idle);
    weir_trace_free(&result->trace);
}

const struct weir_idle_device *weir_scenario_idle(const struct scenario_result *result,
                                                  const struct weir_device *device)
{
    for (int i = 0; device && i < result->idle.n_devices; i++)
        if (result->idle.devices[i].device == weir_device_number(device))
            return &result->idle.devices[i];
    return NULL;
}
