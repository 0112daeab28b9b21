/* Clocks inside kernels, written to a trace and read back. Launches are matched with the calls that made them,
 * using the fake recorder, and blocks are drawn inside their kernels. */
#include "prof/gpu/clock_sources.h"
#include "prof/gpu/cuda_module.h"
#include "prof/gpu/gpu_trace.h"
#include "prof/trace/trace_read.h"
#include "tests/fakes/fake_trace.h"
#include "tests/fixtures/clock_fixture.h"
#include "weir/profiler.h"
#include "weir/trace.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST = 100, LAUNCHES_MAX = 8 };

static const struct fake_trace *fake;

static void open_module(void)
{
    const struct weir_cuda_module *module;
    struct weir_err err = WEIR_ERR_NONE;
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    cr_assert_eq(weir_cuda_module_open(&module, &err), 0, "%s", err.text);
    fake = dlsym(dlopen(FAKE_CUDA_MODULE, RTLD_NOW | RTLD_LOCAL), "fake_trace");
    cr_assert(fake);
}

TestSuite(kernel_clock_trace, .init = open_module);

/* ---- a source of launches ---- */

struct source {
    struct weir_clock_source of;
    struct weir_clock_launch launches[LAUNCHES_MAX];
    int n, asked;
    uint32_t recording;
};

static void collect(void *user, uint32_t recording, struct weir_clock_launches *to)
{
    struct source *source = user;
    source->asked++;
    cr_assert(recording > 0);
    if (source->recording == recording)
        for (int i = 0; i < source->n; i++)
            weir_clock_launches_add(to, &source->launches[i]);
}

static void source_open(struct source *source)
{
    *source = (struct source){.of = {.collect = collect, .user = source}};
    weir_clock_source_add(&source->of);
}

static void wait_until(uint64_t ns)
{
    while (weir_gpu_now_ns() < ns)
        ;
}

static uint32_t kernel_ns = 14000;

/* Launches a kernel with this table now, and adds it to the fake recorder unless `correlation` is 0. */
static void launch(struct source *source, const uint8_t *table, size_t bytes, uint32_t correlation)
{
    uint64_t now_ns = weir_gpu_now_ns();
    struct weir_gpu_record call = {.kind = WEIR_GPU_RECORD_RUNTIME,
                                   .name = "cudaLaunchKernelExC",
                                   .start_ns = now_ns + 300,
                                   .end_ns = now_ns + 1300,
                                   .tid = gettid(),
                                   .correlation = correlation};
    struct weir_gpu_record kernel = {.kind = WEIR_GPU_RECORD_KERNEL,
                                     .name = correlation % 2 ? "odd<1, 2>(int)" : "even",
                                     .start_ns = now_ns + 5000,
                                     .end_ns = now_ns + 5000 + kernel_ns,
                                     .correlation = correlation,
                                     .stream = 7,
                                     .grid = {132, 1, 1},
                                     .block = {256, 1, 1}};
    if (correlation) {
        fake->add(&call);
        fake->add(&kernel);
    }
    cr_assert(source->n < LAUNCHES_MAX);
    source->recording = weir_clock_recording();
    source->launches[source->n++] = (struct weir_clock_launch){.kernel = &clockfx_kernel,
                                                               .table = table,
                                                               .bytes = bytes,
                                                               .launch = CLOCKFX_LAUNCH,
                                                               .step_ns = CLOCKFX_STEP_NS,
                                                               .tid = gettid(),
                                                               .before_ns = now_ns,
                                                               .after_ns = now_ns + 2000};
    wait_until(now_ns + 6000 + kernel_ns);
}

/* ---- a recorded window ---- */

static struct source source;
static uint8_t *table;
static size_t table_bytes;

/* Runs `script` in a window of one step and returns its trace, which the caller frees. */
static struct weir_trace *record(void (*script)(void))
{
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    struct weir_err err = WEIR_ERR_NONE;
    weir_profiler_config_default(&config);
    cr_assert_eq(weir_schedule_parse(&config.schedule, "warmup=1,active=1,repeat=1", &err), 0);
    config.gpu = true;
    source_open(&source);
    cr_assert_eq(weir_clock_recording(), 0);
    cr_assert_eq(weir_profiler_open(&profiler, &config, &err), 0, "%s", err.text);
    cr_assert_neq(weir_clock_recording(), 0, "the recorder is not running");
    weir_profiler_step(profiler);
    script();
    weir_profiler_step(profiler);
    cr_assert_eq(weir_clock_recording(), 0);
    weir_profiler_flush(profiler);
    struct weir_trace *trace = weir_profiler_take(profiler);
    weir_profiler_close(&profiler);
    weir_clock_source_remove(&source.of);
    cr_assert(trace);
    free(table);
    table = NULL;
    return trace;
}

static const char *name_of(const struct weir_trace *trace, const struct weir_event *event)
{
    return weir_trace_text(trace, event->name);
}

static bool is_block(const struct weir_trace *trace, const struct weir_event *event)
{
    return event->cat == WEIR_CAT_GPU_STAGE && strstr(weir_trace_text(trace, event->args), "\"grid blocks\"");
}

static int count(const struct weir_trace *trace, const char *name)
{
    int n = 0;
    for (size_t i = 0; i < trace->n_events; i++)
        n += trace->events[i].cat == WEIR_CAT_GPU_STAGE && strcmp(name_of(trace, &trace->events[i]), name) == 0;
    return n;
}

/* Returns event number `which` (from 0) of this category and name. */
static const struct weir_event *find(const struct weir_trace *trace, enum weir_cat cat, const char *name, int which)
{
    for (size_t i = 0; i < trace->n_events; i++)
        if (trace->events[i].cat == cat && strcmp(name_of(trace, &trace->events[i]), name) == 0 && which-- == 0)
            return &trace->events[i];
    cr_assert_fail("no %s", name);
    return NULL;
}

static bool holds(const struct weir_event *outer, const struct weir_event *inner)
{
    return outer->start_ns <= inner->start_ns &&
           inner->start_ns + inner->duration_ns <= outer->start_ns + outer->duration_ns;
}

/* Every stage must be inside its block, and every block inside the kernel with its name. */
static void check_nesting(const struct weir_trace *trace)
{
    const struct weir_event *block = NULL;
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        if (event->cat != WEIR_CAT_GPU_STAGE)
            continue;
        cr_assert_eq(event->correlation, 0, "readers would mistake a block for a kernel");
        cr_assert_eq(event->external_id, 0);
        cr_assert(trace->tracks[event->track].device);
        cr_assert_geq(trace->tracks[event->track].tid, 1000000000);
        if (is_block(trace, event)) {
            block = event;
            bool inside = false;
            for (size_t k = 0; k < trace->n_events; k++)
                inside |= trace->events[k].cat == WEIR_CAT_KERNEL && trace->events[k].name == event->name &&
                          holds(&trace->events[k], event);
            cr_assert(inside, "%s is not inside its kernel", name_of(trace, event));
        } else if (block && block->track == event->track) {
            cr_assert(holds(block, event), "%s is not inside its block", name_of(trace, event));
        }
    }
}

static bool has_arg(const struct weir_trace *trace, const struct weir_event *event, const char *text)
{
    return strstr(weir_trace_text(trace, event->args), text) != NULL;
}

/* ---- one launch ---- */

static void one_launch(void)
{
    table = clockfx_table(1, &table_bytes);
    launch(&source, table, table_bytes, FIRST);
}

Test(kernel_clock_trace, a_block_lies_in_its_kernel_and_its_stages_in_it)
{
    struct weir_trace *trace = record(one_launch);
    check_nesting(trace);
    const struct weir_event *kernel = find(trace, WEIR_CAT_KERNEL, "even", 0);
    const struct weir_event *block = find(trace, WEIR_CAT_GPU_STAGE, "even", 0);
    cr_assert_eq(block->start_ns, kernel->start_ns);
    cr_assert_eq(block->duration_ns, 10000);
    cr_assert(has_arg(trace, block, "\"SM\": 3, \"launch\": 100,"), "%s", weir_trace_text(trace, block->args));
    cr_assert(has_arg(trace, block, "\"ns\": 10000, \"ns error\": 42.0"));
    cr_assert(has_arg(trace, block, "\"kernel ns\": 14000, \"anchor error ns\": 4000"));
    cr_assert_eq(count(trace, "load"), 2);
    cr_assert_eq(count(trace, "store"), 2);
    const struct weir_event *load = find(trace, WEIR_CAT_GPU_STAGE, "load", 1);
    cr_assert_eq(load->start_ns, block->start_ns + 2000);
    cr_assert_eq(load->duration_ns, 1500);
    cr_assert(has_arg(trace, load, "\"iteration\": 1, \"ticks\": 3000"));
    cr_assert_eq(source.asked, 1);
    weir_trace_free(&trace);
}

/* The clocks' errors can make a block seem longer than its kernel. */
static void a_short_kernel(void)
{
    kernel_ns = 9000;
    one_launch();
}

Test(kernel_clock_trace, a_block_that_is_longer_than_its_kernel_is_drawn_shorter)
{
    struct weir_trace *trace = record(a_short_kernel);
    check_nesting(trace);
    const struct weir_event *block = find(trace, WEIR_CAT_GPU_STAGE, "even", 0);
    cr_assert_eq(block->duration_ns, 9000);
    cr_assert(has_arg(trace, block, "\"anchor error ns\": 0"));
    cr_assert_eq(find(trace, WEIR_CAT_GPU_STAGE, "load", 1)->duration_ns, 1350);
    weir_trace_free(&trace);
}

/* ---- several blocks and launches ---- */

static void blocks_that_run_at_once(void)
{
    table = clockfx_table(3, &table_bytes);
    struct weir_kernel_clock_record late = clockfx_head(2);
    late.begin_ns += 3200;
    late.end_ns += 3200;
    clockfx_put(table, &late, clockfx_rows, 2);
    launch(&source, table, table_bytes, FIRST);
}

Test(kernel_clock_trace, blocks_have_rows_of_their_own)
{
    struct weir_trace *trace = record(blocks_that_run_at_once);
    check_nesting(trace);
    cr_assert_eq(count(trace, "even"), 3);
    const struct weir_event *first = find(trace, WEIR_CAT_GPU_STAGE, "even", 0);
    const struct weir_event *second = find(trace, WEIR_CAT_GPU_STAGE, "even", 1);
    const struct weir_event *third = find(trace, WEIR_CAT_GPU_STAGE, "even", 2);
    cr_assert_neq(first->track, second->track);
    cr_assert_neq(first->track, third->track);
    cr_assert_eq(third->start_ns, first->start_ns + 3200);
    cr_assert(has_arg(trace, third, "\"anchor error ns\": 800"));
    weir_trace_free(&trace);
}

static void *launch_there(void *user)
{
    launch(user, table, table_bytes, FIRST + 3);
    return NULL;
}

/* Launches from two threads, including one that was not recorded and one whose table was not written. */
static void launches_of_all_kinds(void)
{
    static const uint8_t empty[4096];
    pthread_t thread;
    table = clockfx_table(1, &table_bytes);
    launch(&source, table, table_bytes, FIRST);
    launch(&source, table, table_bytes, 0);
    launch(&source, empty, sizeof empty, FIRST + 2);
    pthread_create(&thread, NULL, launch_there, &source);
    pthread_join(thread, NULL);
    launch(&source, table, table_bytes, FIRST + 4);
}

Test(kernel_clock_trace, launches_are_told_apart_by_their_calls)
{
    struct weir_trace *trace = record(launches_of_all_kinds);
    check_nesting(trace);
    cr_assert_eq(count(trace, "even"), 2);
    cr_assert_eq(count(trace, "odd<1, 2>(int)"), 1);
    cr_assert(has_arg(trace, find(trace, WEIR_CAT_GPU_STAGE, "odd<1, 2>(int)", 0), "\"launch\": 103,"));
    cr_assert_eq(find(trace, WEIR_CAT_GPU_STAGE, "even", 0)->track, find(trace, WEIR_CAT_GPU_STAGE, "even", 1)->track,
                 "one after the other, on one row");
    struct weir_kernel_clocks clocks;
    cr_assert_eq(weir_kernel_clocks_make(&clocks, trace), 0);
    cr_assert_eq(clocks.n, 2);
    cr_assert_eq(clocks.left_out, 0);
    cr_assert_str_eq(clocks.at[0].name, "even");
    cr_assert_eq(clocks.at[0].launches, 2);
    cr_assert_eq(clocks.at[1].launches, 1);
    weir_kernel_clocks_clear(&clocks);
    weir_trace_free(&trace);
}

static void nothing(void)
{
}

Test(kernel_clock_trace, a_trace_without_clocks_has_none)
{
    struct weir_trace *trace = record(nothing);
    struct weir_kernel_clocks clocks;
    char *text;
    size_t length;
    cr_assert_eq(weir_kernel_clocks_make(&clocks, trace), 0);
    cr_assert_eq(clocks.n, 0);
    FILE *out = open_memstream(&text, &length);
    weir_kernel_clocks_print(out, &clocks);
    fclose(out);
    cr_assert_str_empty(text);
    free(text);
    weir_kernel_clocks_clear(&clocks);
    weir_trace_free(&trace);
}

/* The source is removed before the window ends. */
static void a_source_that_goes(void)
{
    one_launch();
    weir_clock_source_remove(&source.of);
    source.n = 0;
}

Test(kernel_clock_trace, what_a_source_has_is_kept_when_it_goes)
{
    struct weir_trace *trace = record(a_source_that_goes);
    cr_assert_eq(count(trace, "even"), 1);
    cr_assert_eq(source.asked, 1);
    weir_trace_free(&trace);
}

/* ---- written and read back ---- */

static void check_same(const struct weir_kernel_clock *clock)
{
    struct weir_kernel_clock want;
    size_t bytes;
    uint8_t *written = clockfx_table(1, &bytes);
    weir_kernel_clock_init(&want, &clockfx_kernel);
    weir_kernel_clock_add(&want, written, bytes, CLOCKFX_LAUNCH, CLOCKFX_STEP_NS);
    cr_assert_eq(clock->n_stages, want.n_stages);
    cr_assert_eq(clock->blocks, 1);
    cr_assert_eq(clock->grid, want.grid);
    cr_assert_eq(clock->iterations, want.iterations);
    cr_assert_eq(clock->rows, want.rows);
    cr_assert_eq(clock->span_ticks, want.span_ticks);
    cr_assert_eq(clock->warp_lap_ticks, want.warp_lap_ticks);
    cr_assert_eq(clock->block_lap_ticks, want.block_lap_ticks);
    cr_assert_eq(clock->laps, want.laps);
    cr_assert_float_eq(clock->span_ns, want.span_ns, 1e-6);
    cr_assert_float_eq(clock->span_error_ns, want.span_error_ns, 0.06);
    cr_assert_float_eq(clock->kernels_ns, 14000, 1e-6);
    for (uint32_t i = 0; i < want.n_stages; i++) {
        cr_assert_str_eq(clock->stages[i].name, want.stages[i].name);
        cr_assert_eq(clock->stages[i].laps, want.stages[i].laps);
        cr_assert_eq(clock->stages[i].ticks, want.stages[i].ticks);
        cr_assert_eq(clock->stages[i].last_ticks, want.stages[i].last_ticks);
        cr_assert_eq(clock->stages[i].min_ticks, want.stages[i].min_ticks);
        cr_assert_eq(clock->stages[i].max_ticks, want.stages[i].max_ticks);
        cr_assert_float_eq(clock->stages[i].ns, want.stages[i].ns, 1e-6);
    }
    free(written);
}

/* Skips the rows of compute and store. The rows of two iterations of block 0 must follow, each with its share and its
 * ns. */
static void check_iterations(FILE *csv)
{
    static const char *const names[] = {"load", "compute", "store"};
    char line[256], wanted[128];
    cr_assert(fgets(line, sizeof line, csv) && fgets(line, sizeof line, csv));
    for (int i = 0; i < 2; i++) {
        const uint32_t *row = clockfx_rows[i];
        for (int stage = 0; stage < CLOCKFX_STAGES; stage++) {
            cr_assert(fgets(line, sizeof line, csv));
            snprintf(wanted, sizeof wanted, "\"even\",\"%s\",1,%u,%u,%u.000,%u,%u,%.6f,%.3f,%.3f,", names[stage],
                     row[1 + stage], row[1 + stage], row[1 + stage], row[1 + stage], row[1 + stage],
                     row[1 + stage] / (double)(row[1] + row[2] + row[3]), row[1 + stage] / 2.0, row[1 + stage] / 2.0);
            cr_assert(strncmp(line, wanted, strlen(wanted)) == 0, "%s instead of %s", line, wanted);
            snprintf(wanted, sizeof wanted, ",1,1,1,0,20.000,50.000,32,%d,0,%d\n", FIRST, i);
            cr_assert(strstr(line, wanted), "%s instead of %s", line, wanted);
        }
    }
    cr_assert_not(fgets(line, sizeof line, csv));
}

Test(kernel_clock_trace, the_file_holds_what_the_table_held)
{
    char path[] = "/tmp/weir_kernel_clock_XXXXXX.json";
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_trace *trace = record(one_launch), *read = NULL;
    struct weir_kernel_clocks clocks;
    struct weir_averages *averages;
    const struct weir_averages_config config = {0};
    cr_assert_eq(weir_kernel_clocks_make(&clocks, trace), 0);
    cr_assert_eq(clocks.n, 1);
    check_same(&clocks.at[0]);
    weir_kernel_clocks_clear(&clocks);
    int fd = mkstemps(path, 5);
    cr_assert_eq(weir_trace_write(trace, path, &err), 0, "%s", err.text);
    cr_assert_eq(weir_trace_read(&read, path, &err), 0, "%s", err.text);
    cr_assert_eq(weir_averages_open(&averages, read, &config), 0);
    for (size_t i = 0; i < averages->n_rows; i++)
        cr_assert_neq(strcmp(weir_trace_text(read, averages->rows[i].name), "load"), 0,
                      "stages must not count as device time");
    cr_assert_eq(averages->self_device_ns, 14000);
    weir_averages_close(&averages);
    cr_assert_eq(weir_kernel_clocks_make(&clocks, read), 0);
    cr_assert_eq(clocks.n, 1);
    check_same(&clocks.at[0]);
    /* A trace that was read can be written again. */
    cr_assert_eq(weir_trace_write(read, path, &err), 0, "%s", err.text);
    weir_trace_free(&read);
    cr_assert_eq(weir_trace_read(&read, path, &err), 0, "%s", err.text);
    cr_assert_eq(weir_kernel_clocks_export(&clocks, trace, path, &err), 0, "%s", err.text);
    char line[256];
    FILE *csv = fopen(path, "r");
    cr_assert(fgets(line, sizeof line, csv) && strncmp(line, "kernel,stage,laps,", 18) == 0);
    cr_assert(fgets(line, sizeof line, csv) && strncmp(line, "\"even\",\"load\",2,4000,", 21) == 0, "%s", line);
    cr_assert(strstr(line, ",,,\n"), "%s", line);
    check_iterations(csv);
    fclose(csv);
    cr_assert_lt(weir_kernel_clocks_export(&clocks, trace, "/nowhere/at/all.csv", &err), 0);
    cr_assert(strstr(err.text, "/nowhere/at/all.csv: cannot be written"), "%s", err.text);
    err = (struct weir_err)WEIR_ERR_NONE;
    cr_assert_lt(weir_kernel_clocks_export(&clocks, trace, "/dev/full", &err), 0);
    cr_assert(strstr(err.text, "/dev/full: cannot be written: No space left"), "%s", err.text);
    weir_kernel_clocks_clear(&clocks);
    weir_trace_free(&read);
    weir_trace_free(&trace);
    close(fd);
    unlink(path);
}

/* ---- traces of other programs ---- */

static void add_stage(struct weir_trace *trace, uint32_t track, const char *name, int64_t start_ns, const char *args)
{
    struct weir_event event = {.start_ns = start_ns,
                               .duration_ns = 100,
                               .name = weir_trace_intern(trace, name, strlen(name)),
                               .args = weir_trace_intern(trace, args, strlen(args)),
                               .track = track,
                               .kind = WEIR_EVENT_RANGE,
                               .cat = WEIR_CAT_GPU_STAGE};
    cr_assert_eq(weir_trace_add(trace, &event), 0);
}

Test(kernel_clock_trace, hostile_ranges)
{
    struct weir_trace *trace;
    struct weir_kernel_clocks clocks;
    cr_assert_eq(weir_trace_new(&trace), 0);
    uint32_t row = (uint32_t)weir_trace_track(trace, 0, 1000000000, true, 0);
    uint32_t other = (uint32_t)weir_trace_track(trace, 0, 1000000001, true, 0);
    add_stage(trace, row, "alone", 0, "\"iteration\": 0, \"ticks\": 5");
    add_stage(trace, row, "k", 10, "\"block\": 0");
    add_stage(trace, row, "inside", 20, "\"iteration\": 0, \"ticks\": 5");
    add_stage(trace, other, "on another row", 30, "\"iteration\": 0, \"ticks\": 5");
    add_stage(trace, row, "too late", 500, "\"iteration\": 0, \"ticks\": 5");
    add_stage(trace, row, "k", 600,
              "\"block\": 99999999999999999999999, \"ticks\": -5, \"rows\": 7, \"iterations\": 3, \"ns\": 1e999, "
              "\"ns error\": -1, \"kernel ns\": \"text\", \"SM\": 18446744073709551615");
    add_stage(trace, row, "inside", 610, "\"iteration\": 0, \"ticks\": 18446744073709551615");
    add_stage(trace, row, "inside", 620, "");
    cr_assert_eq(weir_kernel_clocks_make(&clocks, trace), 0);
    cr_assert_eq(clocks.n, 1);
    cr_assert_eq(clocks.left_out, 3);
    cr_assert_eq(clocks.at[0].blocks, 2);
    cr_assert_eq(clocks.at[0].rows, 3);
    cr_assert_eq(clocks.at[0].timed_blocks, 0);
    cr_assert_eq(clocks.at[0].kernels, 0);
    cr_assert_eq(clocks.at[0].stages[0].laps, 1);
    cr_assert_eq(clocks.at[0].long_laps, 1);
    cr_assert_eq(weir_kernel_clocks_export(&clocks, trace, "/dev/null", &(struct weir_err){0}), 0);
    weir_kernel_clocks_clear(&clocks);
    for (int i = 0; i < WEIR_KERNEL_CLOCKS_MAX + 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i);
        add_stage(trace, row, name, 1000 + i * 100, "\"block\": 0");
    }
    cr_assert_eq(weir_kernel_clocks_make(&clocks, trace), 0);
    cr_assert_eq(clocks.n, WEIR_KERNEL_CLOCKS_MAX);
    cr_assert_eq(clocks.left_out, 3 + 6);
    weir_kernel_clocks_clear(&clocks);
    weir_trace_free(&trace);
}

/* ---- limits ---- */

Test(kernel_clock_trace, launches_are_kept_up_to_64_mib)
{
    struct weir_clock_launches launches = {0};
    size_t bytes = 1 << 20;
    void *big = calloc(1, bytes);
    const struct weir_clock_launch one = {.kernel = &clockfx_kernel, .table = big, .bytes = bytes};
    for (int i = 0; i < 66; i++)
        weir_clock_launches_add(&launches, &one);
    cr_assert_eq(launches.n, 64);
    cr_assert_eq(launches.lost, 2);
    weir_clock_launches_clear(&launches);
    cr_assert_eq(launches.n, 0);
    free(big);
}
