/* GPU idle time by cause: rules for all traces, also invalid ones. tests/golden has a trace of each cause. */
#include "analyze/gpu_idle/gpu_idle.h"
#include "prof/trace/trace_read.h"
#include "tests/fixtures/trace_fixture.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The trace under test and its result. */
static struct weir_trace *trace;
static struct weir_gpu_idle idle;

static void begin(void)
{
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

TestSuite(gpu_idle, .init = begin, .fini = end);

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
