/* NVTX ranges as received by an attached tool, using the fake NVTX (tests/fakes/fake_cuda_nvtx.c). */
#include "tests/fakes/fake_trace.h"
#include "weir/profiler.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct fake_nvtx *fake;
static struct fake_nvtx_event events[FAKE_NVTX_MAX];
static char messages[512];
static int windows, recorded;

static void open_module(void)
{
    cr_assert_eq(weir_loader_stages(), 0);
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    void *handle = dlopen(FAKE_CUDA_MODULE, RTLD_NOW | RTLD_LOCAL);
    fake = dlsym(handle, "fake_nvtx");
    cr_assert(fake);
}

TestSuite(nvtx, .init = open_module);

static void note_message(void *user, const char *line)
{
    (void)user;
    snprintf(messages + strlen(messages), sizeof messages - strlen(messages), "%s;", line);
}

static void note_window(void *user, const struct weir_profiler_window *window)
{
    (void)user;
    windows++;
    recorded = (int)window->trace->n_events;
}

static struct weir_profiler *open_profiler(const char *schedule)
{
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    struct weir_err err = WEIR_ERR_NONE;
    weir_profiler_config_default(&config);
    if (schedule)
        cr_assert_eq(weir_schedule_parse(&config.schedule, schedule, &err), 0, "%s", err.text);
    config.nvtx = true;
    config.on_message = note_message;
    config.on_trace_ready = note_window;
    cr_assert_eq(weir_profiler_open(&profiler, &config, &err), 0, "%s", err.text);
    return profiler;
}

/* Returns a thread's pushes and pops, which must be balanced, in the form "a(b()c())". */
static const char *told(int n, pid_t tid)
{
    static char text[4096];
    int depth = 0;
    *text = '\0';
    for (int i = 0; i < n; i++) {
        size_t length = strlen(text);
        if (events[i].tid != (uint32_t)tid)
            continue;
        depth += events[i].push ? 1 : -1;
        cr_assert_geq(depth, 0);
        snprintf(text + length, sizeof text - length, events[i].push ? "%s(" : "%s)", events[i].text);
    }
    cr_assert_eq(depth, 0, "%s", text);
    return text;
}

Test(nvtx, steps_and_ranges_nest_without_a_window)
{
    struct weir_profiler *profiler = open_profiler(NULL);
    {
        WEIR_RANGE("outer");
        weir_item_self = 7;
        {
            WEIR_OPERATOR("inner");
        }
        weir_item_self = 0;
    }
    weir_instant(weir_name_intern("instant", WEIR_CAT_USER_ANNOTATION));
    weir_counter(weir_name_intern("counter", WEIR_CAT_OTHER), 1);
    weir_profiler_step(profiler);
    weir_profiler_close(&profiler);
    {
        WEIR_RANGE("after it");
    }
    int n = fake->take(events);
    cr_assert_str_eq(told(n, gettid()), "ProfilerStep#0(outer(inner()))ProfilerStep#1()");
    cr_assert_eq(events[2].item, 7);
    cr_assert_eq(windows, 0);
    cr_assert_str_eq(messages, "");
}

static void *use_zones(void *user)
{
    weir_thread_attach(user, "worker", WEIR_ROLE_WORKER);
    {
        WEIR_ZONE(WEIR_STAGE_WORKER_LOOP);
        for (int i = 0; i < 3; i++) {
            WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
            {
                WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
                weir_zone_carve(WEIR_STAGE_TO_TENSOR, 1);
            }
            struct weir_lap lap = weir_lap_begin();
            weir_lap(&lap, WEIR_STAGE_COLLATE);
        }
    }
    weir_thread_detach();
    return (void *)(intptr_t)gettid();
}

/* Zones end on several code paths (short, sampled, carved), and each must pop its range. */
Test(nvtx, zones_of_workers_are_balanced_and_their_loop_is_not_shown)
{
    struct weir_recorder *recorder;
    pthread_t thread;
    void *tid;
    cr_assert_eq(weir_recorder_open(&recorder), 0);
    struct weir_profiler *profiler = open_profiler(NULL);
    pthread_create(&thread, NULL, use_zones, recorder);
    pthread_join(thread, &tid);
    weir_profiler_close(&profiler);
    int n = fake->take(events);
    const char *one = "03a_read_one_camera(03b_image_decode())";
    char all[256];
    snprintf(all, sizeof all, "%s%s%s", one, one, one);
    cr_assert_str_eq(told(n, (pid_t)(intptr_t)tid), all);
    struct weir_snapshot *snapshot;
    cr_assert_eq(weir_snapshot_take(recorder, &snapshot), 0);
    cr_assert_eq(snapshot->stages[WEIR_STAGE_IMAGE_DECODE].count, 3, "zones are counted as usual");
    weir_snapshot_free(&snapshot);
    weir_recorder_close(&recorder);
}

/* Ranges that are open while NVTX or a recording is switched on or off must stay balanced. */
Test(nvtx, ranges_that_straddle_windows_are_balanced)
{
    struct weir_range before = weir_range_begin(weir_name_intern("before", WEIR_CAT_CPU_OP));
    struct weir_profiler *profiler = open_profiler("wait=1,active=1,repeat=1");
    struct weir_range open = weir_range_begin(weir_name_intern("open", WEIR_CAT_CPU_OP));
    weir_range_end(&before);
    weir_range_end(&open);
    weir_profiler_step(profiler); /* starts recording */
    {
        WEIR_RANGE("recorded");
    }
    struct weir_range straddling = weir_range_begin(weir_name_intern("straddling", WEIR_CAT_CPU_OP));
    weir_profiler_step(profiler); /* stops recording */
    weir_range_end(&straddling);
    {
        WEIR_RANGE("later");
    }
    weir_profiler_close(&profiler);
    int n = fake->take(events);
    cr_assert_str_eq(told(n, gettid()), "ProfilerStep#0(open())ProfilerStep#1(recorded()straddling())"
                                        "ProfilerStep#2(later())");
    cr_assert_eq(windows, 1);
    cr_assert_eq(recorded, 3, "the step, the range in it, and the open range: %d", recorded);
}

Test(nvtx, nobody_listens)
{
    fake->listen(false);
    struct weir_profiler *profiler = open_profiler("active=1,repeat=1");
    {
        WEIR_RANGE("range");
    }
    weir_profiler_step(profiler);
    weir_profiler_close(&profiler);
    cr_assert_eq(fake->take(events), 0);
    cr_assert_eq(windows, 1);
    cr_assert_str_eq(messages, "NVTX ranges are not shown: no profiling tool is attached; run under nsys profile;");
}
