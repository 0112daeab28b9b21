/* Recorded windows: their steps and their contents. */
#include "weir/profiler.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void register_stages(void)
{
    cr_assert_eq(weir_loader_stages(), 0);
}

TestSuite(profiler, .init = register_stages);

/* Collects the windows and messages passed to the callbacks. */
struct seen {
    int windows, messages;
    char steps[16][200]; /* names of the steps in each window */
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

static const char *name_of(const struct weir_trace *trace, const struct weir_event *event)
{
    return weir_trace_text(trace, event->name);
}

static void note_window(void *user, const struct weir_profiler_window *window)
{
    struct seen *seen = user;
    char *text = seen->steps[seen->windows++];
    cr_assert(window->trace);
    for (size_t i = 0; i < window->trace->n_events; i++) {
        const char *name = name_of(window->trace, &window->trace->events[i]);
        if (strncmp(name, "ProfilerStep#", 13) == 0)
            snprintf(text + strlen(text), 200 - strlen(text), "%s ", name + 13);
    }
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
    if (schedule)
        cr_assert_eq(weir_schedule_parse(&config.schedule, schedule, &err), 0, "%s", err.text);
    config.on_trace_ready = note_window;
    config.on_message = note_message;
    config.user = seen;
    config.record_shapes = config.profile_memory = true;
    cr_assert_eq(weir_profiler_open(&profiler, &config, &err), 0, "%s", err.text);
    return profiler;
}

static void run_steps(struct weir_profiler *profiler, int n)
{
    for (int i = 0; i < n; i++) {
        {
            WEIR_RANGE("step's work");
        }
        weir_profiler_step(profiler);
        weir_profiler_flush(profiler);
    }
}

/* ---- recorded steps ---- */

Test(profiler, windows_hold_the_steps_that_torch_records)
{
    static const struct {
        const char *schedule;
        int steps; /* number of weir_profiler_step calls */
        int windows, messages;
        const char *expected[4];
    } cases[] = {
        {"wait=1,warmup=1,active=2,repeat=1,skip_first=1", 8, 1, 0, {"3 4 "}},
        {"wait=1,warmup=1,active=3,repeat=2", 12, 2, 0, {"2 3 4 ", "7 8 9 "}},
        {"active=1", 3, 4, 0, {"0 ", "1 ", "2 ", "3 "}}, /* close ends the last one early */
        {"warmup=1,active=2", 5, 2, 0, {"1 2 ", "4 5 "}},
        {"wait=2,warmup=1,active=2", 3, 1, 0, {"3 "}}, /* closed in its first recorded step */
        {"wait=1,warmup=3,active=2", 2, 0, 0, {NULL}}, /* closed during warmup */
        {"wait=5,active=1", 3, 0, 0, {NULL}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct seen seen = {0};
        struct weir_profiler *profiler = open_profiler(&seen, cases[c].schedule);
        run_steps(profiler, cases[c].steps);
        weir_profiler_close(&profiler);
        cr_assert_eq(seen.windows, cases[c].windows, "%s: %d windows", cases[c].schedule, seen.windows);
        cr_assert_eq(seen.messages, cases[c].messages, "%s: %s", cases[c].schedule, seen.message);
        for (int w = 0; w < seen.windows; w++)
            cr_assert_str_eq(seen.steps[w], cases[c].expected[w], "%s: window %d", cases[c].schedule, w);
    }
}

/* A schedule defined by the program, with one letter per step. */
struct by_letters {
    const char *letters;
    struct weir_profiler *profiler;
    int64_t asked; /* last step passed to the schedule */
    char log[64];  /* the steps in each window, and the step at which the window ended */
};

static enum weir_action act_by_letters(void *user, int64_t step)
{
    struct by_letters *by = user;
    cr_assert_eq(step, by->asked + 1);
    by->asked = step;
    switch (by->letters[step - 7]) {
    case 'w':
        return WEIR_ACTION_WARMUP;
    case 'r':
        return WEIR_ACTION_RECORD;
    case 's':
        return WEIR_ACTION_RECORD_AND_SAVE;
    default:
        return WEIR_ACTION_NONE;
    }
}

static void take_window(void *user)
{
    struct by_letters *by = user;
    size_t at = strlen(by->log);
    weir_profiler_flush(by->profiler);
    struct weir_trace *trace = weir_profiler_take(by->profiler);
    cr_assert(trace);
    cr_assert_null(weir_profiler_take(by->profiler));
    cr_assert_null(weir_profiler_last(by->profiler));
    for (size_t i = 0; i < trace->n_events; i++) {
        const char *name = name_of(trace, &trace->events[i]);
        if (strncmp(name, "ProfilerStep#", 13) == 0)
            at += (size_t)snprintf(by->log + at, sizeof by->log - at, "%s ", name + 13);
    }
    snprintf(by->log + at, sizeof by->log - at, "before %" PRId64 "; ", by->asked);
    weir_trace_free(&trace);
}

Test(profiler, a_programs_own_schedule_and_its_windows)
{
    struct by_letters by = {.letters = "nwrswssr", .asked = 6};
    struct weir_profiler_config config;
    struct weir_err err = WEIR_ERR_NONE;
    weir_profiler_config_default(&config);
    config.action = act_by_letters;
    config.first_step = 7;
    config.on_window_end = take_window;
    config.user = &by;
    cr_assert_eq(weir_profiler_open(&by.profiler, &config, &err), 0, "%s", err.text);
    run_steps(by.profiler, 7);
    weir_profiler_stop(by.profiler);
    cr_assert_str_eq(by.log, "9 10 before 11; 12 before 13; 13 before 14; 14 before 14; ");
    weir_profiler_close(&by.profiler);
}

static int found; /* number of events found in all windows */

static void look_for_work(const struct weir_profiler_window *window)
{
    for (size_t i = 0; i < window->trace->n_events; i++)
        found += strcmp(name_of(window->trace, &window->trace->events[i]), "step's work") == 0;
}

/* A range between two recorded steps belongs to their window. */
Test(profiler, ranges_outside_the_window_are_left_out)
{
    struct seen seen = {.look = look_for_work};
    found = 0;
    struct weir_profiler *profiler = open_profiler(&seen, "wait=2,warmup=2,active=3,repeat=1");
    run_steps(profiler, 10);
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 1);
    cr_assert_eq(found, 3);
}

Test(profiler, by_hand_several_times)
{
    struct seen seen = {.look = look_for_work};
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_profiler *profiler = open_profiler(&seen, NULL);
    found = 0;
    for (int i = 0; i < 3; i++) {
        run_steps(profiler, 2);
        cr_assert_eq(weir_profiler_start(profiler, &err), 0);
        run_steps(profiler, 5);
        weir_profiler_stop(profiler);
    }
    cr_assert_lt(weir_profiler_start(NULL, &err), 0);
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 3);
    cr_assert_eq(found, 15);
    cr_assert_str_eq(seen.steps[0], "", "a manual recording has no steps");
}

Test(profiler, one_at_a_time_and_one_after_the_other)
{
    struct seen seen = {0};
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_profiler *other, *profiler = open_profiler(&seen, "active=1,repeat=1");
    struct weir_profiler_config config;
    weir_profiler_config_default(&config);
    cr_assert_eq(weir_profiler_open(&other, &config, &err), -EBUSY);
    cr_assert_null(other);
    cr_assert(strstr(err.text, "close it first"));
    run_steps(profiler, 2);
    weir_profiler_close(&profiler);
    for (int i = 0; i < 3; i++) {
        profiler = open_profiler(&seen, "active=2,repeat=1");
        run_steps(profiler, 4);
        weir_profiler_close(&profiler);
    }
    cr_assert_eq(seen.windows, 4);
}

/* ---- recorded events ---- */

struct expected {
    const char *name;
    enum weir_event_kind kind;
    enum weir_cat cat;
    int count;
};

static const struct expected *wanted;
static size_t n_wanted;

static void look_for_wanted(const struct weir_profiler_window *window)
{
    const struct weir_trace *trace = window->trace;
    for (size_t w = 0; w < n_wanted; w++) {
        int count = 0;
        for (size_t i = 0; i < trace->n_events; i++)
            count += strcmp(name_of(trace, &trace->events[i]), wanted[w].name) == 0 &&
                     trace->events[i].kind == wanted[w].kind && trace->events[i].cat == wanted[w].cat;
        cr_assert_eq(count, wanted[w].count, "%s: %d", wanted[w].name, count);
    }
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *e = &trace->events[i];
        cr_assert_geq(e->start_ns, trace->begin_ns, "%s", name_of(trace, e));
        cr_assert_leq(e->start_ns + e->duration_ns, trace->end_ns + 1000000, "%s", name_of(trace, e));
    }
}

static void *ask_for_async_end(void *user)
{
    weir_async_end(user, 77);
    return NULL;
}

static void everything_once(void)
{
    weir_name operator_name = weir_name_intern("an operator", WEIR_CAT_CPU_OP);
    int64_t sizes[] = {480, 640, 3};
    struct weir_range range = weir_range_begin(operator_name);
    weir_range_shapes(&range, weir_shapes_intern(1, (int[]){3}, sizes, (const char *[]){"unsigned char"}));
    {
        WEIR_OPERATOR("an inner operator");
        weir_item_self = 5;
        weir_instant(weir_name_intern("now", WEIR_CAT_USER_ANNOTATION));
        weir_item_self = 0;
    }
    weir_range_end(&range);
    weir_counter(weir_name_intern("depth", WEIR_CAT_OTHER), 2.5);
    weir_memory_allocated(&range, 4096, WEIR_MEMORY_CPU);
    weir_memory_freed(&range, 4096, WEIR_MEMORY_CPU);
    struct weir_async async = weir_async_begin(weir_name_intern("on its way", WEIR_CAT_LOADER_ITEM));
    pthread_t thread;
    pthread_create(&thread, NULL, ask_for_async_end, &async);
    pthread_join(thread, NULL);
}

static void look_at_details(const struct weir_profiler_window *window)
{
    const struct weir_trace *trace = window->trace;
    int seen = 0;
    look_for_wanted(window);
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *e = &trace->events[i];
        const char *name = name_of(trace, e);
        seen++;
        if (strcmp(name, "an operator") == 0) {
            cr_assert_str_eq(weir_trace_text(trace, e->shapes), "[[480, 640, 3]]");
            cr_assert_str_eq(weir_trace_text(trace, e->types), "[\"unsigned char\"]");
        } else if (strcmp(name, "now") == 0) {
            cr_assert_eq(e->item, 5);
        } else if (strcmp(name, "depth") == 0) {
            cr_assert_float_eq(e->value, 2.5, 0);
        } else if (strcmp(name, "on its way") == 0) {
            cr_assert_eq(e->item, 77);
        } else if (e->kind == WEIR_EVENT_MEMORY) {
            cr_assert_eq(e->memory.device, -1);
            cr_assert_eq(e->memory.allocated, e->memory.bytes > 0 ? 4096 : 0);
            cr_assert(e->memory.bytes == 4096 || e->memory.bytes == -4096);
        } else {
            seen--;
        }
    }
    cr_assert_eq(seen, 6);
    cr_assert(trace->shapes && trace->memory && !trace->stacks);
}

Test(profiler, every_kind_of_record)
{
    static const struct expected all[] = {
        {"an operator", WEIR_EVENT_RANGE, WEIR_CAT_CPU_OP, 1},
        {"an inner operator", WEIR_EVENT_RANGE, WEIR_CAT_CPU_OP, 1},
        {"now", WEIR_EVENT_INSTANT, WEIR_CAT_USER_ANNOTATION, 1},
        {"depth", WEIR_EVENT_COUNTER, WEIR_CAT_OTHER, 1},
        {"on its way", WEIR_EVENT_ASYNC, WEIR_CAT_LOADER_ITEM, 1},
        {"[memory]", WEIR_EVENT_MEMORY, WEIR_CAT_CPU_INSTANT_EVENT, 2},
        {"ProfilerStep#1", WEIR_EVENT_RANGE, WEIR_CAT_USER_ANNOTATION, 1},
    };
    struct seen seen = {.look = look_at_details};
    wanted = all;
    n_wanted = sizeof all / sizeof *all;
    struct weir_profiler *profiler = open_profiler(&seen, "warmup=1,active=1,repeat=1");
    everything_once(); /* during warmup, so dropped */
    weir_profiler_step(profiler);
    everything_once();
    weir_profiler_step(profiler);
    everything_once(); /* after the recording */
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 1);
    cr_assert_eq(seen.dropped, 0);
}

/* ---- threads, zones and unfinished ranges ---- */

static pthread_barrier_t meet;

static void *one_range(void *user)
{
    struct weir_range range = weir_range_begin(*(weir_name *)user);
    weir_range_end(&range);
    return NULL;
}

Test(profiler, threads_that_start_and_die_in_the_middle)
{
    enum { THREADS = 40 };
    weir_name name = weir_name_intern("short life", WEIR_CAT_CPU_OP);
    static struct expected all[] = {{"short life", WEIR_EVENT_RANGE, WEIR_CAT_CPU_OP, THREADS}};
    struct seen seen = {.look = look_for_wanted};
    wanted = all;
    n_wanted = 1;
    struct weir_profiler *profiler = open_profiler(&seen, "active=2,repeat=1");
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, one_range, &name);
        pthread_join(thread, NULL);
        if (i == THREADS / 2)
            weir_profiler_step(profiler);
    }
    weir_profiler_step(profiler);
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 1);
}

static void *zones_and_open_ranges(void *user)
{
    struct weir_recorder *recorder = user;
    weir_thread_attach(recorder, "worker", WEIR_ROLE_WORKER);
    weir_name name = weir_name_intern("never ended", WEIR_CAT_CPU_OP);
    pthread_barrier_wait(&meet); /* until recording is on */
    {
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
        weir_zone_carve(WEIR_STAGE_TO_TENSOR, 1);
    }
    weir_zone_begin(WEIR_STAGE_READ_BYTES);
    struct weir_range range = weir_range_begin(name);
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet); /* until the window has ended */
    weir_range_end(&range);
    weir_zone_end();
    weir_thread_detach();
    return NULL;
}

static void look_at_open(const struct weir_profiler_window *window)
{
    const struct weir_trace *trace = window->trace;
    look_for_wanted(window);
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *e = &trace->events[i];
        const char *name = name_of(trace, e);
        bool open = strcmp(name, "never ended") == 0 || strcmp(name, "03c_read_bytes") == 0;
        cr_assert_eq(e->unfinished, open, "%s", name);
        if (open) /* the inner range is 1 ns shorter, so that it is nested in the outer one */
            cr_assert_eq(e->start_ns + e->duration_ns, trace->end_ns - (strcmp(name, "never ended") == 0), "%s", name);
    }
}

Test(profiler, zones_and_what_is_open_at_the_end)
{
    static const struct expected all[] = {
        {"03b_image_decode", WEIR_EVENT_RANGE, WEIR_CAT_LOADER_STAGE, 1},
        {"05_to_tensor_normalize", WEIR_EVENT_RANGE, WEIR_CAT_LOADER_STAGE, 1},
        {"03c_read_bytes", WEIR_EVENT_RANGE, WEIR_CAT_LOADER_STAGE, 1},
        {"never ended", WEIR_EVENT_RANGE, WEIR_CAT_CPU_OP, 1},
        {"enumerate(DataLoader)#WeirLoader.__next__", WEIR_EVENT_RANGE, WEIR_CAT_CPU_OP, 1},
        {"08b_wait_for_gpu", WEIR_EVENT_RANGE, WEIR_CAT_CPU_OP, 1},
        {"20_train_forward_pass", WEIR_EVENT_RANGE, WEIR_CAT_CPU_OP, 1},
        {"worker_loop", WEIR_EVENT_RANGE, WEIR_CAT_LOADER_STAGE, 0},
    };
    struct seen seen = {.look = look_at_open};
    struct weir_recorder *recorder;
    pthread_t thread;
    wanted = all;
    n_wanted = sizeof all / sizeof *all;
    cr_assert_eq(weir_recorder_open(&recorder), 0);
    pthread_barrier_init(&meet, NULL, 2);
    struct weir_profiler *profiler = open_profiler(&seen, "active=1,repeat=1");
    pthread_create(&thread, NULL, zones_and_open_ranges, recorder);
    weir_thread_attach(recorder, "consumer", WEIR_ROLE_CONSUMER);
    pthread_barrier_wait(&meet);
    {
        WEIR_ZONE(WEIR_STAGE_WORKER_LOOP);
        {
            WEIR_ZONE(WEIR_STAGE_WAIT_DATA);
        }
        {
            WEIR_ZONE(WEIR_STAGE_WAIT_GPU);
        }
        {
            WEIR_ZONE(WEIR_STAGE_TRAIN_FORWARD);
        }
    }
    pthread_barrier_wait(&meet);
    weir_profiler_step(profiler);
    pthread_barrier_wait(&meet);
    pthread_join(thread, NULL);
    weir_thread_detach();
    weir_profiler_close(&profiler);
    weir_recorder_close(&recorder);
    cr_assert_eq(seen.windows, 1);
}

static const char *stage_name(int stage)
{
    return stage == WEIR_STAGE_WAIT_DATA ? "enumerate(DataLoader)#WeirLoader.__next__" : weir_stage_info(stage)->name;
}

/* The plugin counts every event with the DataLoader's name as a wait of the training loop, on any thread. */
Test(profiler, only_the_wait_for_data_is_the_dataloaders)
{
    static struct expected all[WEIR_STAGE_MAX];
    struct seen seen = {.look = look_for_wanted};
    struct weir_recorder *recorder;
    wanted = all;
    n_wanted = 0;
    weir_stage_register("another wait", WEIR_KIND_WAIT, true);
    cr_assert_eq(weir_recorder_open(&recorder), 0);
    struct weir_profiler *profiler = open_profiler(&seen, "active=1,repeat=1");
    weir_thread_attach(recorder, "weir-jpeg0", WEIR_ROLE_OTHER);
    for (int stage = 0; stage < weir_stage_count(); stage++) {
        const struct weir_stage_info *info = weir_stage_info(stage);
        if (!info || info->kind != WEIR_KIND_WAIT)
            continue;
        bool loop = info->consumer;
        all[n_wanted++] =
            (struct expected){stage_name(stage), WEIR_EVENT_RANGE, loop ? WEIR_CAT_CPU_OP : WEIR_CAT_LOADER_STAGE, 1};
        WEIR_ZONE(stage);
    }
    cr_assert_geq(n_wanted, 7);
    cr_assert(!weir_stage_info(WEIR_STAGE_WAIT_GPU_DECODE)->consumer, "a thread of the loader waits in this stage");
    weir_profiler_step(profiler);
    weir_thread_detach();
    weir_profiler_close(&profiler);
    weir_recorder_close(&recorder);
    cr_assert_eq(seen.windows, 1);
}

/* ---- limits ---- */

Test(profiler, full_rings_drop_and_count)
{
    enum { RANGES = 2000000 };
    struct seen seen = {.look = look_for_work};
    found = 0;
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    weir_profiler_config_default(&config);
    config.schedule = (struct weir_schedule){.active = 1, .repeat = 1};
    config.on_trace_ready = note_window;
    config.user = &seen;
    config.bytes_max = 1 << 20;
    cr_assert_eq(weir_profiler_open(&profiler, &config, NULL), 0);
    for (int i = 0; i < RANGES; i++) {
        WEIR_RANGE("step's work");
        if (i % 4096 == 0) /* lets the collector run */
            usleep(200);
    }
    weir_profiler_step(profiler);
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 1);
    cr_assert_gt(found, (1 << 20) / 16 * 6 / 10, "the limit is not used up: %d", found);
    cr_assert_leq(found, (1 << 20) / 16);
    /* The step's own record can be dropped too. */
    cr_assert_eq((uint64_t)found + seen.dropped + (*seen.steps[0] != '\0'), RANGES + 1);
}

enum { THROWN_STEPS = 60 };
static _Atomic int steps_done;

/* Takes as long as six steps, or as all remaining ones. */
static void count_slowly(const struct weir_profiler_window *window)
{
    int until = steps_done + 6 < THROWN_STEPS ? steps_done + 6 : THROWN_STEPS;
    while (steps_done < until)
        usleep(100);
    for (size_t i = 0; i < window->trace->n_events; i++)
        found += strcmp(name_of(window->trace, &window->trace->events[i]), "step's work") == 0;
    cr_assert_eq(window->dropped, 0, "window of step %d: %d dropped", (int)window->first_step, (int)window->dropped);
}

/* Records of dropped windows must not use the space of kept windows. */
Test(profiler, windows_thrown_away_leave_nothing_behind)
{
    enum { RANGES = 2000 };
    struct seen seen = {.look = count_slowly};
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    found = 0;
    weir_profiler_config_default(&config);
    config.schedule = (struct weir_schedule){.active = 1, .repeat = THROWN_STEPS};
    config.on_trace_ready = note_window;
    config.on_message = note_message;
    config.user = &seen;
    config.bytes_max = 256 << 10; /* enough for some windows, but not for all */
    cr_assert_eq(weir_profiler_open(&profiler, &config, NULL), 0);
    for (int step = 0; step < THROWN_STEPS; step++) {
        for (int i = 0; i < RANGES; i++) {
            WEIR_RANGE("step's work");
        }
        usleep(5000);
        weir_profiler_step(profiler);
        seen.windows = 0;
        steps_done++;
    }
    weir_profiler_close(&profiler);
    cr_assert_gt(seen.messages, 0, "no window was dropped");
    cr_assert_eq(found % RANGES, 0, "%d", found);
    cr_assert_gt(found, 0);
}

Test(profiler, a_step_without_work_may_be_left_out)
{
    struct seen seen = {0};
    for (int steps = 2; steps <= 3; steps++) {
        struct weir_profiler_config config;
        struct weir_profiler *profiler;
        weir_profiler_config_default(&config);
        config.schedule = (struct weir_schedule){.active = 2};
        config.whole_steps = true;
        config.on_trace_ready = note_window;
        config.user = &seen;
        cr_assert_eq(weir_profiler_open(&profiler, &config, NULL), 0);
        run_steps(profiler, steps);
        weir_profiler_close(&profiler);
    }
    cr_assert_eq(seen.windows, 3);
    cr_assert_str_eq(seen.steps[0], "0 1 ");
    cr_assert_str_eq(seen.steps[1], "0 1 ");
    cr_assert_str_eq(seen.steps[2], "2 ");
}

Test(profiler, an_unwritable_folder_is_one_line_and_the_run_goes_on)
{
    struct seen seen = {0};
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    weir_profiler_config_default(&config);
    config.schedule = (struct weir_schedule){.active = 1, .repeat = 2};
    config.folder = "/proc/no/such/folder";
    config.on_trace_ready = note_window;
    config.on_message = note_message;
    config.user = &seen;
    cr_assert_eq(weir_profiler_open(&profiler, &config, NULL), 0);
    run_steps(profiler, 4);
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 2);
    cr_assert_eq(seen.messages, 2);
    cr_assert(strstr(seen.message, "/proc/no/such/folder"), "%s", seen.message);
}

/* ---- fork ---- */

static int child(struct weir_profiler *inherited)
{
    struct seen seen = {.look = look_for_work};
    found = 0;
    run_steps(inherited, 3); /* no effect in the child */
    struct weir_profiler *profiler = open_profiler(&seen, "active=2,repeat=1");
    run_steps(profiler, 3);
    weir_profiler_close(&profiler);
    weir_profiler_close(&inherited);
    return seen.windows == 1 && found == 2 && strcmp(seen.steps[0], "0 1 ") == 0 ? 0 : 1;
}

Test(profiler, fork_in_a_window)
{
    struct seen seen = {.look = look_for_work};
    int status;
    found = 0;
    struct weir_profiler *profiler = open_profiler(&seen, "active=2,repeat=1");
    run_steps(profiler, 1);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(profiler));
    waitpid(pid, &status, 0);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child's windows: status %d", status);
    run_steps(profiler, 2);
    weir_profiler_close(&profiler);
    cr_assert_eq(seen.windows, 1);
    cr_assert_eq(found, 2);
}

static _Atomic bool quiet;

static void *hold_locks(void *user)
{
    struct weir_recorder *recorder = user;
    for (uint64_t i = 0; !quiet; i++) {
        char name[32];
        struct weir_snapshot *snapshot;
        snprintf(name, sizeof name, "name %d", (int)(i % 1000));
        weir_name_intern(name, WEIR_CAT_CPU_OP);
        WEIR_RANGE("with a stack");
        if (weir_snapshot_take(recorder, &snapshot) == 0)
            weir_snapshot_free(&snapshot);
    }
    return NULL;
}

/* Calls all functions that take a lock which another thread may have held during fork. */
static void use_locks(struct weir_recorder *recorder)
{
    struct seen seen = {0};
    struct weir_snapshot *snapshot;
    weir_thread_detach();
    weir_name_intern("of the child", WEIR_CAT_CPU_OP);
    if (weir_snapshot_take(recorder, &snapshot) == 0)
        weir_snapshot_free(&snapshot);
    struct weir_profiler *profiler = open_profiler(&seen, "active=1,repeat=1");
    weir_profiler_step(profiler);
    weir_profiler_close(&profiler);
}

/* Disabled with AddressSanitizer, whose allocator does not release its own locks in the child. */
#if defined(__SANITIZE_ADDRESS__)
enum { UNDER_ASAN = true };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { UNDER_ASAN = true };
#else
enum { UNDER_ASAN = false };
#endif
#else
enum { UNDER_ASAN = false };
#endif

Test(profiler, fork_while_threads_hold_locks, .disabled = UNDER_ASAN)
{
    enum { THREADS = 3, FORKS = 30 };
    struct seen seen = {0};
    struct weir_recorder *recorder;
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    pthread_t threads[THREADS];
    weir_profiler_config_default(&config);
    config.with_stack = true;
    config.bytes_max = 1 << 20;
    cr_assert_eq(weir_recorder_open(&recorder), 0);
    cr_assert_eq(weir_thread_attach(recorder, "main", WEIR_ROLE_CONSUMER), 0);
    cr_assert_eq(weir_profiler_open(&profiler, &config, NULL), 0);
    cr_assert_eq(weir_profiler_start(profiler, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, hold_locks, recorder);
    for (int i = 0; i < FORKS; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20); /* if the child hangs, the parent sees the signal */
            use_locks(recorder);
            _exit(0);
        }
        waitpid(pid, &status, 0);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %d: status %d", i, status);
    }
    quiet = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    weir_profiler_close(&profiler);
    weir_thread_detach();
    weir_recorder_close(&recorder);
    cr_assert_eq(seen.messages, 0);
}
