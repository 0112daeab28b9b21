/* GPU idle time by cause: synthetic traces of each cause, several threads and streams, and invalid traces. Times in the
 * traces are in microseconds. */
#include "analyze/gpu_idle/gpu_idle.h"
#include "prof/trace/trace_read.h"
#include "tests/fixtures/trace_fixture.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOP = 100, OTHER_THREAD = 200, STREAM = 7, COPY_STREAM = 20 };

/* The trace under test and its result. */
static struct weir_trace *trace;
static struct weir_gpu_idle idle;
static uint32_t correlation;

static void begin(void)
{
    correlation = 0;
    cr_assert_eq(weir_trace_new(&trace), 0);
}

static void end(void)
{
    weir_gpu_idle_clear(&idle);
    weir_trace_free(&trace);
}

static uint32_t thread(int64_t tid)
{
    return (uint32_t)weir_trace_track(trace, FIXTURE_PID, tid, false, 0);
}

static uint32_t stream(int64_t device, int64_t number)
{
    return (uint32_t)weir_trace_track(trace, device, number, true, 0);
}

static struct weir_event *host(int64_t tid, enum weir_cat cat, const char *name, int64_t at, int64_t us)
{
    return fixture_range(trace, thread(tid), cat, name, at, us);
}

static void step(int64_t number, int64_t at, int64_t us)
{
    char name[48];
    snprintf(name, sizeof name, "ProfilerStep#%" PRId64, number);
    host(LOOP, WEIR_CAT_USER_ANNOTATION, name, at, us);
}

/* Adds a kernel on device 0 that runs for `us` from `start`, and the 5 us call at time `at` that launches it. */
static void kernel_of(int64_t tid, int64_t at, int64_t start, int64_t us)
{
    host(tid, WEIR_CAT_CUDA_RUNTIME, "cudaLaunchKernel", at, 5)->correlation = ++correlation;
    fixture_range(trace, stream(0, STREAM), WEIR_CAT_KERNEL, "kernel", start, us)->correlation = correlation;
}

static void kernel(int64_t at, int64_t start, int64_t us)
{
    kernel_of(LOOP, at, start, us);
}

static void copy(int64_t at, int64_t start, int64_t us)
{
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaMemcpyAsync", at, 5)->correlation = ++correlation;
    fixture_range(trace, stream(0, COPY_STREAM), WEIR_CAT_GPU_MEMCPY, "Memcpy HtoD (Pageable -> Device)", start, us)
        ->correlation = correlation;
}

/* Checks invariants of every trace: the causes add up to the idle time, idle plus busy time is the total, and the loop
 * waits for a part of its time. */
static void check_sums(void)
{
    cr_assert_geq(idle.loop.wait_ns, 0);
    cr_assert(idle.loop.wait_ns == 0 || idle.loop.wait_ns <= idle.loop.ns);
    for (int i = 0; i < idle.n_devices; i++) {
        const struct weir_idle_device *d = &idle.devices[i];
        int64_t sum = 0;
        for (int cause = 0; cause < WEIR_IDLE_CAUSES; cause++) {
            cr_assert_geq(d->cause_ns[cause], 0);
            sum += d->cause_ns[cause];
        }
        cr_assert_eq(sum, d->idle_ns);
        cr_assert_eq(d->idle_ns + d->busy_ns, d->end_ns - d->begin_ns);
        cr_assert_geq(d->copies_alone_ns, 0);
        cr_assert_leq(d->copies_alone_ns, d->busy_ns);
        cr_assert_geq(d->delay_p50_ns, 0);
        cr_assert_leq(d->delay_p50_ns, d->delay_p99_ns);
    }
}

static const struct weir_idle_device *make(void)
{
    struct weir_step *steps;
    int64_t n = weir_steps_split(trace, &steps);
    cr_assert_geq(n, 0);
    cr_assert_eq(weir_gpu_idle_make(&idle, trace, steps, n), 0);
    free(steps);
    check_sums();
    return idle.n_devices ? &idle.devices[0] : NULL;
}

static void assert_us(const struct weir_idle_device *d, enum weir_idle_cause cause, int64_t us)
{
    cr_assert_eq(d->cause_ns[cause], us * 1000, "cause %d: %" PRId64 " ns, not %" PRId64 " us", (int)cause,
                 d->cause_ns[cause], us);
}

TestSuite(gpu_idle, .init = begin, .fini = end);

Test(gpu_idle, short_kernels_wait_for_their_launches)
{
    step(0, 0, 500);
    for (int i = 0; i < 10; i++)
        /* Idle for 40 of every 50 us; the launch call returns 5 us before the kernel starts. */
        kernel(50 * i + 20, 50 * i + 30, 10);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_LAUNCHING, 30 + 9 * 40);
    assert_us(d, WEIR_IDLE_OTHER, 10); /* after the last kernel, nothing else is launched */
    cr_assert_eq(d->busy_ns, 100000);
    cr_assert_eq(weir_gpu_idle_first(d), WEIR_IDLE_LAUNCHING);
    cr_assert_eq(d->launches, 10);
    cr_assert_eq(d->delay_p50_ns, 5000);
    cr_assert_eq(d->delay_p99_ns, 5000);
    cr_assert_eq(d->step_kernels, 10);
    cr_assert_eq(d->kernels, 10);
    cr_assert_eq(idle.n_steps, 1);
}

Test(gpu_idle, what_was_launched_while_the_gpu_was_busy_is_no_launch_into_an_empty_queue)
{
    kernel(0, 10, 100);
    kernel(20, 112, 100); /* starts 2 us after the first kernel ends */
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaDeviceSynchronize", 30, 200);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_QUEUED, 2);
    cr_assert_eq(d->idle_ns, 2000);
    cr_assert_eq(d->launches, 0);
}

Test(gpu_idle, a_read_back_has_what_it_exposes)
{
    kernel(0, 10, 100);
    host(LOOP, WEIR_CAT_CPU_OP, "aten::item", 20, 110);
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaStreamSynchronize", 25, 100); /* returns 15 us after the kernel's end */
    kernel(165, 175, 100);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_SYNC, 65); /* 15 us inside the call, then 50 us with an empty queue because of the call */
    assert_us(d, WEIR_IDLE_LAUNCHING, 0);
    cr_assert_eq(weir_gpu_idle_first(d), WEIR_IDLE_SYNC);
    cr_assert_eq(d->cause_gaps[WEIR_IDLE_SYNC], 1);
    cr_assert_eq(d->launches, 1);
}

Test(gpu_idle, a_synchronising_call_that_waits_for_nothing_exposes_nothing)
{
    kernel(0, 10, 100);
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaEventSynchronize", 120, 10);
    kernel(165, 175, 100);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_SYNC, 10);
    assert_us(d, WEIR_IDLE_LAUNCHING, 55);
}

Test(gpu_idle, synchronous_copies_synchronise)
{
    kernel(0, 10, 100);
    struct weir_event *call = host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaMemcpy", 110, 60);
    call->correlation = ++correlation;
    fixture_range(trace, stream(0, STREAM), WEIR_CAT_GPU_MEMCPY, "Memcpy DtoH (Device -> Pageable)", 130, 10)
        ->correlation = correlation;
    kernel(190, 200, 50);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_SYNC, 20 + 60); /* before the copy, and between its end and the kernel */
    cr_assert_eq(d->copies_alone_ns, 10000);
}

/* torch's .item(): the call that starts the copy returns only when the copy is complete. */
Test(gpu_idle, an_asynchronous_copy_from_pageable_memory_that_waits_synchronises)
{
    kernel(0, 10, 100);
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaMemcpyAsync", 20, 150)->correlation = ++correlation;
    fixture_range(trace, stream(0, STREAM), WEIR_CAT_GPU_MEMCPY, "Memcpy DtoH (Device -> Pageable)", 110, 10)
        ->correlation = correlation;
    kernel(190, 200, 50);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_SYNC, 80);
}

Test(gpu_idle, waits_for_data_by_all_their_names)
{
    static const char *const waits[] = {
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "08_wait_for_data",
        "[pl][profile][_TrainingEpochLoop].train_dataloader_next",
        "my data wait",
    };
    enum { N = sizeof waits / sizeof *waits };
    kernel(0, 10, 90);
    for (int i = 0; i < N; i++) {
        host(LOOP, WEIR_CAT_USER_ANNOTATION, waits[i], 1000 * i + 110, 800);
        /* The loader makes this call, so it counts as a wait for data. */
        host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaEventSynchronize", 1000 * i + 200, 100);
        kernel(1000 * i + 980, 1000 * i + 1000, 100);
    }
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_DATA, 800 * N);
    assert_us(d, WEIR_IDLE_LAUNCHING, 100 * N);
    assert_us(d, WEIR_IDLE_SYNC, 0);
    cr_assert_eq(weir_gpu_idle_first(d), WEIR_IDLE_DATA);
    cr_assert_eq(d->cause_gaps[WEIR_IDLE_DATA], N);
}

Test(gpu_idle, allocations_by_all_their_names)
{
    static const char *const calls[] = {"cudaMalloc",    "cudaFree",           "cudaMallocAsync",
                                        "cudaHostAlloc", "cudaFreeHost",       "cudaMallocFromPoolAsync",
                                        "cuMemMap",      "cuMemAddressReserve"};
    enum { N = sizeof calls / sizeof *calls };
    kernel(0, 10, 90);
    for (int i = 0; i < N; i++) {
        host(LOOP, i % 2 ? WEIR_CAT_CUDA_DRIVER : WEIR_CAT_CUDA_RUNTIME, calls[i], 1000 * i + 110, 800);
        kernel(1000 * i + 980, 1000 * i + 1000, 100);
    }
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_ALLOCATING, 800 * N);
    cr_assert_eq(weir_gpu_idle_first(d), WEIR_IDLE_ALLOCATING);
    cr_assert_eq(weir_gpu_idle_largest(d), WEIR_IDLE_ALLOCATING);
    cr_assert_str_eq(weir_idle_cause_name(WEIR_IDLE_ALLOCATING), "allocating");
    cr_assert_str_eq(weir_idle_cause_name(WEIR_IDLE_NONE), "none");
    cr_assert_eq(weir_gpu_idle_largest(&(struct weir_idle_device){.end_ns = 5}), WEIR_IDLE_NONE);
}

/* The range contains no operator and no CUDA call, so nothing in it can launch work. */
Test(gpu_idle, long_host_code_launches_nothing)
{
    kernel(0, 10, 90);
    host(LOOP, WEIR_CAT_USER_ANNOTATION, "save a checkpoint", 120, 5000);
    kernel(5180, 5200, 100);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_OTHER, 5080);
    assert_us(d, WEIR_IDLE_LAUNCHING, 20);
    cr_assert_eq(weir_gpu_idle_first(d), WEIR_IDLE_OTHER);
}

Test(gpu_idle, a_harness_that_measures_is_no_cause)
{
    step(0, 0, 300);
    kernel(0, 10, 90);
    host(LOOP, WEIR_CAT_USER_ANNOTATION, "measurement", 20, 180);
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaDeviceSynchronize", 21, 178);
    kernel(230, 240, 50); /* starts 40 us after the measurement, which drained the queue */
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_MEASUREMENT, 140);
    assert_us(d, WEIR_IDLE_SYNC, 0);
    assert_us(d, WEIR_IDLE_LAUNCHING, 10);
    cr_assert_eq(weir_gpu_idle_first(d), WEIR_IDLE_NONE);
    cr_assert_eq(weir_gpu_idle_largest(d), WEIR_IDLE_LAUNCHING); /* small, but the only cause besides the measurement */
}

Test(gpu_idle, a_gap_is_divided_and_its_largest_part_counted)
{
    kernel(0, 10, 90);
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaStreamSynchronize", 50, 60);                /* covers 10 us of the gap */
    host(LOOP, WEIR_CAT_CPU_OP, "enumerate(DataLoader)#WeirLoader.__next__", 110, 40); /* 40 us */
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaMalloc", 150, 20);                          /* 20 us */
    kernel(190, 200, 100); /* the remaining 30 us were exposed by the synchronising call */
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_SYNC, 40);
    assert_us(d, WEIR_IDLE_DATA, 40);
    assert_us(d, WEIR_IDLE_ALLOCATING, 20);
    cr_assert_eq(d->idle_ns, 100000);
    cr_assert_eq(d->cause_gaps[WEIR_IDLE_SYNC] + d->cause_gaps[WEIR_IDLE_DATA], 1);
}

/* torch's backward pass: autograd's thread launches the kernels, but it could start only after the loop's thread had
 * left .item(). */
Test(gpu_idle, another_thread_launches_what_the_loop_held_up)
{
    step(0, 0, 400);
    kernel(0, 10, 90);
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaStreamSynchronize", 20, 120);
    host(OTHER_THREAD, WEIR_CAT_CPU_OP, "autograd::engine::evaluate_function", 170, 30);
    kernel_of(OTHER_THREAD, 180, 190, 50);
    kernel_of(OTHER_THREAD, 260, 270, 130);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_SYNC, 90);
    assert_us(d, WEIR_IDLE_LAUNCHING, 10 + 30);
}

Test(gpu_idle, what_the_launching_thread_does_comes_before_what_the_loop_does)
{
    step(0, 0, 400);
    kernel(0, 10, 90);
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaDeviceSynchronize", 100, 300);
    host(OTHER_THREAD, WEIR_CAT_CUDA_RUNTIME, "cudaMalloc", 100, 80);
    kernel_of(OTHER_THREAD, 180, 190, 210);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_ALLOCATING, 80);
    assert_us(d, WEIR_IDLE_LAUNCHING, 20);
}

Test(gpu_idle, streams_are_merged_and_copies_alone_are_busy)
{
    copy(0, 10, 100);    /* from 10 to 110 */
    kernel(10, 60, 100); /* from 60 to 160 */
    copy(20, 120, 100);  /* from 120 to 220 */
    fixture_range(trace, stream(0, 9), WEIR_CAT_GPU_MEMSET, "Memset (Device)", 200, 10);
    const struct weir_idle_device *d = make();
    cr_assert_eq(d->idle_ns, 0);
    cr_assert_eq(d->busy_ns, 210000);
    cr_assert_eq(d->copies_alone_ns, (50 + 40 + 10) * 1000);
    cr_assert_eq(weir_gpu_idle_first(d), WEIR_IDLE_COPIES);
    cr_assert_neq(weir_gpu_idle_largest(d), WEIR_IDLE_COPIES); /* there is no idle time to attribute */
    cr_assert_eq(d->copies, 2);
}

Test(gpu_idle, devices_have_their_own_gaps)
{
    kernel(0, 10, 100);
    for (int i = 0; i < 2; i++) {
        host(OTHER_THREAD, WEIR_CAT_CUDA_RUNTIME, "cudaLaunchKernel", 40 * i, 5)->correlation = ++correlation;
        fixture_range(trace, stream(1, STREAM), WEIR_CAT_KERNEL, "kernel", 40 * i + 10, 20)->correlation = correlation;
    }
    make();
    cr_assert_eq(idle.n_devices, 2);
    cr_assert_eq(idle.devices[0].device, 0);
    cr_assert_eq(idle.devices[0].idle_ns, 0);
    cr_assert_eq(idle.devices[1].device, 1);
    assert_us(&idle.devices[1], WEIR_IDLE_LAUNCHING, 20);
}

Test(gpu_idle, of_activities_that_begin_together_the_one_launched_first_counts)
{
    kernel(0, 10, 90);
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaMalloc", 100, 60);
    kernel(170, 200, 50);
    kernel_of(OTHER_THREAD, 110, 200, 50);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_LAUNCHING, 100 - 10); /* the loop's allocation counts only until the other thread's launch */
    assert_us(d, WEIR_IDLE_ALLOCATING, 10);
    cr_assert_eq(d->delay_p50_ns, 85000);
}

Test(gpu_idle, launches_that_the_trace_lacks)
{
    step(0, 0, 4000);
    fixture_range(trace, stream(0, STREAM), WEIR_CAT_KERNEL, "kernel", 0, 100);
    fixture_range(trace, stream(0, STREAM), WEIR_CAT_KERNEL, "kernel", 3000, 1000)->correlation = 77;
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaStreamSynchronize", 50, 250);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_SYNC, 200); /* attributed from the loop's thread, since the launch is unknown */
    assert_us(d, WEIR_IDLE_OTHER, 2700);
    cr_assert_eq(d->launches, 0);
    cr_assert_eq(d->step_kernels, 2);
}

Test(gpu_idle, kernels_of_a_graph_share_a_launch)
{
    host(LOOP, WEIR_CAT_CUDA_RUNTIME, "cudaGraphLaunch", 0, 20)->correlation = 5;
    for (int i = 0; i < 10; i++)
        fixture_range(trace, stream(0, STREAM), WEIR_CAT_KERNEL, "kernel", 30 + 11 * i, 10)->correlation = 5;
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_QUEUED, 9);
    cr_assert_eq(d->idle_ns, 9000);
}

Test(gpu_idle, a_kernel_before_its_launch_and_one_of_no_time)
{
    kernel(0, 10, 90);
    kernel(205, 200, 0); /* clocks disagree: it starts before its launch */
    kernel(290, 300, 10);
    const struct weir_idle_device *d = make();
    assert_us(d, WEIR_IDLE_LAUNCHING, 200);
    cr_assert_eq(d->busy_ns, 100000);
    cr_assert_eq(d->launches, 2);
    cr_assert_eq(d->delay_p50_ns, 0);
    cr_assert_eq(d->delay_p99_ns, 5000);
}

/* Returns the printed text. The caller frees it. */
static char *print(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    make();
    weir_gpu_idle_print(out, &idle);
    fclose(out);
    return text;
}

Test(gpu_idle, a_trace_without_a_gpu_and_without_waits)
{
    step(0, 0, 100);
    host(LOOP, WEIR_CAT_CPU_OP, "aten::add", 10, 20);
    char *text = print();
    cr_assert_str_eq(text, "GPU idle time unknown: the trace has no GPU events; record with\n"
                           "  ProfilerActivity.CUDA\n");
    free(text);
}

static const char workers[] = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
static const char no_workers[] = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
static const char weirs[] = "enumerate(DataLoader)#WeirLoader.__next__";

Test(gpu_idle, a_trace_without_a_gpu_shows_how_long_the_loop_waited)
{
    step(0, 0, 20000);
    host(LOOP, WEIR_CAT_USER_ANNOTATION, workers, 1000, 14000);
    host(OTHER_THREAD, WEIR_CAT_USER_ANNOTATION, workers, 0, 20000); /* another thread's wait does not stop the loop */
    char *text = print();
    cr_assert(strstr(text, "The loop waits for data 70.0 % of the time: 14.0 of 20.0 ms in 1 step.\n") == text, "%s",
              text);
    cr_assert(strstr(text, "weir run DATA --step-ms 6.0 "), "%s", text);
    cr_assert(strstr(text, "\nGPU idle time unknown: "), "%s", text);
    free(text);
}

Test(gpu_idle, a_short_wait_without_a_gpu_needs_no_help)
{
    step(0, 0, 20000);
    host(LOOP, WEIR_CAT_USER_ANNOTATION, weirs, 1000, 200);
    char *text = print();
    cr_assert_str_eq(text, "The loop waits for data 1.0 % of the time: 0.2 of 20.0 ms in 1 step.\n"
                           "GPU idle time unknown: the trace has no GPU events; record with --device cuda\n");
    free(text);
}

Test(gpu_idle, the_text_begins_with_the_first_cause_and_what_to_do)
{
    step(0, 0, 500);
    step(1, 500, 500);
    for (int i = 0; i < 20; i++)
        kernel(50 * i + 20, 50 * i + 30, 10);
    char *text = print();
    const char *begin = "GPU 0 waits for launches 79.0 % of the time (launch-bound): 0.790 of 1.000 ms in\n"
                        "  2 steps. It is busy 20.0 %.\n"
                        "  what helps      fewer launches: ";
    cr_assert_eq(strncmp(text, begin, strlen(begin)), 0, "%s", text);
    const char *rows = "\nGPU 0                            time  of total      a step\n"
                       "idle: launching               0.790ms     79.0%     0.395ms\n"
                       "busy: kernels                 0.200ms     20.0%     0.100ms\n"
                       "idle: other host code         0.010ms      1.0%     0.005ms\n"
                       "total                         1.000ms    100.0%     0.500ms\n"
                       "kernels per step: 10.0; launch delay: p50 5.0us, p99 5.0us (20 launches";
    cr_assert(strstr(text, rows), "%s", text);
    free(text);
}

/* Two steps of 20 ms, in which the loop waits 15 ms and then launches a kernel of busy_us. Returns the text. */
static char *print_waits(const char *wait, int64_t busy_us)
{
    setenv("COLUMNS", "1000", 1);
    for (int64_t at = 0; at < 40000; at += 20000) {
        step(at / 20000, at, 20000);
        host(LOOP, WEIR_CAT_USER_ANNOTATION, wait, at, 15000);
        kernel(at + 15000, at + 15010, busy_us);
    }
    return print();
}

Test(gpu_idle, help_for_a_loader_with_workers)
{
    char *text = print_waits(workers, 1000);
    const char *begin = "GPU 0 waits for data 75.0 % of the time (data-bound): 30.0 of 40.0 ms in 2 steps. It is busy "
                        "5.0 %.\n  what helps      more workers, while cores are idle: about 4 x num_workers (an "
                        "estimate: a step takes 20.0 ms, and 5.0 without the wait). The trace ";
    cr_assert_eq(strncmp(text, begin, strlen(begin)), 0, "%s", text);
    cr_assert(strstr(text, "\n  Weir's loader   weir run DATA --step-ms 5.0 "), "%s", text);
    cr_assert(strstr(text, " takes that long without the wait\n"), "%s", text);
    cr_assert_null(strstr(text, "\n  also "), "%s", text);      /* without copies */
    cr_assert_null(strstr(text, "\n  few steps "), "%s", text); /* the waits are equal */
    cr_assert_eq(weir_gpu_idle_step_ns(&idle, &idle.devices[0]), 5000000);
    free(text);
}

Test(gpu_idle, a_step_is_at_least_as_long_as_its_work_on_the_gpu)
{
    char *text = print_waits(workers, 7500); /* runs into the next wait */
    cr_assert(strstr(text, " --step-ms 7.5 "), "%s", text);
    free(text);
}

Test(gpu_idle, help_for_a_loader_without_workers)
{
    char *text = print_waits(no_workers, 1000);
    cr_assert(strstr(text, "\n  what helps      worker processes (num_workers=1 or more"), "%s", text);
    free(text);
}

Test(gpu_idle, help_for_a_loader_with_an_unknown_name)
{
    char *text = print_waits("my data wait", 1000);
    cr_assert(strstr(text, "\n  what helps      python -m weir watch train.py shows "), "%s", text);
    cr_assert(strstr(text, " --step-ms 5.0 "), "%s", text);
    free(text);
}

Test(gpu_idle, help_for_weirs_own_loader)
{
    char *text = print_waits(weirs, 1000);
    cr_assert(strstr(text, "\n  what helps      the verdict of the recorded run "), "%s", text);
    cr_assert_null(strstr(text, "weir run"), "%s", text);
    free(text);
}

Test(gpu_idle, without_steps_their_time_is_not_invented)
{
    setenv("COLUMNS", "1000", 1);
    host(LOOP, WEIR_CAT_USER_ANNOTATION, workers, 100, 900);
    kernel(0, 10, 90);
    kernel(1000, 1010, 90);
    char *text = print();
    const char *begin = "GPU 0 waits for data 82.6 % of the time (data-bound): 0.900 of 1.090 ms. It is busy ";
    cr_assert_eq(strncmp(text, begin, strlen(begin)), 0, "%s", text);
    cr_assert(strstr(text, " --step-ms MS "), "%s", text);
    cr_assert_null(strstr(text, "a step"), "%s", text);
    free(text);
}

Test(gpu_idle, a_busy_gpu_has_no_cause)
{
    setenv("COLUMNS", "1000", 1);
    step(0, 0, 1000);
    kernel(0, 10, 990);
    char *text = print();
    const char *begin = "GPU 0 is busy 99.0 % of the time: 0.990 of 1.000 ms in 1 step. No cause of idle time takes "
                        "5 %.\nGPU 0 ";
    cr_assert_eq(strncmp(text, begin, strlen(begin)), 0, "%s", text);
    free(text);
}

/* Steps of 20 ms. The loop waits long_us in every second step, and 1 ms in the others. Returns the text. */
static char *print_bursts(int n_steps, const char *wait, int64_t long_us)
{
    setenv("COLUMNS", "1000", 1);
    for (int i = 0; i < n_steps; i++) {
        step(i, 20000 * i, 20000);
        host(LOOP, WEIR_CAT_USER_ANNOTATION, wait, 20000 * i, i % 2 ? 1000 : long_us);
        kernel(20000 * i + 19000, 20000 * i + 19010, 500);
    }
    return print();
}

static void expect_enough_steps(int n_steps, const char *wait, int64_t long_us)
{
    char *text = print_bursts(n_steps, wait, long_us);
    cr_assert_null(strstr(text, "few steps"), "%s", text);
    free(text);
}

Test(gpu_idle, few_steps_with_different_waits_are_too_few)
{
    char *text = print_bursts(3, workers, 15000);
    cr_assert(
        strstr(text, "\n  few steps       3 steps, which wait 1.0 to 15.0 ms for data: record more (active=16)\n"),
        "%s", text);
    free(text);
}

Test(gpu_idle, enough_steps_may_wait_differently)
{
    expect_enough_steps(16, workers, 15000);
}

Test(gpu_idle, few_steps_with_similar_waits_are_enough)
{
    expect_enough_steps(3, workers, 4000);
}

Test(gpu_idle, one_step_of_a_loader_with_workers_is_too_few)
{
    char *text = print_bursts(1, workers, 700); /* the waits of other steps are unknown */
    cr_assert(strstr(text, "\n  few steps       1 step, which waits 0.700 ms for data: record more (active=16)\n"),
              "%s", text);
    free(text);
}

Test(gpu_idle, one_step_of_a_loader_without_workers_is_like_the_others)
{
    expect_enough_steps(1, no_workers, 15000);
}

Test(gpu_idle, copies_from_pageable_memory_are_named_after_a_larger_cause)
{
    copy(15200, 15210, 1000);
    copy(15300, 15310, 1000); /* overlaps with the first copy */
    char *text = print_waits(workers, 100);
    cr_assert(strstr(text,
                     "\n  also            pin_memory=True, and non_blocking=True, which has no effect without it: "
                     "copies from pageable memory take 0.550 of the 5.000 ms of a step without the wait\n"),
              "%s", text);
    cr_assert(strstr(text, " which takes that long without the wait, copies included\n"), "%s", text);
    cr_assert_eq(idle.devices[0].pageable_ns, 1100000);
    free(text);
}

Test(gpu_idle, short_copies_and_copies_to_the_host_need_no_pinned_memory)
{
    copy(15200, 15210, 400); /* 4 % of two steps of 5 ms */
    fixture_range(trace, stream(0, STREAM), WEIR_CAT_GPU_MEMCPY, "Memcpy DtoH (Device -> Pageable)", 16000, 3000);
    fixture_range(trace, stream(0, STREAM), WEIR_CAT_GPU_MEMCPY, "Memcpy HtoD (Pinned -> Device)", 16000, 3000);
    char *text = print_waits(workers, 100);
    cr_assert_null(strstr(text, "pin_memory"), "%s", text);
    cr_assert_eq(idle.devices[0].pageable_ns, 400000);
    free(text);
}

Test(gpu_idle, copies_alone_as_the_first_cause_name_pinned_memory_once)
{
    setenv("COLUMNS", "1000", 1);
    copy(0, 10, 900);
    kernel(905, 910, 90);
    char *text = print();
    cr_assert(
        strstr(text, "\n  what helps      pinned memory (pin_memory=True in a DataLoader) and non_blocking copies"),
        "%s", text);
    cr_assert_null(strstr(text, "\n  also "), "%s", text);
    free(text);
}

Test(gpu_idle, without_steps_copies_are_compared_with_the_time_without_the_wait)
{
    setenv("COLUMNS", "1000", 1);
    kernel(0, 10, 90);
    host(LOOP, WEIR_CAT_USER_ANNOTATION, workers, 100, 900);
    copy(1000, 1010, 90);
    kernel(1090, 1100, 100);
    char *text = print();
    cr_assert(strstr(text, "copies from pageable memory take 0.090 of the 0.290 ms without the wait\n"), "%s", text);
    free(text);
}

/* A torch.profiler trace of a small network on an H200. */
Test(gpu_idle, a_trace_of_torch)
{
    char path[4096];
    struct weir_err err = WEIR_ERR_NONE;
    const char *data = getenv("WEIR_DATA");
    snprintf(path, sizeof path, "%s/traces/torch_cuda.pt.trace.json.gz", data ? data : "");
    if (!data || access(path, R_OK) != 0)
        cr_skip_test("needs WEIR_DATA with traces/torch_cuda.pt.trace.json.gz");
    weir_trace_free(&trace);
    cr_assert_eq(weir_trace_read(&trace, path, &err), 0, "%s", err.text);
    const struct weir_idle_device *d = make();
    cr_assert_eq(idle.n_steps, 3);
    cr_assert_eq(d->idle_ns - d->before_ns - d->after_ns, 7101112); /* HTA 0.5.0 reports 7101.11 us */
    cr_assert_eq(weir_gpu_idle_first(d), WEIR_IDLE_LAUNCHING);
    cr_assert_eq(d->kernels, 105);
    cr_assert_eq(d->step_kernels, 105);
    cr_assert_eq(idle.loop.loader, WEIR_IDLE_LOADER_WORKERS);
    cr_assert_eq(weir_gpu_idle_step_ns(&idle, d), (idle.loop.ns - idle.loop.wait_ns) / 3);
}

static void make_with_any_steps(void)
{
    struct weir_step steps[2] = {{.start_ns = rand() % 1000, .end_ns = rand() % 4000},
                                 {.start_ns = INT64_MIN, .end_ns = INT64_MAX}};
    cr_assert_eq(weir_gpu_idle_make(&idle, trace, steps, rand() % 3), 0);
    check_sums();
    cr_assert_geq(weir_gpu_idle_step_ns(&idle, idle.devices), -1);
}

static int64_t any_time(void)
{
    static const int64_t extremes[] = {INT64_MIN, INT64_MAX, -1, 0, INT64_C(4000000000000000000)};
    return rand() % 50 == 0 ? extremes[rand() % 5] : rand() % 3000;
}

/* The sums must hold even for ranges that overlap arbitrarily, end before they start, or share correlation IDs. */
Test(gpu_idle, nonsense)
{
    static const char *const names[] = {
        "cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemcpy", "cudaMalloc", "cudaDeviceSynchronize",
        "measurement",      "ProfilerStep#1",  "data wait",  "aten::add",
    };
    for (unsigned seed = 0; seed < 300; seed++) {
        srand(seed);
        for (int i = 0; i < 200; i++) {
            enum weir_cat cat = (enum weir_cat)(rand() % WEIR_CAT_COUNT);
            bool device = weir_cat_is_device(cat);
            uint32_t track = device ? stream(rand() % 70, rand() % 3) : thread(rand() % 3);
            struct weir_event *event = fixture_range(trace, track, cat, names[rand() % 9], 0, 0);
            event->start_ns = any_time();
            event->duration_ns = any_time();
            event->correlation = (uint32_t)(rand() % 20);
        }
        make_with_any_steps();
        end();
        begin();
    }
}
