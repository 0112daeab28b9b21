/* Attribution to cameras and files: with reads that sleep, a slow camera, a slow file and slow storage must be
 * distinguishable from the report alone. Also the figures about the HDF5 helper process. */
#include "pipeline/loader_priv.h"
#include "pipeline/report/fill_priv.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

TestSuite(sources, .init = fixture_open, .fini = fixture_close);

enum { EPISODES = 5, STEPS = 6, CAMERAS = 2, SLOW_MS = 60, RANGES = 16 };

/* ---- slow storage: workers' reads of these bytes sleep ---- */

static struct {
    ino_t file;
    uint64_t from, to;
} slow[RANGES];
static int n_slow;

static bool is_slow(int fd, uint64_t offset, size_t n)
{
    struct stat st;
    char name[16];
    prctl(PR_GET_NAME, name);
    if (n_slow == 0 || strncmp(name, "weir-w", 6) != 0 || fstat(fd, &st) != 0)
        return false;
    for (int i = 0; i < n_slow; i++)
        if (slow[i].file == st.st_ino && offset < slow[i].to && offset + n > slow[i].from)
            return true;
    return false;
}

ssize_t __real_pread(int fd, void *to, size_t n, off_t offset);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t offset);
ssize_t __wrap_pread(int fd, void *to, size_t n, off_t offset)
{
    if (is_slow(fd, (uint64_t)offset, n))
        nanosleep(&(struct timespec){0, SLOW_MS * 1000000L}, NULL);
    return __real_pread(fd, to, n, offset);
}

/* Makes reads of this episode's and camera's frames slow (-1 = all episodes or all cameras). */
static void make_slow(const struct weir_loader_config *config, int episode, int camera)
{
    struct weir_loader *loader = fixture_loader(config);
    const struct weir_dataset *dataset = weir_loader_dataset(loader);
    n_slow = 0;
    for (int e = 0; e < EPISODES; e++)
        for (int c = 0; c < CAMERAS; c++) {
            struct weir_location first, last;
            struct stat st;
            if ((episode >= 0 && e != episode) || (camera >= 0 && c != camera))
                continue;
            cr_assert_eq(stat(weir_dataset_episode_path(dataset, e), &st), 0);
            cr_assert_eq(weir_locate(dataset, e, c, 0, &first), WEIR_HOW_EXTENT);
            cr_assert_eq(weir_locate(dataset, e, c, STEPS - 1, &last), WEIR_HOW_EXTENT);
            slow[n_slow].file = st.st_ino;
            slow[n_slow].from = first.offset;
            slow[n_slow++].to = last.offset + last.length;
        }
    weir_loader_close(&loader);
}

/* ---- runs ---- */

static struct weir_loader_config config_for(const char *data)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.num_workers = 2;
    config.batch_size = 4;
    config.io = "pread";
    n_slow = 0;
    return config;
}

static int consume(struct weir_loader *loader, int batches)
{
    struct weir_batch *batch;
    int n = 0;
    while (n < batches && weir_loader_next(loader, &batch, NULL) > 0) {
        weir_loader_release(loader, batch);
        n++;
    }
    return n;
}

static struct weir_loader_report *new_report(bool final)
{
    struct weir_loader_report *report = calloc(1, sizeof *report);
    report->final = report->timing = final;
    report->epoch_first = report->epoch_last = report->epoch_count = 1;
    return report;
}

/* Returns the report of a whole run. */
static struct weir_loader_report *run(const struct weir_loader_config *config)
{
    struct weir_loader *loader = fixture_loader(config);
    struct weir_loader_report *report = new_report(true);
    struct weir_source_figures *figures;
    consume(loader, 1 << 20);
    weir_loader_finish(loader);
    cr_assert_eq(weir_loader_sources(loader, &figures), 0);
    cr_assert_eq(weir_fill_sources(&report->sources, loader, config->data, figures, NULL), 0);
    weir_source_figures_free(&figures);
    weir_loader_close(&loader);
    return report;
}

static char *printed(const struct weir_loader_report *report)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    weir_loader_report_print(out, report, WEIR_LANG_EN);
    fclose(out);
    return text;
}

static const char *make_data(void)
{
    return fixture_synth("d", "act-jpeg", EPISODES, STEPS, 64, 48, "top,wrist");
}

/* Counts the reads of one file or camera among the longest calls. */
static int longest_reads(const struct weir_report_sources *sources, const char *file, const char *camera)
{
    int n = 0;
    for (int i = 0; i < sources->n_calls; i++) {
        const struct weir_report_call *call = &sources->calls[i];
        n +=
            !call->decode && (!file || strcmp(call->file, file) == 0) && (!camera || strcmp(call->camera, camera) == 0);
    }
    return n;
}

Test(sources, all_frames_are_counted_once)
{
    struct weir_loader_config config = config_for(make_data());
    struct weir_loader_report *report = run(&config);
    const struct weir_report_sources *sources = &report->sources;
    cr_assert_eq(sources->n_cameras, CAMERAS);
    for (int c = 0; c < CAMERAS; c++) {
        const struct weir_report_camera *camera = &sources->cameras[c];
        cr_assert_str_eq(camera->name, c ? "wrist" : "top");
        cr_assert_eq(camera->read.count, EPISODES * STEPS);
        cr_assert_eq(camera->decode.count, EPISODES * STEPS);
        cr_assert(camera->decode.bytes > 0 && camera->read.bytes >= camera->decode.bytes,
                  "rows are read and their JPEGs decoded");
        cr_assert(camera->read.total_s > 0 && camera->read.p99_s >= camera->read.p50_s &&
                  camera->read.max_s >= camera->read.p99_s);
    }
    cr_assert_eq(sources->files_read, EPISODES);
    cr_assert_eq(sources->n_files, WEIR_REPORT_FILES);
    cr_assert_eq(sources->files[0].count, STEPS * CAMERAS);
    cr_assert_eq(sources->n_calls, 2 * WEIR_SOURCE_CALLS);
    cr_assert_eq(longest_reads(sources, NULL, NULL), WEIR_SOURCE_CALLS);
    for (int i = 0; i < sources->n_calls; i++) {
        cr_assert(i == 0 || sources->calls[i].s <= sources->calls[i - 1].s);
        cr_assert(strncmp(sources->calls[i].file, "episode_", 8) == 0, "%s", sources->calls[i].file);
        cr_assert(sources->calls[i].t >= 0 && sources->calls[i].t < STEPS);
    }
    free(report);
}

Test(sources, a_slow_file_is_named)
{
    struct weir_loader_config config = config_for(make_data());
    make_slow(&config, 3, -1);
    struct weir_loader_report *report = run(&config);
    const struct weir_report_sources *sources = &report->sources;
    cr_assert_str_eq(sources->files[0].name, "episode_3.hdf5");
    cr_assert_gt(longest_reads(sources, "episode_3.hdf5", NULL), WEIR_SOURCE_CALLS / 2);
    report->final = false; /* slow files are listed in intermediate tables, too */
    char *text = printed(report);
    cr_assert(strstr(text, "files by mean read time, the slowest of 5 (median "), "%s", text);
    const char *median = strstr(text, "):\n"), *slowest = strstr(text, "  episode_3.hdf5  ");
    cr_assert(median && slowest && slowest < strchr(median + 3, '\n'), "%s", text);
    free(text);
    free(report);
}

Test(sources, a_slow_camera_is_named)
{
    struct weir_loader_config config = config_for(make_data());
    make_slow(&config, -1, 1);
    struct weir_loader_report *report = run(&config);
    const struct weir_report_sources *sources = &report->sources;
    cr_assert_str_eq(sources->cameras[1].name, "wrist");
    cr_assert_gt(sources->cameras[1].read.p50_s, sources->cameras[0].read.p50_s);
    cr_assert_gt(longest_reads(sources, NULL, "wrist"), WEIR_SOURCE_CALLS / 2);
    cr_assert_lt(sources->files[0].mean_s, 2 * sources->files_median_s, "a file is listed as slow");
    report->final = false;
    char *text = printed(report);
    cr_assert(!strstr(text, "files by mean read time"), "%s", text);
    free(text);
    free(report);
}

Test(sources, slow_storage_is_no_camera_and_no_file)
{
    struct weir_loader_config config = config_for(make_data());
    make_slow(&config, -1, -1);
    struct weir_loader_report *report = run(&config);
    const struct weir_report_sources *sources = &report->sources;
    for (int c = 0; c < CAMERAS; c++)
        cr_assert_geq(sources->cameras[c].read.p50_s, 0.9 * SLOW_MS / 1e3);
    cr_assert_geq(sources->files_median_s, 0.9 * SLOW_MS / 1e3);
    cr_assert_lt(sources->files[0].mean_s, 2 * sources->files_median_s);
    free(report);
}

Test(sources, windows_add_up_to_the_run)
{
    struct weir_loader_config config = config_for(make_data());
    struct weir_source_figures *first, *last;
    config.num_epochs = 3;
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_report *a = new_report(false), *b = new_report(false), *all = new_report(true);
    consume(loader, 5);
    cr_assert_eq(weir_loader_sources(loader, &first), 0);
    consume(loader, 1 << 20);
    weir_loader_finish(loader);
    cr_assert_eq(weir_loader_sources(loader, &last), 0);
    cr_assert_eq(weir_fill_sources(&a->sources, loader, config.data, first, NULL), 0);
    weir_sources_begin_window(first);
    weir_sources_widen(first, last);
    cr_assert_eq(weir_fill_sources(&b->sources, loader, config.data, last, first), 0);
    cr_assert_eq(weir_fill_sources(&all->sources, loader, config.data, last, NULL), 0);
    for (int c = 0; c < CAMERAS; c++) {
        cr_assert_eq(a->sources.cameras[c].read.count + b->sources.cameras[c].read.count,
                     all->sources.cameras[c].read.count);
        cr_assert_eq(all->sources.cameras[c].read.count, 3 * EPISODES * STEPS);
    }
    /* The longest call of the run must be the longest call of one of the windows. */
    double longest = a->sources.calls[0].s > b->sources.calls[0].s ? a->sources.calls[0].s : b->sources.calls[0].s;
    cr_assert_eq(all->sources.calls[0].s, longest);
    weir_source_figures_free(&first);
    weir_source_figures_free(&last);
    weir_loader_close(&loader);
    free(a);
    free(b);
    free(all);
}

/* The frames of a block share one read. */
Test(sources, blocks_are_read_once)
{
    struct weir_loader_config config =
        config_for(fixture_synth("d", "robomimic-gzip", EPISODES, STEPS, 32, 32, "top,wrist"));
    struct weir_loader_report *report = run(&config);
    for (int c = 0; c < CAMERAS; c++) {
        const struct weir_report_camera *camera = &report->sources.cameras[c];
        cr_assert_eq(camera->decode.count, EPISODES * STEPS);
        cr_assert(camera->read.count > 0 && camera->read.count <= camera->decode.count);
        cr_assert_gt(camera->decode.total_s, 0);
    }
    cr_assert_eq(report->sources.files_read, 1);
    char *text = printed(report);
    cr_assert(!strstr(text, "files by mean read time"), "one file is not compared with others");
    cr_assert(strstr(text, ".hdf5:"), "the episode's group is missing in: %s", text);
    free(text);
    free(report);
}

Test(sources, without_timing_nothing_is_said)
{
    struct weir_loader_config config = config_for(make_data());
    config.no_timing = true;
    struct weir_loader_report *report = run(&config);
    cr_assert_eq(report->sources.n_cameras + report->sources.n_calls + report->sources.n_files, 0);
    free(report);
}

/* ---- the HDF5 helper process ---- */

Test(sources, the_helper_process_has_a_utilisation)
{
    struct h5fx_episode episode = {.steps = 12, .cameras = {{.name = "a", .storage = H5FX_VIRTUAL}}};
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "v/episode_%d.hdf5", i);
        if (i == 0)
            cr_assert_eq(mkdir(fixture_path("v"), 0700), 0);
        h5fx_write(fixture_path(name), &episode);
    }
    struct weir_loader_config config = config_for(fixture_path("v"));
    config.num_workers = 4;
    config.num_epochs = 3;
    uint64_t start_ns = weir_clock_monotonic_ns(); /* before opening, since workers start during it */
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_counts then = {0}, now;
    consume(loader, 1 << 20);
    weir_loader_counts(loader, &now, false);
    double wall_s = (double)(weir_clock_monotonic_ns() - start_ns) / 1e9;
    struct weir_loader_report *report = new_report(true);
    weir_fill_fallbacks(&report->fallbacks, &now, &then, wall_s);
    cr_assert_eq(report->fallbacks.frames, 72);
    cr_assert_geq(now.helper.calls, 72);
    cr_assert(report->fallbacks.busy > 0 && report->fallbacks.busy <= 1);
    cr_assert_float_eq(report->fallbacks.each_s * 72, (double)now.helper.busy_ns / 1e9, 1e-6);
    cr_assert_leq(report->fallbacks.waiting, 4.01, "more workers wait than exist");
    char *text = printed(report);
    cr_assert(strstr(text, "fallbacks: 72 frames read through the HDF5 library, its helper process busy "), "%s", text);
    cr_assert(strstr(text, " workers waiting for it\n"), "%s", text);
    free(text);
    free(report);
    weir_loader_close(&loader);
}

/* ---- the report of a whole run, made with one call ---- */

static char *reported(struct weir_loader_reports *reports, const struct weir_loader_report_options *options)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    cr_assert_eq(weir_loader_report(reports, options, out), 0);
    fclose(out);
    return text;
}

/* Counts the strings in `begins` with which at least one line starts. */
static int has_lines(const char *text, const char *const *begins, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        const char *at = strstr(text, begins[i]);
        while (at && at > text && at[-1] != '\n')
            at = strstr(at + 1, begins[i]);
        found += at != NULL;
    }
    return found;
}

Test(sources, one_call_makes_a_runs_whole_report)
{
    static const char *const en[] = {"whole run: epoch 1 of 1, ",
                                     "03b_image_decode ",
                                     "20_train_forward_pass ",
                                     "worker ",
                                     "machine: ",
                                     "queue: ",
                                     "io: ",
                                     "fallbacks: 0 ",
                                     "camera ",
                                     "files by mean read time",
                                     "slowest calls:\n",
                                     "errors: 0 bad frames",
                                     "profiler: "};
    static const char *const zh[] = {
        "统计范围: 整个运行, ", "03b_image_decode ", "worker ", "machine: ", "queue: ", "io: ",
        "errors: 0 ",           "profiler: "};
    enum { EN = sizeof en / sizeof *en, ZH = sizeof zh / sizeof *zh };
    struct weir_loader_config config = config_for(make_data());
    config.num_workers = 2;
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_reports *reports;
    const struct weir_loader_reports_config begin = {.size = sizeof begin, .epochs = 1, .folder = config.data};
    cr_assert_eq(weir_loader_reports_begin(&reports, loader, &begin), 0);
    int first = consume(loader, 1);
    char *part =
        reported(reports, &(struct weir_loader_report_options){.size = sizeof(struct weir_loader_report_options)});
    cr_assert_eq(strncmp(part, "no epoch of 1, ", 15), 0, "%s", part);
    weir_zone_begin(WEIR_STAGE_TRAIN_FORWARD);
    weir_zone_end();
    int all = first + consume(loader, 1 << 20);
    weir_loader_finish(loader);
    struct weir_loader_report_options options = {.size = sizeof options, .final = true, .epochs_done = 1};
    char *text = reported(reports, &options), frames[32];
    cr_assert_eq(has_lines(text, en, EN), EN, "%s", text);
    snprintf(frames, sizeof frames, "(%d", all);
    cr_assert_not_null(strstr(strstr(text, "\nqueue: "), frames), "the report does not cover the whole run: %s", text);
    options.lang = WEIR_LANG_ZH;
    char *chinese = reported(reports, &options);
    cr_assert_eq(has_lines(chinese, zh, ZH), ZH, "%s", chinese);
    options.json = true;
    char *json = reported(reports, &options);
    cr_assert_eq(strncmp(json, "{\"type\":\"stages\",", 17), 0);
    cr_assert_eq(strchr(json, '\n'), json + strlen(json) - 1, "one line");
    free(part);
    free(text);
    free(chinese);
    free(json);
    weir_loader_reports_end(&reports);
    cr_assert_null(reports);
    weir_loader_close(&loader);
}

static void add_nothing(void *user, FILE *out, const struct weir_loader_report *report, enum weir_lang lang)
{
    (void)user, (void)out, (void)report, (void)lang;
}

static void queue_of(void *user, struct weir_loader_report *from)
{
    struct weir_loader_report *report = user;
    report->queue_samples = from->queue_samples;
    report->queue_min = from->queue_min;
    report->queue_max = from->queue_max;
}

static struct weir_loader_report queue_in(struct weir_loader_reports *reports, bool whole)
{
    struct weir_loader_report queue = {0};
    const struct weir_report_addition addition = {.begin = queue_of, .print = add_nothing, .user = &queue};
    free(reported(reports, &(struct weir_loader_report_options){.size = sizeof(struct weir_loader_report_options),
                                                                .final = whole,
                                                                .addition = &addition}));
    return queue;
}

/* A report of the whole run between two tables must not reset the second table's figures. */
Test(sources, the_queue_of_a_table_is_that_since_the_last_table)
{
    struct weir_loader_config config = config_for(make_data());
    config.num_workers = 2;
    config.prefetch = 4;
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_reports *reports;
    const struct weir_loader_reports_config begin = {.size = sizeof begin, .epochs = 1, .folder = config.data};
    cr_assert_eq(weir_loader_reports_begin(&reports, loader, &begin), 0);
    consume(loader, 3);
    queue_in(reports, false);
    while (atomic_load(&loader->shared.slots.completed) <= loader->taken) /* waits until a batch is ready */
        sched_yield();
    int n = consume(loader, 4);
    struct weir_loader_report before = queue_in(reports, true), again = queue_in(reports, true);
    cr_expect_eq(before.queue_samples, (uint64_t)(3 + n));
    cr_expect_eq(again.queue_max, before.queue_max);
    cr_expect_eq(again.queue_min, before.queue_min);
    struct weir_loader_report table = queue_in(reports, false), empty = queue_in(reports, false);
    cr_expect_eq(table.queue_samples, (uint64_t)n);
    cr_expect(table.queue_min >= 0 && table.queue_min <= table.queue_max, "%d to %d", table.queue_min, table.queue_max);
    cr_expect(table.queue_max >= 1, "batches were ready: %d to %d", table.queue_min, table.queue_max);
    cr_expect_eq(empty.queue_samples, 0);
    weir_loader_reports_end(&reports);
    weir_loader_close(&loader);
}

/* Copies the report's longest calls and files. */
static void sources_of(void *user, struct weir_loader_report *from)
{
    *(struct weir_report_sources *)user = from->sources;
}

static struct weir_report_sources sources_in(struct weir_loader_reports *reports, bool whole)
{
    struct weir_report_sources sources = {0};
    const struct weir_report_addition addition = {.begin = sources_of, .print = add_nothing, .user = &sources};
    free(reported(reports, &(struct weir_loader_report_options){.size = sizeof(struct weir_loader_report_options),
                                                                .final = whole,
                                                                .addition = &addition}));
    return sources;
}

Test(sources, a_report_of_the_whole_run_takes_no_calls_from_the_next_table)
{
    struct weir_loader_config config = config_for(make_data());
    config.num_epochs = 20;
    config.prefetch = 2;
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_reports *reports;
    const struct weir_loader_reports_config begin = {.size = sizeof begin, .epochs = 20, .folder = config.data};
    cr_assert_eq(weir_loader_reports_begin(&reports, loader, &begin), 0);
    consume(loader, 3);
    sources_in(reports, false);
    consume(loader, 20); /* more batches than were ready */
    weir_loader_finish(loader);
    struct weir_report_sources whole = sources_in(reports, true), table = sources_in(reports, false);
    cr_expect_eq(table.n_calls, 2 * WEIR_SOURCE_CALLS);
    cr_expect(table.calls[0].s > 0 && table.calls[0].s <= whole.calls[0].s);
    cr_expect_eq(table.n_files, WEIR_REPORT_FILES);
    for (int i = 0; i < table.n_files; i++)
        cr_expect_geq(table.files[i].max_s, table.files[i].mean_s, "%s", table.files[i].name);
    weir_loader_reports_end(&reports);
    weir_loader_close(&loader);
}

Test(sources, the_report_of_a_run_that_began_again_has_the_calls_of_all_its_tables)
{
    struct weir_loader_config config = config_for(make_data());
    config.num_epochs = 20;
    config.prefetch = 2;
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_reports *reports;
    const struct weir_loader_reports_config begin = {.size = sizeof begin, .epochs = 20, .folder = config.data};
    cr_assert_eq(weir_loader_reports_begin(&reports, loader, &begin), 0);
    cr_assert_eq(weir_loader_reports_restart(reports), 0);
    consume(loader, 20);
    weir_loader_finish(loader);
    struct weir_report_sources table = sources_in(reports, false), whole = sources_in(reports, true);
    cr_expect_eq(whole.n_calls, 2 * WEIR_SOURCE_CALLS);
    cr_expect(whole.n_calls > 0 && whole.calls[0].s >= table.calls[0].s && table.calls[0].s > 0);
    for (int i = 0; i < whole.n_files; i++)
        cr_expect_geq(whole.files[i].max_s, whole.files[i].mean_s, "%s", whole.files[i].name);
    weir_loader_reports_end(&reports);
    weir_loader_close(&loader);
}

/* ---- steps ---- */

static void keep_report(void *user, struct weir_loader_report *report)
{
    *(struct weir_loader_report *)user = *report; /* the pointer to the workers becomes invalid afterwards */
}
/* Returns the report of a whole run, made with one call. */
static struct weir_loader_report *whole_report(const struct weir_loader_config *config)
{
    struct weir_loader *loader = fixture_loader(config);
    struct weir_loader_report *report = new_report(true);
    struct weir_loader_reports *reports;
    const struct weir_loader_reports_config begin = {
        .size = sizeof begin, .epochs = config->num_epochs, .folder = config->data};
    const struct weir_report_addition addition = {.begin = keep_report, .print = add_nothing, .user = report};
    const struct weir_loader_report_options options = {
        .size = sizeof options, .final = true, .epochs_done = 1, .addition = &addition};
    cr_assert_eq(weir_loader_reports_begin(&reports, loader, &begin), 0);
    consume(loader, 1 << 20);
    weir_loader_finish(loader);
    free(reported(reports, &options));
    weir_loader_reports_end(&reports);
    weir_loader_close(&loader);
    return report;
}

Test(sources, what_completed_the_batches_that_were_waited_for_is_named)
{
    struct weir_loader_config config = config_for(make_data());
    config.num_epochs = 2;
    config.train_split = 1;
    make_slow(&config, 3, 1);
    struct weir_loader_report *report = whole_report(&config);
    const struct weir_report_late *late = &report->late;
    cr_assert_gt(late->batches, 0);
    cr_assert_str_eq(late->camera, "wrist");
    cr_assert_str_eq(late->file, "episode_3.hdf5");
    cr_assert_eq(strncmp(late->worker, "weir-w", 6), 0, "%s", late->worker);
    cr_assert_geq(late->read_s, 0.9 * SLOW_MS / 1e3);
    cr_assert_geq(late->task_s, late->read_s);
    cr_assert(late->file_wait_s <= late->wait_s && late->longest_wait_s <= late->wait_s);
    free(report);
}

Test(sources, steps_and_setup_are_reported)
{
    struct weir_loader_config config = config_for(make_data());
    config.num_epochs = 3;
    struct weir_loader_report *report = whole_report(&config);
    const struct weir_report_steps *steps = &report->steps;
    uint64_t images = EPISODES * STEPS * CAMERAS;
    cr_assert_eq(steps->images, 3 * images);
    cr_assert_eq(steps->train_batches, 3 * 6, "24 samples of four episodes, four per batch");
    cr_assert_eq(steps->val_batches, 3 * 2);
    cr_assert(steps->train_wait_s > 0 && steps->train_wait_s <= steps->train_s);
    cr_assert(steps->first_wait_s <= steps->train_wait_s);
    cr_assert_eq(report->first_epoch.n, 1);
    cr_assert_eq(report->first_epoch.images, images);
    cr_assert_eq(report->later_epochs.n, 2);
    cr_assert_eq(report->later_epochs.images, 2 * images);
    cr_assert_geq(report->later_epochs.fastest, report->later_epochs.slowest);
    const struct weir_report_setup *setup = &report->setup;
    cr_assert(setup->known && setup->encoded && !setup->normalised && !setup->direct && !setup->reads_ahead);
    cr_assert_eq(setup->workers, 2);
    cr_assert_eq(setup->batch_size, 4);
    cr_assert_eq(setup->images_per_sample, CAMERAS);
    cr_assert(setup->width == 64 && setup->height == 48 && setup->out_width == 64 && setup->out_height == 48);
    cr_assert_geq(setup->frames_bytes, images * 64 * 48 * 3);
    cr_assert_gt(setup->copy_bytes_per_s, 0);
    free(report);
}

/* The run has too few batches for a verdict, so the copy rate is not measured. */
Test(sources, a_short_run_measures_no_copies)
{
    struct weir_loader_config config = config_for(make_data());
    config.num_epochs = 1;
    struct weir_loader_report *report = whole_report(&config);
    cr_assert_lt(report->steps.train_batches, WEIR_REPORT_BATCHES_LEAST);
    cr_assert_eq(report->setup.copy_bytes_per_s, 0);
    free(report);
}

Test(sources, of_many_epochs_the_first_and_the_latest_are_kept)
{
    enum { EPOCHS = 3 * WEIR_STEPS_EPOCHS };
    struct weir_steps steps;
    struct weir_loader_report *report = new_report(true);
    cr_assert_eq(weir_steps_open(&steps, 1, 1, 1), 0);
    for (int i = 0; i < EPOCHS; i++) { /* one batch per epoch; epoch i takes i + 1 s */
        struct weir_batch batch = {.plan.epoch = i, .n = 10};
        weir_steps_asked(&steps, (uint64_t)i * (uint64_t)(i + 1) / 2 * 1000000000u);
        weir_steps_given(&steps, &batch, 1, NULL);
    }
    weir_steps_asked(&steps, (uint64_t)EPOCHS * (EPOCHS + 1) / 2 * 1000000000u);
    weir_fill_epochs(report, &steps, 0, UINT64_MAX);
    cr_assert_eq(report->first_epoch.n, 1);
    cr_assert_float_eq(report->first_epoch.s, 1, 1e-9);
    cr_assert_eq(report->later_epochs.n, WEIR_STEPS_EPOCHS - 1);
    cr_assert_float_eq(report->later_epochs.slowest, 10.0 / EPOCHS, 1e-9);
    cr_assert_float_eq(report->later_epochs.fastest, 10.0 / (EPOCHS - WEIR_STEPS_EPOCHS + 2), 1e-9);
    cr_assert_eq(report->later_epochs.device_bytes, -1);
    for (int i = 0; i < WEIR_STEPS_EPOCHS; i++) { /* a total of i + 1 MB has been read at the end of epoch i */
        steps.epochs[i].device_bytes = (uint64_t)steps.epochs[i].epoch * 1000000;
        steps.epochs[i].end_bytes = (uint64_t)(steps.epochs[i].epoch + 1) * 1000000;
    }
    weir_fill_epochs(report, &steps, 0, (uint64_t)EPOCHS * 1000000);
    cr_assert_float_eq(report->first_epoch.device_bytes, 1e6, 1, "bytes of dropped epochs must not count");
    cr_assert_float_eq(report->later_epochs.device_bytes, 1e6 * (WEIR_STEPS_EPOCHS - 1), 1);
    weir_fill_epochs(report, &steps, EPOCHS - 2, UINT64_MAX);
    cr_assert_float_eq(report->first_epoch.s, EPOCHS - 1, 1e-9, "since the previous table");
    cr_assert_eq(report->later_epochs.n, 1);
    weir_steps_close(&steps);
    free(report);
}
