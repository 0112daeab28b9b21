/* Records a real GPU. The trace must contain all work, in order, with each kernel and copy linked to its call and its
 * operator, for eight windows in succession. Prints launches per second before, during and after recording, and the
 * duration of the profiler's calls, but does not judge either. Traces are written to $OUT (or to the folder given as an
 * argument) as cupti0.pt.trace.json.gz, cupti1... for tests/checks/check_clients.sh. */
#include "prof/gpu/gpu_trace_ops.h"
#include "tests/gpu/gpu_steps.h"
#include "weir/base.h"
#include "weir/recorder.h"
#include "weir/stages.h"
#include "weir/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 4, WINDOWS = 8, LAUNCHES = 20000, BATCH = 500, TURNS = 5 };

static struct gpufx fx;
static struct weir_err err;
static const char *folder;
static int windows;

/* ---- contents of a window ---- */

struct counts {
    int kernels, copies, launches, waits, steps, annotations;
};

static struct counts count(const struct weir_trace *trace)
{
    struct counts counts = {0};
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        const char *name = weir_trace_text(trace, event->name);
        counts.kernels += event->cat == WEIR_CAT_KERNEL;
        counts.copies += event->cat == WEIR_CAT_GPU_MEMCPY && event->duration_ns > 0;
        counts.launches += event->cat == WEIR_CAT_CUDA_RUNTIME && strncmp(name, "cudaLaunchKernel", 16) == 0;
        counts.waits += event->cat == WEIR_CAT_CUDA_SYNC;
        counts.steps += strncmp(name, "ProfilerStep#", 13) == 0;
        counts.annotations += event->cat == WEIR_CAT_GPU_USER_ANNOTATION;
    }
    return counts;
}

static const struct weir_event *call_of(const struct weir_trace *trace, uint32_t correlation)
{
    for (size_t i = 0; i < trace->n_events; i++)
        if (trace->events[i].cat == WEIR_CAT_CUDA_RUNTIME && trace->events[i].correlation == correlation)
            return &trace->events[i];
    return NULL;
}

static const struct weir_event *operator_of(const struct weir_trace *trace, uint64_t external_id)
{
    for (size_t i = 0; i < trace->n_events; i++)
        if (trace->events[i].cat == WEIR_CAT_CPU_OP && trace->events[i].external_id == external_id)
            return &trace->events[i];
    return NULL;
}

/* Every kernel and copy must be linked to its call, and the call to its operator, with consistent threads and times. */
static void check_joins(const struct weir_trace *trace)
{
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        if (event->cat != WEIR_CAT_KERNEL && event->cat != WEIR_CAT_GPU_MEMCPY)
            continue;
        const char *name = weir_trace_text(trace, event->name);
        const struct weir_event *call = call_of(trace, event->correlation);
        gpufx_check(call != NULL, "%s has no call", name);
        const struct weir_event *asked = operator_of(trace, event->external_id);
        gpufx_check(asked != NULL, "%s has no operator", name);
        gpufx_check(call->external_id == event->external_id, "%s and its call differ in External id", name);
        gpufx_check(call->track == asked->track, "%s was called from another thread than its operator", name);
        gpufx_check(call->start_ns >= asked->start_ns && call->start_ns < asked->start_ns + asked->duration_ns,
                    "%s was not called inside its operator", name);
        gpufx_check(event->start_ns >= call->start_ns, "%s begins before its call", name);
        gpufx_check(event->start_ns - call->start_ns < 1000000000, "%s begins %lld ns after its call", name,
                    (long long)(event->start_ns - call->start_ns));
        gpufx_check(trace->tracks[event->track].device && trace->tracks[event->track].pid == 0,
                    "%s is not on a row of the GPU", name);
    }
}

/* Kernels on one stream must not overlap. */
static void check_order(const struct weir_trace *trace)
{
    int64_t end_ns = 0;
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        if (event->cat != WEIR_CAT_KERNEL)
            continue;
        gpufx_check(event->start_ns >= end_ns, "two kernels on one stream overlap");
        gpufx_check(strstr(weir_trace_text(trace, event->args), "occupancy %") != NULL, "no occupancy");
        end_ns = event->start_ns + event->duration_ns;
    }
}

static void on_window(void *user, const struct weir_profiler_window *window)
{
    (void)user;
    const struct weir_trace *trace = window->trace;
    gpufx_check(trace != NULL && window->dropped == 0, "no trace, or %llu records dropped",
                (unsigned long long)window->dropped);
    struct counts c = count(trace);
    printf("window %d: %zu events: %d kernels, %d copies, %d launches, %d waits, %d annotations on streams; %s\n",
           windows, trace->n_events, c.kernels, c.copies, c.launches, c.waits, c.annotations,
           weir_trace_text(trace, trace->metadata));
    char path[4096];
    snprintf(path, sizeof path, "%s/cupti%d.pt.trace.json.gz", folder, windows);
    if (folder)
        gpufx_fine(weir_trace_write(window->trace, path, &err), &err);
    gpufx_check(c.steps == STEPS, "%d steps", c.steps);
    gpufx_check(c.kernels == STEPS * GPU_STEP_KERNELS, "%d kernels", c.kernels);
    gpufx_check(c.launches == STEPS * GPU_STEP_KERNELS, "%d launches", c.launches);
    gpufx_check(c.copies == STEPS, "%d copies", c.copies);
    gpufx_check(c.annotations == STEPS, "%d annotations on streams", c.annotations);
    gpufx_check(c.waits >= STEPS, "%d waits", c.waits);
    gpufx_check(trace->n_devices >= 1, "no device properties");
    check_joins(trace);
    check_order(trace);
    windows++;
}

static void on_message(void *user, const char *line)
{
    (void)user;
    gpufx_check(false, "%s", line);
}

static void record_windows(void)
{
    struct gpu_steps steps;
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    weir_profiler_config_default(&config);
    config.schedule = (struct weir_schedule){.wait = 1, .warmup = 1, .active = STEPS, .repeat = WINDOWS};
    config.gpu = config.profile_memory = true;
    config.on_trace_ready = on_window;
    config.on_message = on_message;
    gpu_steps_open(&steps, &fx);
    gpufx_fine(weir_profiler_open(&profiler, &config, &err), &err);
    for (int step = 0; step < WINDOWS * (2 + STEPS); step++) {
        uint64_t start_ns = weir_clock_monotonic_ns();
        gpu_steps_run(&steps);
        uint64_t ran_ns = weir_clock_monotonic_ns();
        weir_profiler_step(profiler);
        printf("step %2d: %6.2f ms, the profiler's step %6.2f ms\n", step, (double)(ran_ns - start_ns) / 1e6,
               (double)(weir_clock_monotonic_ns() - ran_ns) / 1e6);
    }
    weir_profiler_close(&profiler);
    gpu_steps_close(&steps);
    gpufx_check(windows == WINDOWS, "%d windows", windows);
}

/* ---- cost of launches ---- */

/* Measures only the caller's time. Launches are made in batches that fit in the GPU's queue, and each batch is awaited
 * before the next. */
static double launches_per_second(void)
{
    uint64_t spent_ns = 0;
    for (int i = 0; i < LAUNCHES / BATCH; i++) {
        uint64_t start_ns = weir_clock_monotonic_ns();
        for (int k = 0; k < BATCH; k++)
            gpufx_fine(fx.ops->busy(fx.gpu, 0, fx.stream, &err), &err);
        spent_ns += weir_clock_monotonic_ns() - start_ns;
        gpufx_sync(&fx, fx.stream);
    }
    return LAUNCHES / ((double)spent_ns / 1e9);
}

static double best_launches_per_second(void)
{
    double best = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        double rate = launches_per_second();
        best = rate > best ? rate : best;
    }
    return best;
}

static void ignore(void *user, const struct weir_gpu_record *record)
{
    int *kernels = user;
    *kernels += record->kind == WEIR_GPU_RECORD_KERNEL;
}

static uint64_t clock_now_ns(void)
{
    return weir_clock_to_ns(weir_clock_ticks());
}

static double launches_while_recording(void)
{
    const struct weir_gpu_trace_config config = {
        .now_ns = clock_now_ns, .bytes_max = UINT64_C(1) << 30, .memory = false};
    struct weir_gpu_records *records;
    int kernels = 0;
    gpufx_fine(fx.module->trace->start(&config, &err), &err);
    double rate = best_launches_per_second();
    gpufx_fine(fx.module->trace->stop(&records, &err), &err);
    fx.module->trace->each(records, ignore, &kernels);
    uint64_t dropped = fx.module->trace->dropped(records);
    fx.module->trace->free(records);
    printf("recorded: %d kernels of %d, %llu dropped\n", kernels, TURNS * LAUNCHES, (unsigned long long)dropped);
    gpufx_check((uint64_t)kernels + dropped >= (uint64_t)TURNS * LAUNCHES, "kernels are missing");
    return rate;
}

/* ---- times of calls ---- */

enum { CALLS = 400 };

static struct bracket {
    uint64_t before_ns, after_ns;
} brackets[CALLS];
static int n_launches, n_outside;
static int64_t least_before_ns, least_after_ns;

static void compare_with_bracket(void *user, const struct weir_gpu_record *record)
{
    (void)user;
    if (record->kind != WEIR_GPU_RECORD_RUNTIME || strncmp(record->name, "cudaLaunchKernel", 16) != 0 ||
        n_launches >= CALLS)
        return;
    const struct bracket *bracket = &brackets[n_launches++];
    int64_t before_ns = (int64_t)(record->start_ns - bracket->before_ns);
    int64_t after_ns = (int64_t)(bracket->after_ns - record->end_ns);
    n_outside += before_ns < 0 || after_ns < 0;
    least_before_ns = before_ns < least_before_ns ? before_ns : least_before_ns;
    least_after_ns = after_ns < least_after_ns ? after_ns : least_after_ns;
}

/* CUPTI's call times must be on our clock: each must be between our readings before and after the call. */
static void check_call_times(int session)
{
    const struct weir_gpu_trace_config config = {
        .now_ns = clock_now_ns, .bytes_max = UINT64_C(1) << 30, .memory = false};
    struct weir_gpu_records *records;
    gpufx_fine(fx.module->trace->start(&config, &err), &err);
    for (int i = 0; i < CALLS; i++) {
        brackets[i].before_ns = clock_now_ns();
        gpufx_fine(fx.ops->busy(fx.gpu, 0, fx.stream, &err), &err);
        brackets[i].after_ns = clock_now_ns();
        usleep(500);
    }
    gpufx_fine(fx.module->trace->stop(&records, &err), &err);
    n_launches = n_outside = 0;
    least_before_ns = least_after_ns = INT64_MAX;
    fx.module->trace->each(records, compare_with_bracket, NULL);
    fx.module->trace->free(records);
    printf("session %d: %d calls, %d outside their brackets; %lld ns after, %lld ns before, at least\n", session,
           n_launches, n_outside, (long long)least_before_ns, (long long)least_after_ns);
    gpufx_check(n_launches == CALLS, "%d calls", n_launches);
    gpufx_check(n_outside == 0, "%d calls outside their brackets", n_outside);
}

int main(int argc, char **argv)
{
    struct weir_recorder *recorder;
    char text[256];
    folder = argc > 1 ? argv[1] : getenv("OUT");
    gpufx_open(&fx);
    gpufx_check(fx.module->trace != NULL, "the module was built without CUPTI");
    fx.module->trace->library(text, sizeof text);
    printf("%s\n", text);
    weir_clock_init();
    double before = best_launches_per_second(); /* before CUPTI is loaded */
    if (fx.module->trace->check(&err) < 0) {
        printf("skipped: %s\n", err.text);
        gpufx_close(&fx);
        return 77;
    }
    double checked = best_launches_per_second();
    gpufx_fine(weir_loader_stages(), &err);
    gpufx_fine(weir_recorder_open(&recorder), &err);
    gpufx_fine(weir_thread_attach(recorder, "consumer", WEIR_ROLE_CONSUMER), &err);
    for (int session = 0; session < 4; session++)
        check_call_times(session);
    record_windows();
    double between = best_launches_per_second(), during = launches_while_recording(),
           after = best_launches_per_second();
    printf(
        "launches/s, best of %d x %d: before %.0f, after the check %.0f, after two windows %.0f, while recording %.0f, "
        "after recording %.0f (%.1f %% of before)\n",
        TURNS, LAUNCHES, before, checked, between, during, after, 100 * after / before);
    weir_thread_detach();
    weir_recorder_close(&recorder);
    gpufx_close(&fx);
    return 0;
}
