/* Which camera, which file: a slow camera, a slow file and slow storage, made by reads that sleep, are told apart by
 * the report alone; and what waits for the HDF5 helper process. */
#include "pipeline/report/fill_priv.h"
#include "tests/fixtures/h5_fixture.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

TestSuite(sources, .init = fixture_open, .fini = fixture_close);

enum { EPISODES = 5, STEPS = 6, CAMERAS = 2, SLOW_MS = 60, RANGES = 16 };

/* ---- slow storage: reads of workers that touch these bytes sleep ---- */

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

/* Frames of these episodes (-1: all) and cameras (-1: all) are slow. */
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

/* The report of a whole run. */
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

/* Of the reads among the longest calls, those of one file or camera. */
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
                  "a row is read, and its JPEG decoded");
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
    report->final = false; /* it is worth a line in every table */
    char *text = printed(report);
    cr_assert(strstr(text, "files by mean read, the slowest of 5 (median "), "%s", text);
    cr_assert(strstr(text, "): episode_3.hdf5 "), "%s", text);
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
    cr_assert_lt(sources->files[0].mean_s, 2 * sources->files_median_s, "no file is slower than others");
    report->final = false;
    char *text = printed(report);
    cr_assert(!strstr(text, "files by mean read"), "%s", text);
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
    cr_assert_eq(weir_fill_sources(&b->sources, loader, config.data, last, first), 0);
    cr_assert_eq(weir_fill_sources(&all->sources, loader, config.data, last, NULL), 0);
    for (int c = 0; c < CAMERAS; c++) {
        cr_assert_eq(a->sources.cameras[c].read.count + b->sources.cameras[c].read.count,
                     all->sources.cameras[c].read.count);
        cr_assert_eq(all->sources.cameras[c].read.count, 3 * EPISODES * STEPS);
    }
    /* The longest of the run is the longest of one of the windows. */
    double longest = a->sources.calls[0].s > b->sources.calls[0].s ? a->sources.calls[0].s : b->sources.calls[0].s;
    cr_assert_eq(all->sources.calls[0].s, longest);
    weir_source_figures_free(&first);
    weir_source_figures_free(&last);
    weir_loader_close(&loader);
    free(a);
    free(b);
    free(all);
}

/* Frames of blocks: a block is one read. */
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
    cr_assert(!strstr(text, "files by mean read"), "one file is not compared with others");
    cr_assert(strstr(text, ".hdf5:"), "an episode is named by its group: %s", text);
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
    uint64_t start_ns = weir_clock_monotonic_ns(); /* workers begin while it is opened */
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
    cr_assert_leq(report->fallbacks.waiting, 4.01, "no more workers than there are can wait");
    char *text = printed(report);
    cr_assert(strstr(text, "fallbacks: 72 frames read through the HDF5 library, its helper process busy "), "%s", text);
    cr_assert(strstr(text, " workers waiting for it\n"), "%s", text);
    free(text);
    free(report);
    weir_loader_close(&loader);
}

/* ---- a run's whole report, by one call ---- */

static char *reported(struct weir_loader_reports *reports, const struct weir_loader_report_options *options)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    cr_assert_eq(weir_loader_report(reports, options, out), 0);
    fclose(out);
    return text;
}

/* How many of them some line begins with. */
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
                                     "files by mean read",
                                     "slowest calls:\n",
                                     "errors: 0 bad frames",
                                     "profiler: "};
    static const char *const zh[] = {
        "统计范围: 整个运行, ", "03b_image_decode ", "工作线程 (2 个):", "机器: ", "就绪队列: ", "读取: ", "错误: 0 ",
        "分析器开销: "};
    enum { EN = sizeof en / sizeof *en, ZH = sizeof zh / sizeof *zh };
    struct weir_loader_config config = config_for(make_data());
    config.num_workers = 2;
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_reports *reports;
    const struct weir_loader_reports_config begin = {.epochs = 1, .folder = config.data};
    cr_assert_eq(weir_loader_reports_begin(&reports, loader, &begin), 0);
    int first = consume(loader, 1);
    char *part = reported(reports, &(struct weir_loader_report_options){0});
    cr_assert_eq(strncmp(part, "no epoch of 1, ", 15), 0, "%s", part);
    weir_zone_begin(WEIR_STAGE_TRAIN_FORWARD);
    weir_zone_end();
    int all = first + consume(loader, 1 << 20);
    weir_loader_finish(loader);
    struct weir_loader_report_options options = {.final = true, .epochs_done = 1};
    char *text = reported(reports, &options), frames[32];
    cr_assert_eq(has_lines(text, en, EN), EN, "%s", text);
    snprintf(frames, sizeof frames, "(%d requests)", all);
    cr_assert_not_null(strstr(text, frames), "the whole run, whatever was reported before: %s", text);
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
