/* Records of the GPU's recorder, combined with those of our own threads, using the fake recorder
 * (tests/fakes/fake_cuda_trace.c). */
#include "pipeline/gpu/gpu_ops.h"
#include "prof/gpu/cuda_module.h"
#include "prof/gpu/gpu_trace.h"
#include "tests/fakes/fake_trace.h"
#include "weir/profiler.h"
#include "weir/recorder.h"
#include "weir/stages.h"
#include "weir/trace.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST = 100 }; /* first correlation ID of scripted calls */

static const struct weir_cuda_module *module;
static const struct fake_trace *fake;

static void open_module(void)
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_loader_stages(), 0);
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    cr_assert_eq(weir_cuda_module_open(&module, &err), 0, "%s", err.text);
    void *handle = dlopen(FAKE_CUDA_MODULE, RTLD_NOW | RTLD_LOCAL);
    fake = dlsym(handle, "fake_trace");
    cr_assert(fake);
}

TestSuite(gpu_trace, .init = open_module);

/* ---- a profiler and its windows ---- */

struct seen {
    int windows, messages;
    char message[512];
    uint64_t dropped;
    void (*look)(const struct weir_profiler_window *window);
};

static void note_message(void *user, const char *line)
{
    struct seen *seen = user;
    seen->messages++;
    snprintf(seen->message, sizeof seen->message, "%s", line);
}

static void note_window(void *user, const struct weir_profiler_window *window)
{
    struct seen *seen = user;
    cr_assert(window->trace);
    seen->windows++;
    seen->dropped += window->dropped;
    if (seen->look)
        seen->look(window);
}

static struct weir_profiler *open_profiler(struct seen *seen, const char *schedule)
{
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    struct weir_err err = WEIR_ERR_NONE;
    weir_profiler_config_default(&config);
    cr_assert_eq(weir_schedule_parse(&config.schedule, schedule, &err), 0, "%s", err.text);
    config.gpu = config.profile_memory = true;
    config.on_trace_ready = note_window;
    config.on_message = note_message;
    config.user = seen;
    cr_assert_eq(weir_profiler_open(&profiler, &config, &err), 0, "%s", err.text);
    return profiler;
}

/* Runs `script` in the only recorded step, and passes the window to `look`. */
static struct seen record(void (*script)(void), void (*look)(const struct weir_profiler_window *))
{
    struct seen seen = {.look = look};
    struct weir_profiler *profiler = open_profiler(&seen, "warmup=1,active=1,repeat=1");
    weir_profiler_step(profiler);
    script();
    weir_profiler_step(profiler);
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 1);
    cr_assert_eq(fake->kept(), 0, "recordings are not freed");
    return seen;
}

static const char *name_of(const struct weir_trace *trace, const struct weir_event *event)
{
    return weir_trace_text(trace, event->name);
}

static int count(const struct weir_trace *trace, enum weir_cat cat)
{
    int n = 0;
    for (size_t i = 0; i < trace->n_events; i++)
        n += trace->events[i].cat == cat;
    return n;
}

/* Returns the only event of this category and name. Correlation 0 matches any. */
static const struct weir_event *find(const struct weir_trace *trace, enum weir_cat cat, const char *name,
                                     uint32_t correlation)
{
    const struct weir_event *found = NULL;
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        if (event->cat != cat || strcmp(name_of(trace, event), name) != 0 ||
            (correlation && event->correlation != correlation))
            continue;
        cr_assert_null(found, "%s %u occurs twice", name, correlation);
        found = event;
    }
    cr_assert(found, "%s %u is missing", name, correlation);
    return found;
}

static bool has_arg(const struct weir_trace *trace, const struct weir_event *event, const char *text)
{
    return strstr(weir_trace_text(trace, event->args), text) != NULL;
}

static int64_t row_of(const struct weir_trace *trace, const struct weir_event *event)
{
    return trace->tracks[event->track].tid;
}

/* ---- scripts ---- */

static void wait_until(uint64_t ns)
{
    while (weir_gpu_now_ns() < ns)
        ;
}

static struct weir_gpu_record call_at(uint64_t ns, const char *name, uint32_t correlation)
{
    return (struct weir_gpu_record){.kind = WEIR_GPU_RECORD_RUNTIME,
                                    .name = name,
                                    .start_ns = ns,
                                    .end_ns = ns + 1000,
                                    .tid = gettid(),
                                    .cbid = 211,
                                    .correlation = correlation};
}

static struct weir_gpu_record kernel_at(uint64_t ns, uint64_t length_ns, uint32_t correlation)
{
    return (struct weir_gpu_record){.kind = WEIR_GPU_RECORD_KERNEL,
                                    .name = "kernel",
                                    .start_ns = ns,
                                    .end_ns = ns + length_ns,
                                    .correlation = correlation,
                                    .context = 1,
                                    .stream = 7,
                                    .grid = {264, 1, 1},
                                    .block = {256, 1, 1},
                                    .registers = 40,
                                    .static_shared_bytes = 1024,
                                    .dynamic_shared_bytes = 3072,
                                    .occupancy = 4};
}

static void add(struct weir_gpu_record record)
{
    fake->add(&record);
}

/* Launches a kernel of 3 us now, and returns after it would have ended. */
static void launch(uint32_t correlation)
{
    uint64_t now_ns = weir_gpu_now_ns();
    add(call_at(now_ns, "cudaLaunchKernel", correlation));
    add(kernel_at(now_ns + 2000, 3000, correlation));
    wait_until(now_ns + 6000);
}

/* ---- links from kernels to operators ---- */

static void *launch_there(void *user)
{
    (void)user;
    pthread_setname_np(pthread_self(), "elsewhere");
    launch(FIRST + 4);
    return NULL;
}

static void launch_from_everywhere(void)
{
    {
        WEIR_OPERATOR("outer operator");
        launch(FIRST);
        {
            WEIR_OPERATOR("inner operator");
            WEIR_RANGE("part of it");
            launch(FIRST + 1);
        }
    }
    {
        WEIR_RANGE("annotation alone");
        launch(FIRST + 2);
    }
    launch(FIRST + 3);
    pthread_t thread;
    pthread_create(&thread, NULL, launch_there, NULL);
    pthread_join(thread, NULL);
}

static void check_launch(const struct weir_trace *trace, uint32_t correlation, uint64_t external)
{
    const struct weir_event *call = find(trace, WEIR_CAT_CUDA_RUNTIME, "cudaLaunchKernel", correlation);
    const struct weir_event *kernel = find(trace, WEIR_CAT_KERNEL, "Kernel", correlation);
    cr_assert_eq(call->external_id, external, "call %u: %lu", correlation, call->external_id);
    cr_assert_eq(kernel->external_id, external, "kernel %u: %lu", correlation, kernel->external_id);
    cr_assert_eq(kernel->start_ns - call->start_ns, 2000);
    cr_assert_eq(kernel->duration_ns, 3000);
    cr_assert_eq(row_of(trace, kernel), 7);
    cr_assert(trace->tracks[kernel->track].device);
    cr_assert_not(trace->tracks[call->track].device);
    cr_assert(has_arg(trace, call, "\"cbid\": 211"));
}

static void look_at_owners(const struct weir_profiler_window *window)
{
    const struct weir_trace *trace = window->trace;
    const struct weir_event *annotation = find(trace, WEIR_CAT_USER_ANNOTATION, "annotation alone", 0);
    check_launch(trace, FIRST, find(trace, WEIR_CAT_CPU_OP, "outer operator", 0)->external_id);
    check_launch(trace, FIRST + 1, find(trace, WEIR_CAT_CPU_OP, "inner operator", 0)->external_id);
    check_launch(trace, FIRST + 2, annotation->external_id);
    check_launch(trace, FIRST + 3, 0);
    check_launch(trace, FIRST + 4, 0);
    cr_assert_gt(annotation->external_id, FIRST + 4, "an External id equals a correlation");
    const struct weir_event *there = find(trace, WEIR_CAT_CUDA_RUNTIME, "cudaLaunchKernel", FIRST + 4);
    cr_assert_neq(row_of(trace, there), getpid());
    /* The stream shows annotations, each as long as its kernels, but no steps. */
    cr_assert_eq(count(trace, WEIR_CAT_GPU_USER_ANNOTATION), 2);
    const struct weir_event *shadow = find(trace, WEIR_CAT_GPU_USER_ANNOTATION, "annotation alone", 0);
    const struct weir_event *kernel = find(trace, WEIR_CAT_KERNEL, "Kernel", FIRST + 2);
    cr_assert_eq(shadow->start_ns, kernel->start_ns - 1);
    cr_assert_eq(shadow->duration_ns, kernel->duration_ns + 2);
    cr_assert_eq(shadow->external_id, annotation->external_id);
    cr_assert_eq(shadow->track, kernel->track);
    find(trace, WEIR_CAT_GPU_USER_ANNOTATION, "part of it", 0);
}

Test(gpu_trace, calls_and_kernels_belong_to_the_innermost_operator_of_their_thread)
{
    record(launch_from_everywhere, look_at_owners);
}

static void launch_in_a_stage(void)
{
    struct weir_recorder *recorder;
    cr_assert_eq(weir_recorder_open(&recorder), 0);
    weir_thread_attach(recorder, "feeder", WEIR_ROLE_OTHER);
    {
        WEIR_ZONE(WEIR_STAGE_H2D_COPY);
        launch(FIRST);
        launch(FIRST + 1);
    }
    {
        WEIR_ZONE(WEIR_STAGE_CACHE_COPY); /* a worker's stage */
        launch(FIRST + 2);
    }
    {
        WEIR_ZONE(WEIR_STAGE_WAIT_DATA);
        launch(FIRST + 3);
    }
    {
        WEIR_ZONE(WEIR_STAGE_BACKWARD);
    }
    weir_thread_detach();
    weir_recorder_close(&recorder);
}

/* The stage's range on the stream must match torch's for user_annotations: it covers all its kernels. */
static void check_span(const struct weir_trace *trace, const char *stage, enum weir_cat cat, uint32_t first,
                       uint32_t last)
{
    const struct weir_event *span = find(trace, WEIR_CAT_GPU_USER_ANNOTATION, stage, 0);
    const struct weir_event *from = find(trace, WEIR_CAT_KERNEL, "Kernel", first);
    const struct weir_event *to = find(trace, WEIR_CAT_KERNEL, "Kernel", last);
    cr_assert_eq(span->start_ns, from->start_ns - 1);
    cr_assert_eq(span->start_ns + span->duration_ns, to->start_ns + to->duration_ns + 1);
    cr_assert_eq(span->external_id, find(trace, cat, stage, 0)->external_id);
    cr_assert_eq(span->track, from->track);
}

static void look_at_stages(const struct weir_profiler_window *window)
{
    check_span(window->trace, "07_h2d_copy", WEIR_CAT_CPU_OP, FIRST, FIRST + 1);
    check_span(window->trace, "03e_cache_copy", WEIR_CAT_LOADER_STAGE, FIRST + 2, FIRST + 2);
    cr_assert_eq(count(window->trace, WEIR_CAT_GPU_USER_ANNOTATION), 2, "only stages with GPU work are drawn");
}

Test(gpu_trace, stages_are_drawn_on_the_stream_they_launched_something_on)
{
    record(launch_in_a_stage, look_at_stages);
}

static const struct weir_averages_row *row_named(const struct weir_averages *averages, const char *name, bool device)
{
    for (size_t i = 0; i < averages->n_rows; i++)
        if (strcmp(weir_trace_text(averages->trace, averages->rows[i].name), name) == 0 &&
            averages->rows[i].device == device)
            return &averages->rows[i];
    cr_assert_fail("no row %s", name);
    return NULL;
}

static void look_at_averages(const struct weir_profiler_window *window)
{
    struct weir_averages *averages;
    const struct weir_averages_config config = {0};
    cr_assert_eq(weir_averages_open(&averages, window->trace, &config), 0);
    cr_assert(averages->has_device_time);
    cr_assert_eq(averages->self_device_ns, 4 * 3000, "ranges drawn for stages do not count");
    cr_assert_eq(row_named(averages, "07_h2d_copy", false)->self_device_ns, 2 * 3000);
    cr_assert_eq(row_named(averages, "03e_cache_copy", false)->self_device_ns, 3000);
    cr_assert(row_named(averages, "03e_cache_copy", true)->annotation);
    cr_assert_eq(row_named(averages, "Kernel", true)->device_ns, 4 * 3000);
    cr_assert_eq(row_named(averages, "cudaLaunchKernel", false)->cpu_ns, 4 * 1000);
    weir_averages_close(&averages);
}

Test(gpu_trace, a_stage_has_the_device_time_of_what_it_launched)
{
    record(launch_in_a_stage, look_at_averages);
}

/* Adds a call from another thread, such as a library's, during the main thread's operators. */
static void call_from_a_thread_without_operators(void)
{
    enum { OTHER_TID = 1 };
    uint64_t now_ns = weir_gpu_now_ns();
    struct weir_gpu_record call = call_at(now_ns + 10000, "cudaEventSynchronize", FIRST);
    call.end_ns = now_ns + 30000;
    call.tid = OTHER_TID;
    add(call);
    {
        WEIR_OPERATOR("first");
        wait_until(now_ns + 20000);
    }
    WEIR_OPERATOR("second");
    wait_until(now_ns + 60000);
}

static void look_at_own_times(const struct weir_profiler_window *window)
{
    struct weir_averages *averages;
    const struct weir_averages_config config = {0};
    cr_assert_eq(weir_averages_open(&averages, window->trace, &config), 0);
    row_named(averages, "cudaEventSynchronize", false);
    for (size_t i = 0; i < averages->n_rows; i++)
        cr_assert_geq(averages->rows[i].self_cpu_ns, 0, "%s", weir_trace_text(averages->trace, averages->rows[i].name));
    weir_averages_close(&averages);
}

Test(gpu_trace, no_time_is_taken_twice)
{
    record(call_from_a_thread_without_operators, look_at_own_times);
}

/* ---- attributes of kernels and copies ---- */

static void every_kind_of_work(void)
{
    uint64_t now_ns = weir_gpu_now_ns();
    launch(FIRST);
    struct weir_gpu_record copy = kernel_at(now_ns + 7000, 1000, FIRST + 1);
    copy.kind = WEIR_GPU_RECORD_COPY;
    copy.copy_kind = "HtoD";
    copy.from_kind = "Pinned";
    copy.to_kind = "Device";
    copy.from_device = copy.to_device = -1;
    copy.bytes = 50000;
    add(copy);
    copy.kind = WEIR_GPU_RECORD_MEMSET;
    copy.correlation++;
    copy.graph = 3;
    copy.graph_node = 4;
    add(copy);
    copy.kind = WEIR_GPU_RECORD_OVERHEAD;
    copy.name = "Buffer Flush";
    add(copy);
    wait_until(now_ns + 10000);
}

static void look_at_work(const struct weir_profiler_window *window)
{
    const struct weir_trace *trace = window->trace;
    static const char *const kernel_args[] = {"\"device\": 0, \"context\": 1, \"stream\": 7",
                                              "\"registers per thread\": 40",
                                              "\"shared memory\": 4096",
                                              "\"blocks per SM\": 2,",
                                              "\"warps per SM\": 16,",
                                              "\"est. achieved occupancy %\": 25",
                                              "\"grid\": [264, 1, 1]",
                                              "\"block\": [256, 1, 1]"};
    const struct weir_event *kernel = find(trace, WEIR_CAT_KERNEL, "Kernel", FIRST);
    for (size_t i = 0; i < sizeof kernel_args / sizeof *kernel_args; i++)
        cr_assert(has_arg(trace, kernel, kernel_args[i]), "%s: %s", kernel_args[i],
                  weir_trace_text(trace, kernel->args));
    const struct weir_event *copy = find(trace, WEIR_CAT_GPU_MEMCPY, "Memcpy HtoD (Pinned -> Device)", FIRST + 1);
    cr_assert(has_arg(trace, copy, "\"bytes\": 50000, \"memory bandwidth (GB/s)\": 50"));
    cr_assert_not(has_arg(trace, copy, "graph"));
    const struct weir_event *memset = find(trace, WEIR_CAT_GPU_MEMSET, "Memset (Device)", FIRST + 2);
    cr_assert(has_arg(trace, memset, "\"graph id\": 3, \"graph node id\": 4"));
    const struct weir_event *overhead = find(trace, WEIR_CAT_OVERHEAD, "Buffer Flush", 0);
    cr_assert_eq(trace->tracks[overhead->track].pid, -1);
    cr_assert_eq(trace->n_devices, 1);
    cr_assert_str_eq(weir_trace_text(trace, trace->devices[0].name), "stand-in");
    cr_assert(strstr(weir_trace_text(trace, trace->devices[0].properties), "\"numSms\": 132"));
    cr_assert(strstr(weir_trace_text(trace, trace->metadata), "\"cupti_version\": 130001"));
    cr_assert(strstr(weir_trace_text(trace, trace->metadata), "\"weir_clamped_gpu_events\": 0"));
}

Test(gpu_trace, work_is_described_as_torch_describes_it)
{
    record(every_kind_of_work, look_at_work);
}

/* ---- recorded calls ---- */

static void calls_of_all_sorts(void)
{
    uint64_t now_ns = weir_gpu_now_ns();
    struct weir_gpu_record driver = call_at(now_ns, "cuLaunchKernel", FIRST);
    driver.kind = WEIR_GPU_RECORD_DRIVER;
    add(driver); /* driver call made by the runtime's call below */
    add(call_at(now_ns, "cudaLaunchKernel", FIRST));
    add(call_at(now_ns, "cudaGetLastError", FIRST + 1)); /* a call that traces omit */
    driver = call_at(now_ns + 2000, "cuLaunchKernelEx", FIRST + 2);
    driver.kind = WEIR_GPU_RECORD_DRIVER;
    add(driver); /* launched through the driver API directly */
    driver.name = "cuMemGetInfo";
    driver.correlation++;
    add(driver);
    wait_until(now_ns + 5000);
}

static void look_at_calls(const struct weir_profiler_window *window)
{
    cr_assert_eq(count(window->trace, WEIR_CAT_CUDA_RUNTIME), 2);
    cr_assert_eq(count(window->trace, WEIR_CAT_CUDA_DRIVER), 0);
    find(window->trace, WEIR_CAT_CUDA_RUNTIME, "cudaLaunchKernel", FIRST);
    find(window->trace, WEIR_CAT_CUDA_RUNTIME, "cuLaunchKernelEx", FIRST + 2);
}

Test(gpu_trace, each_launch_is_one_call)
{
    record(calls_of_all_sorts, look_at_calls);
}

/* ---- times ---- */

static void odd_times(void)
{
    uint64_t now_ns = weir_gpu_now_ns(), hour_ns = UINT64_C(3600000000000);
    /* The next two kernels seem to start before their launches; the second even ends before its launch. */
    add(call_at(now_ns + 1000, "cudaLaunchKernel", FIRST));
    add(kernel_at(now_ns, 5000, FIRST));
    add(call_at(now_ns + 9000, "cudaLaunchKernel", FIRST + 1));
    add(kernel_at(now_ns + 6000, 1000, FIRST + 1));
    struct weir_gpu_record late = call_at(now_ns + 10000, "cudaLaunchKernel", FIRST + 2); /* ends after the window */
    late.end_ns = now_ns + hour_ns;
    add(late);
    add(kernel_at(now_ns + hour_ns, 5000, FIRST + 2));
    add(kernel_at(now_ns + hour_ns, 5000, FIRST + 3)); /* outside the window, later and earlier */
    add(kernel_at(now_ns - hour_ns, 5000, FIRST + 4));
    add(call_at(now_ns - hour_ns, "cudaLaunchKernel", FIRST + 4));
    add(kernel_at(now_ns + 2000, 10, FIRST + 5)); /* launched before the window, but runs in it */
    wait_until(now_ns + 12000);
}

static void look_at_times(const struct weir_profiler_window *window)
{
    const struct weir_trace *trace = window->trace;
    cr_assert_eq(count(trace, WEIR_CAT_KERNEL), 4);
    cr_assert_eq(count(trace, WEIR_CAT_CUDA_RUNTIME), 3);
    const struct weir_event *call = find(trace, WEIR_CAT_CUDA_RUNTIME, "cudaLaunchKernel", FIRST);
    const struct weir_event *kernel = find(trace, WEIR_CAT_KERNEL, "Kernel", FIRST);
    cr_assert_eq(kernel->start_ns, call->start_ns);
    cr_assert_eq(kernel->duration_ns, 4000);
    call = find(trace, WEIR_CAT_CUDA_RUNTIME, "cudaLaunchKernel", FIRST + 1);
    kernel = find(trace, WEIR_CAT_KERNEL, "Kernel", FIRST + 1);
    cr_assert_eq(kernel->start_ns, call->start_ns);
    cr_assert_eq(kernel->duration_ns, 0);
    kernel = find(trace, WEIR_CAT_KERNEL, "Kernel", FIRST + 2);
    cr_assert_eq(kernel->start_ns + kernel->duration_ns, trace->end_ns);
    call = find(trace, WEIR_CAT_CUDA_RUNTIME, "cudaLaunchKernel", FIRST + 2); /* truncated like an unfinished range */
    cr_assert(call->duration_ns > 0 && call->start_ns + call->duration_ns < kernel->start_ns);
    find(trace, WEIR_CAT_KERNEL, "Kernel", FIRST + 5);
    cr_assert(strstr(weir_trace_text(trace, trace->metadata), "\"weir_clamped_gpu_events\": 2"));
}

Test(gpu_trace, what_was_launched_in_the_window_is_in_it_and_nothing_begins_before_its_launch)
{
    record(odd_times, look_at_times);
}

/* ---- waits ---- */

static void add_wait(enum weir_gpu_sync sync, uint64_t ns, uint64_t length_ns, int64_t recorded_by, uint32_t stream)
{
    static uint32_t correlation = FIRST + 50;
    struct weir_gpu_record record = call_at(ns, "cudaEventSynchronize", ++correlation);
    add(record);
    record.kind = WEIR_GPU_RECORD_SYNC;
    record.end_ns = ns + length_ns;
    record.sync = (uint8_t)sync;
    record.stream = stream;
    record.event = 9;
    record.recorded_by = recorded_by;
    record.recorded_on = 7;
    record.context = 1;
    add(record);
}

static void waits(void)
{
    uint64_t now_ns = weir_gpu_now_ns();
    add(call_at(now_ns, "cudaEventRecord", FIRST));
    add_wait(WEIR_GPU_SYNC_EVENT, now_ns + 2000, 2000, FIRST, UINT32_MAX);
    /* This wait overlaps with the one above, as if made by another thread. */
    add_wait(WEIR_GPU_SYNC_EVENT, now_ns + 3000, 2000, FIRST, UINT32_MAX);
    add_wait(WEIR_GPU_SYNC_EVENT, now_ns + 6000, 500, FIRST, UINT32_MAX);
    add_wait(WEIR_GPU_SYNC_STREAM_WAIT, now_ns + 7000, 10, FIRST, 8);
    add_wait(WEIR_GPU_SYNC_STREAM_WAIT, now_ns + 7000, 10, FIRST + 1, 8); /* its event was recorded before the window */
    add_wait(WEIR_GPU_SYNC_EVENT, now_ns + 7000, 10, -1, UINT32_MAX);     /* unknown event record */
    add_wait(WEIR_GPU_SYNC_STREAM, now_ns + 8000, 500, -1, 7);
    add_wait(WEIR_GPU_SYNC_CONTEXT, now_ns + 9000, 500, -1, UINT32_MAX);
    add_wait(WEIR_GPU_SYNC_UNKNOWN, now_ns + 9000, 500, -1, 7);
    wait_until(now_ns + 11000);
}

static void look_at_waits(const struct weir_profiler_window *window)
{
    const struct weir_trace *trace = window->trace;
    int events = 0, rows[2] = {0, 0};
    cr_assert_eq(count(trace, WEIR_CAT_CUDA_SYNC), 6);
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        if (event->cat != WEIR_CAT_CUDA_SYNC || strcmp(name_of(trace, event), "Event Sync") != 0)
            continue;
        events++;
        cr_assert(has_arg(trace, event, "\"wait_on_stream\": 7, \"wait_on_cuda_event_record_corr_id\": 100"));
        cr_assert(has_arg(trace, event, "\"stream\": -1"));
        rows[0] += row_of(trace, event) == 1000007;
        rows[1] += row_of(trace, event) == 2000007;
    }
    cr_assert_eq(events, 3);
    cr_assert(rows[0] == 2 && rows[1] == 1, "overlapping waits are on separate rows");
    const struct weir_event *wait = find(trace, WEIR_CAT_CUDA_SYNC, "Stream Wait Event", 0);
    cr_assert(has_arg(trace, wait, "\"stream\": 8"));
    cr_assert_eq(row_of(trace, wait), 1000008);
    cr_assert_eq(row_of(trace, find(trace, WEIR_CAT_CUDA_SYNC, "Stream Sync", 0)), 1000007);
    find(trace, WEIR_CAT_CUDA_SYNC, "Context Sync", 0);
}

Test(gpu_trace, waits_are_shown_when_what_they_wait_for_is)
{
    record(waits, look_at_waits);
}

/* ---- memory ---- */

static void memory(void)
{
    uint64_t now_ns = weir_gpu_now_ns();
    static const int64_t bytes[] = {-300, 1000, 500, -1000};
    for (unsigned i = 0; i < 4; i++) {
        struct weir_gpu_record record = call_at(now_ns + 1000 * i, "", 0);
        record.kind = WEIR_GPU_RECORD_MEMORY;
        record.memory_bytes = bytes[i];
        record.address = 4096 + i;
        add(record);
    }
    wait_until(now_ns + 5000);
}

static void look_at_memory(const struct weir_profiler_window *window)
{
    static const int64_t totals[] = {0, 1000, 1500, 500};
    int n = 0;
    for (size_t i = 0; i < window->trace->n_events; i++) {
        const struct weir_event *event = &window->trace->events[i];
        if (event->kind != WEIR_EVENT_MEMORY)
            continue;
        cr_assert_eq(event->memory.device, 0);
        cr_assert_eq(event->memory.address, 4096 + (uint64_t)n);
        cr_assert_eq(event->memory.allocated, totals[n], "%d: %ld", n, event->memory.allocated);
        n++;
    }
    cr_assert_eq(n, 4);
}

Test(gpu_trace, memory_has_running_totals_that_are_never_negative)
{
    record(memory, look_at_memory);
}

static void own_memory(void)
{
    weir_memory_reserved(1 << 20, 0);
    memory();
    weir_memory_allocated(&fake, 4096, 0);
}

static void look_at_own_memory(const struct weir_profiler_window *window)
{
    int n = 0;
    for (size_t i = 0; i < window->trace->n_events; i++)
        n += window->trace->events[i].kind == WEIR_EVENT_MEMORY;
    cr_assert_eq(n, 1, "only the program's own memory events remain: %d", n);
}

Test(gpu_trace, a_program_that_keeps_account_of_the_gpus_memory_is_believed)
{
    record(own_memory, look_at_own_memory);
}

/* ---- windows ---- */

static int kernels;

static void count_kernels(const struct weir_profiler_window *window)
{
    kernels += count(window->trace, WEIR_CAT_KERNEL);
}

Test(gpu_trace, several_windows_each_with_its_own)
{
    struct seen seen = {.look = count_kernels};
    kernels = 0;
    struct weir_profiler *profiler = open_profiler(&seen, "wait=1,warmup=1,active=1,repeat=2");
    cr_assert_eq(fake->starts(), 0, "recording starts before the first warmup");
    for (uint32_t step = 0; step < 6; step++) {
        bool recording = step % 3 != 0;
        cr_assert_eq(fake->starts() - fake->stops(), recording, "step %u", step);
        if (recording)
            launch(FIRST + step);
        weir_profiler_step(profiler);
        weir_profiler_flush(profiler);
    }
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 2);
    cr_assert_eq(seen.messages, 0, "%s", seen.message);
    cr_assert_eq(kernels, 2, "kernels of warmups are not included");
    cr_assert_eq(fake->starts(), 2);
    cr_assert_eq(fake->kept(), 0);
}

Test(gpu_trace, windows_without_a_gap)
{
    struct seen seen = {.look = count_kernels};
    kernels = 0;
    struct weir_profiler *profiler = open_profiler(&seen, "active=1,repeat=3");
    for (uint32_t step = 0; step < 3; step++) {
        launch(FIRST + step);
        weir_profiler_step(profiler);
    }
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 3);
    cr_assert_eq(kernels, 3);
    cr_assert_eq(fake->kept(), 0);
}

Test(gpu_trace, a_window_that_nobody_gets_is_freed)
{
    struct seen seen = {0};
    struct weir_profiler *profiler = open_profiler(&seen, "warmup=3,active=2");
    launch(FIRST);
    weir_profiler_step(profiler);
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 0);
    cr_assert_eq(fake->stops(), 1);
    cr_assert_eq(fake->kept(), 0);
}

/* ---- failures ---- */

static void look_for_operator(const struct weir_profiler_window *window)
{
    find(window->trace, WEIR_CAT_CPU_OP, "work", 0);
    cr_assert_eq(count(window->trace, WEIR_CAT_KERNEL), 0);
    cr_assert_eq(window->trace->n_devices, 0);
}

Test(gpu_trace, without_a_recorder_the_cpu_is_recorded_and_one_line_says_why)
{
    struct seen seen = {.look = look_for_operator};
    fake->fail_start("another tool has CUPTI");
    struct weir_profiler *profiler = open_profiler(&seen, "active=1,repeat=3");
    for (int step = 0; step < 3; step++) {
        {
            WEIR_OPERATOR("work");
        }
        weir_profiler_step(profiler);
    }
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 3);
    cr_assert_eq(seen.messages, 1);
    cr_assert_str_eq(seen.message, "GPU work is not recorded: another tool has CUPTI");
    cr_assert_eq(fake->starts(), 1, "recording is tried only once");
}

static void one_launch(void)
{
    launch(FIRST);
}

Test(gpu_trace, a_failing_end_is_told_and_keeps_what_there_is)
{
    kernels = 0;
    fake->fail_stop("CUPTI could not be torn down");
    struct seen seen = record(one_launch, count_kernels);
    cr_assert_eq(kernels, 1);
    cr_assert_eq(seen.messages, 1);
    cr_assert_str_eq(seen.message, "GPU recording: CUPTI could not be torn down");
}

Test(gpu_trace, lost_records_are_counted)
{
    fake->set_dropped(5);
    struct seen seen = record(one_launch, NULL);
    cr_assert_eq(seen.dropped, 5);
}

/* ---- the fake GPU's own streams, and the trace file ---- */

static void use_the_gpu(void)
{
    const struct weir_gpu_ops *ops = module->gpu;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_gpu *gpu;
    void *stream, *there;
    char here[4096] = "";
    cr_assert_eq(ops->open(&gpu, 0, &err), 0, "%s", err.text);
    cr_assert_eq(ops->stream_new(gpu, false, &stream, &err), 0);
    cr_assert_eq(ops->alloc(gpu, sizeof here, &there, &err), 0);
    {
        WEIR_OPERATOR("train");
        cr_assert_eq(ops->copy_in(gpu, there, here, sizeof here, stream, &err), 0);
        cr_assert_eq(ops->busy(gpu, 1000000, stream, &err), 0);
    }
    ops->free(gpu, there); /* waits for the stream */
    ops->stream_free(gpu, stream);
    ops->close(&gpu);
}

static int occurrences(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)) != NULL; text++)
        n++;
    return n;
}

static void look_at_file(const struct weir_profiler_window *window)
{
    struct weir_err err = WEIR_ERR_NONE;
    char path[] = "/tmp/weir-gpu-XXXXXX", text[1 << 16];
    close(mkstemp(path));
    cr_assert_eq(weir_trace_write(window->trace, path, &err), 0, "%s", err.text);
    FILE *file = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    cr_assert_eq(occurrences(text, "\"ph\":\"s\""), 2);
    cr_assert_eq(occurrences(text, "\"ph\":\"f\""), 2);
    cr_assert(strstr(text, "\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD (Pinned -> Device)\""));
    cr_assert(strstr(text, "\"cat\":\"kernel\",\"name\":\"busy\""));
    cr_assert(strstr(text, "\"labels\":\"GPU 0\""));
    uint64_t train = find(window->trace, WEIR_CAT_CPU_OP, "train", 0)->external_id;
    cr_assert_eq(find(window->trace, WEIR_CAT_KERNEL, "busy", 0)->external_id, train);
}

Test(gpu_trace, what_a_gpu_did_is_written_with_arrows)
{
    record(use_the_gpu, look_at_file);
}
