#include "tests/trace_fixture.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM = 7, COPY_STREAM = 20, GPU_OVERHEAD_US = 20, LAUNCH_US = 30, KERNEL_US = 1500 };

weir_text_id fixture_text(struct weir_trace *trace, const char *text)
{
    return weir_trace_intern(trace, text, strlen(text));
}

uint32_t fixture_thread(struct weir_trace *trace, int64_t tid, const char *name)
{
    int64_t track = weir_trace_track(trace, FIXTURE_PID, tid, false, 0);
    assert(track >= 0);
    trace->tracks[track].name = fixture_text(trace, name);
    return (uint32_t)track;
}

static struct weir_event *append(struct weir_trace *trace, struct weir_event event)
{
    int rc = weir_trace_add(trace, &event);
    assert(rc == 0);
    (void)rc;
    return &trace->events[trace->n_events - 1];
}

struct weir_event *fixture_range(struct weir_trace *trace, uint32_t track, enum weir_cat cat, const char *name,
                                 int64_t start_us, int64_t us)
{
    return append(trace, (struct weir_event){
                             .kind = WEIR_EVENT_RANGE,
                             .cat = (uint8_t)cat,
                             .track = track,
                             .name = fixture_text(trace, name),
                             .start_ns = start_us * 1000,
                             .duration_ns = us * 1000,
                         });
}

static struct weir_trace *new_trace(void)
{
    struct weir_trace *trace;
    int rc = weir_trace_new(&trace);
    assert(rc == 0);
    (void)rc;
    trace->base_unix_ns = INT64_C(1766000000000000000);
    trace->main_pid = FIXTURE_PID;
    trace->process_name = fixture_text(trace, "weir");
    trace->metadata = fixture_text(trace, "\"host_name\": \"node7\", \"weir_version\": \"0.1.0\"");
    return trace;
}

/* ---- the CPU's side ---- */

static void worker_frame(struct weir_trace *trace, uint32_t track, int64_t at, uint64_t item)
{
    struct weir_event *event = fixture_range(trace, track, WEIR_CAT_LOADER_STAGE, "decode", at, 1900);
    event->item = item;
    fixture_range(trace, track, WEIR_CAT_LOADER_STAGE, "read", at, 250)->item = item;
    fixture_range(trace, track, WEIR_CAT_LOADER_STAGE, "convert", at + 1500, 300)->item = item;
    append(trace, (struct weir_event){
                      .kind = WEIR_EVENT_ASYNC,
                      .cat = WEIR_CAT_LOADER_ITEM,
                      .track = track,
                      .item = item,
                      .name = fixture_text(trace, "frame"),
                      .start_ns = (at - 100) * 1000,
                      .duration_ns = INT64_C(4000000),
                  });
}

static void workers(struct weir_trace *trace, int64_t begin, int step)
{
    for (int i = 0; i < FIXTURE_WORKERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "weir-worker-%d", i);
        uint32_t track = fixture_thread(trace, FIXTURE_PID + 1 + i, name);
        for (int k = 0; k < 4; k++)
            worker_frame(trace, track, begin + 200 + 2300 * k + 10 * i, (uint64_t)(1 + step * 100 + i * 10 + k));
    }
}

static void memory(struct weir_trace *trace, uint32_t track, int64_t at, int64_t bytes, int64_t total, int device)
{
    append(trace, (struct weir_event){
                      .kind = WEIR_EVENT_MEMORY,
                      .cat = WEIR_CAT_CPU_INSTANT_EVENT,
                      .track = track,
                      .start_ns = at * 1000,
                      .memory = {.address = 0x7f0000001000u,
                                 .bytes = bytes,
                                 .allocated = total,
                                 .reserved = 1 << 24,
                                 .device = device},
                  });
}

static void queue_depth(struct weir_trace *trace, uint32_t track, int64_t at, double value)
{
    append(trace, (struct weir_event){.kind = WEIR_EVENT_COUNTER,
                                      .cat_text = fixture_text(trace, "loader_queue"),
                                      .track = track,
                                      .name = fixture_text(trace, "ready batches"),
                                      .start_ns = at * 1000,
                                      .value = value});
}

static void operator_range(struct weir_trace *trace, uint32_t track, const char *name, int64_t at, int64_t us)
{
    struct weir_event *event = fixture_range(trace, track, WEIR_CAT_CPU_OP, name, at, us);
    event->external_id = (uint64_t)trace->n_events;
    event->shapes = fixture_text(trace, "[[8, 3, 480, 640], []]");
    event->types = fixture_text(trace, "[\"float\", \"\"]");
    event->stack = fixture_text(trace, "train.c(40): forward;train.c(90): main");
}

/* One step: waits for 3 ms, then forward (with a part inside), backward and optimizer. */
static void cpu_step(struct weir_trace *trace, uint32_t track, int step)
{
    char name[32];
    int64_t begin = (int64_t)step * FIXTURE_STEP_US + 1000;
    snprintf(name, sizeof name, "ProfilerStep#%d", FIXTURE_FIRST_STEP + step);
    fixture_range(trace, track, WEIR_CAT_USER_ANNOTATION, name, begin, FIXTURE_STEP_US);
    /* An operator: the plugin as it was released, 0.4.3, has no annotations in its overview. */
    fixture_range(trace, track, WEIR_CAT_CPU_OP, "enumerate(DataLoader)#WeirLoader.__next__", begin, FIXTURE_WAIT_US);
    queue_depth(trace, track, begin, step % 4);
    operator_range(trace, track, "train_forward", begin + 3100, 2900);
    memory(trace, track, begin + 3200, 1 << 20, 2 << 20, -1);
    operator_range(trace, track, "conv2d", begin + 3200, 1000);
    memory(trace, track, begin + 5900, -(1 << 20), 1 << 20, -1);
    operator_range(trace, track, "train_backward", begin + 6100, 2400);
    operator_range(trace, track, "train_optimizer", begin + 8600, 1000);
    workers(trace, begin, step);
}

struct weir_trace *fixture_cpu_trace(void)
{
    struct weir_trace *trace = new_trace();
    uint32_t track = fixture_thread(trace, FIXTURE_PID, "weir");
    trace->shapes = trace->memory = trace->stacks = true;
    for (int step = 0; step < FIXTURE_STEPS; step++)
        cpu_step(trace, track, step);
    trace->begin_ns = 500 * 1000;
    trace->end_ns = (FIXTURE_STEPS * FIXTURE_STEP_US + 1500) * INT64_C(1000);
    return trace;
}

/* ---- the GPU's side ---- */

struct launch {
    enum weir_cat cat;
    const char *call, *name, *args;
    int64_t call_us, start_us, us;
    int stream;
    uint32_t correlation;
    uint64_t external_id;
};

static void launch(struct weir_trace *trace, uint32_t thread, const struct launch *l)
{
    struct weir_event *call = fixture_range(trace, thread, WEIR_CAT_CUDA_RUNTIME, l->call, l->call_us, GPU_OVERHEAD_US);
    call->correlation = l->correlation;
    call->external_id = l->external_id;
    call->args = fixture_text(trace, "\"cbid\": 211");
    uint32_t track = (uint32_t)weir_trace_track(trace, 0, l->stream, true, 0);
    struct weir_event *event = fixture_range(trace, track, l->cat, l->name, l->start_us, l->us);
    event->correlation = l->correlation;
    event->external_id = l->external_id;
    event->args = fixture_text(trace, l->args);
}

static void copy_to_gpu(struct weir_trace *trace, uint32_t thread, int64_t begin, uint32_t correlation)
{
    launch(trace, thread,
           &(struct launch){.cat = WEIR_CAT_GPU_MEMCPY,
                            .call = "cudaMemcpyAsync",
                            .name = "Memcpy HtoD (Pinned -> Device)",
                            .args = "\"device\": 0, \"context\": 1, \"stream\": 20, \"bytes\": 7372800, "
                                    "\"memory bandwidth (GB/s)\": 24.576",
                            .call_us = begin + 3020,
                            .start_us = begin + 3045,
                            .us = 300,
                            .stream = COPY_STREAM,
                            .correlation = correlation});
}

static void run_kernel(struct weir_trace *trace, uint32_t thread, int64_t at, uint32_t correlation, uint64_t external)
{
    launch(trace, thread,
           &(struct launch){.cat = WEIR_CAT_KERNEL,
                            .call = "cudaLaunchKernel",
                            .name = "void conv<float, 3>(float const*, float*, int)",
                            .args = "\"queued\": 0, \"device\": 0, \"context\": 1, \"stream\": 7, "
                                    "\"registers per thread\": 40, \"shared memory\": 4096, \"blocks per SM\": 2.0, "
                                    "\"warps per SM\": 16.0, \"grid\": [264, 1, 1], \"block\": [256, 1, 1], "
                                    "\"est. achieved occupancy %\": 25",
                            .call_us = at,
                            .start_us = at + LAUNCH_US,
                            .us = KERNEL_US,
                            .stream = STREAM,
                            .correlation = correlation,
                            .external_id = external});
}

/* As a stage is drawn where its kernel ran. */
static void run_stage(struct weir_trace *trace, const char *name, int64_t kernel_us, uint64_t external)
{
    uint32_t track = (uint32_t)weir_trace_track(trace, 0, STREAM, true, 0);
    struct weir_event *event = fixture_range(trace, track, WEIR_CAT_GPU_USER_ANNOTATION, name, kernel_us, KERNEL_US);
    event->start_ns -= 1;
    event->duration_ns += 2;
    event->external_id = external;
}

static void synchronize(struct weir_trace *trace, uint32_t thread, int64_t at, uint32_t correlation)
{
    fixture_range(trace, thread, WEIR_CAT_CUDA_RUNTIME, "cudaDeviceSynchronize", at, 100)->correlation = correlation;
    uint32_t track = (uint32_t)weir_trace_track(trace, 0, STREAM, true, 0);
    struct weir_event *event = fixture_range(trace, track, WEIR_CAT_CUDA_SYNC, "Context Sync", at + 10, 80);
    event->correlation = correlation;
    event->args = fixture_text(trace, "\"cuda_sync_kind\": \"Context Sync\", \"stream\": 7, \"device\": 0, "
                                      "\"context\": 1");
}

/* The operator of that name which begins at that time. */
static uint64_t external_of(const struct weir_trace *trace, const char *name, int64_t at_us)
{
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        if (event->start_ns == at_us * 1000 && strcmp(weir_trace_text(trace, event->name), name) == 0)
            return event->external_id;
    }
    return 0;
}

struct weir_trace *fixture_gpu_trace(void)
{
    struct weir_trace *trace = fixture_cpu_trace();
    uint32_t thread = fixture_thread(trace, FIXTURE_PID, "weir"), correlation = 1;
    static struct weir_trace_device device;
    device.name = fixture_text(trace, "NVIDIA H200");
    device.properties = fixture_text(trace, "\"totalGlobalMem\": 150110011392, \"computeMajor\": 9, "
                                            "\"computeMinor\": 0, \"maxThreadsPerBlock\": 1024, "
                                            "\"maxThreadsPerMultiprocessor\": 2048, \"regsPerBlock\": 65536, "
                                            "\"warpSize\": 32, \"sharedMemPerBlock\": 49152, \"numSms\": 132");
    trace->devices = malloc(sizeof device);
    assert(trace->devices);
    trace->devices[0] = device;
    trace->n_devices = 1;
    for (int step = 0; step < FIXTURE_STEPS; step++) {
        int64_t begin = (int64_t)step * FIXTURE_STEP_US + 1000;
        copy_to_gpu(trace, thread, begin, correlation++);
        uint64_t forward = external_of(trace, "conv2d", begin + 3200);
        uint64_t backward = external_of(trace, "train_backward", begin + 6100);
        run_kernel(trace, thread, begin + 3300, correlation++, forward);
        run_kernel(trace, thread, begin + 6200, correlation++, backward);
        run_stage(trace, "train_backward", begin + 6200 + LAUNCH_US, backward);
        memory(trace, thread, begin + 6250, 1 << 20, (int64_t)1 << 22, 0);
        synchronize(trace, thread, begin + 9700, correlation++);
    }
    return trace;
}

struct weir_trace *fixture_long_trace(size_t n)
{
    struct weir_trace *trace = new_trace();
    uint32_t track = fixture_thread(trace, FIXTURE_PID, "weir");
    static const char *const names[] = {"read", "decode", "convert", "collate", "wait for a slot"};
    for (size_t i = 0; i < n; i++) {
        struct weir_event *event = fixture_range(trace, track, WEIR_CAT_LOADER_STAGE,
                                                 names[i % (sizeof names / sizeof *names)], (int64_t)i * 10, 0);
        event->start_ns += (int64_t)(i * 7919 % 1000);
        event->duration_ns = (int64_t)(1000 + i * 104729 % 8000);
        event->item = 1 + i / 5;
    }
    trace->end_ns = (int64_t)n * 10000;
    return trace;
}
