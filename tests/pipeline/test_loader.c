/* The loader as a whole: batches that do not depend on the workers, its rules for callers, and its figures. */
#include "prof/record/fork_priv.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/profiler.h"
#include "weir/report.h"
#include "weir/stages.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(loader, .init = fixture_open, .fini = fixture_close);

static struct weir_loader_config config_for(const char *data)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = data;
    config.batch_size = 5;
    config.num_workers = 2;
    config.num_epochs = 3;
    config.train_split = 0.7;
    return config;
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* ---- same batches for any number of workers ---- */

static void assert_same(const struct weir_loader_config *config, const char *expected, const char *what)
{
    int rc;
    struct weir_err err;
    char *sums = fixture_checksums(config, &rc, &err);
    cr_assert_eq(rc, 0, "%s: %s", what, err.text);
    cr_assert_str_eq(sums, expected, "%s: %s, %d workers, prefetch %d, io %s: other checksums", config->data, what,
                     config->num_workers, config->prefetch, config->io);
    free(sums);
}

static void assert_determined(struct weir_loader_config config)
{
    static const int workers[] = {0, 1, 2, 7}, prefetch[] = {1, 2, 8};
    int rc;
    struct weir_err err;
    config.num_workers = 0;
    char *expected = fixture_checksums(&config, &rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
    cr_assert_not_null(strstr(expected, "epoch 3 "));
    for (size_t w = 0; w < sizeof workers / sizeof workers[0]; w++)
        for (size_t p = 0; p < sizeof prefetch / sizeof prefetch[0]; p++) {
            config.num_workers = workers[w];
            config.prefetch = prefetch[p];
            config.io = "pread";
            assert_same(&config, expected, "pread");
            config.io = "null";
            assert_same(&config, expected, "null");
        }
    config.io = "pread";
    for (int w = 0; w <= 2; w += 2) {
        config.num_workers = w;
        config.no_timing = true;
        assert_same(&config, expected, "no timing");
    }
    config.seed++;
    char *other = fixture_checksums(&config, &rc, &err);
    cr_assert_str_neq(other, expected);
    free(other);
    free(expected);
}

static void assert_synth_determined(const char *format)
{
    struct weir_loader_config config = config_for(fixture_synth("d", format, 5, 7, 64, 48, "top,wrist"));
    assert_determined(config);
    config.sampling = WEIR_SAMPLING_EPISODE;
    config.obs_history = 2;
    config.format =
        (struct weir_pixel_format){.color = WEIR_COLOR_BGR, .dtype = WEIR_DTYPE_F32, .layout = WEIR_LAYOUT_NCHW};
    assert_determined(config);
}

Test(loader, act_is_the_same_whatever_the_workers)
{
    assert_synth_determined("act");
}

Test(loader, act_jpeg_is_the_same_whatever_the_workers)
{
    assert_synth_determined("act-jpeg");
}

Test(loader, astrobench_is_the_same_whatever_the_workers)
{
    assert_synth_determined("astrobench");
}

Test(loader, real_data_is_the_same_whatever_the_workers)
{
    static const char *const names[] = {"act_raw", "actpp_jpeg", "astrobench", "actpp_jpeg_512x384",
                                        "astrobench_512x384"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *data = fixture_real(names[i]);
        if (!data)
            continue;
        struct weir_loader_config config = config_for(data);
        config.max_batches = i < 3 ? 6 : 1;
        assert_determined(config);
    }
}

/* ---- rules for callers ---- */

Test(loader, ends_with_zero_and_stays_there)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act", 3, 4, 32, 32, NULL));
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    uint64_t n = 0;
    for (; weir_loader_next(loader, &batch, &err) > 0; n++) {
        cr_assert_eq(batch->plan.sequence, n);
        weir_loader_release(loader, batch);
    }
    cr_assert_eq(n, weir_sampler_total(weir_loader_sampler(loader)));
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(weir_loader_next(loader, &batch, &err), 0);
        cr_assert_null(batch);
    }
    cr_assert_eq(err.code, 0);
    weir_loader_close(&loader);
    cr_assert_null(loader);
    weir_loader_close(&loader);
}

Test(loader, batches_may_be_kept_and_released_in_any_order)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act", 6, 10, 32, 32, NULL));
    config.prefetch = 3; /* so 4 slots */
    config.num_epochs = 1;
    for (int workers = 0; workers <= 2; workers++) {
        config.num_workers = workers;
        int rc;
        struct weir_err err = WEIR_ERR_NONE;
        struct weir_loader *loader = fixture_loader(&config);
        struct weir_batch *kept[4], *batch;
        for (int i = 0; i < 4; i++)
            cr_assert_eq(weir_loader_next(loader, &kept[i], &err), 1);
        float first = ((float *)kept[0]->tensors[1].data)[0];
        cr_assert_eq(weir_loader_next(loader, &batch, &err), -EBUSY);
        cr_assert_not_null(strstr(err.text, "the caller holds all 4 batches"), "%s", err.text);
        err = WEIR_ERR_NONE;
        weir_loader_release(loader, kept[2]);
        cr_assert_eq(weir_loader_next(loader, &batch, &err), -EBUSY); /* batch 4 needs the slot of batch 0 */
        cr_assert_not_null(strstr(err.text, "the caller holds batch 0, "), "%s", err.text);
        err = WEIR_ERR_NONE;
        cr_assert_eq(((float *)kept[0]->tensors[1].data)[0], first);
        weir_loader_release(loader, kept[3]);
        weir_loader_release(loader, kept[0]);
        weir_loader_release(loader, kept[1]);
        for (uint64_t n = 4; (rc = weir_loader_next(loader, &batch, &err)) > 0; n++) {
            cr_assert_eq(batch->plan.sequence, n);
            weir_loader_release(loader, batch);
        }
        cr_assert_eq(rc, 0);
        weir_loader_close(&loader);
    }
}

/* Workers continue with the following epochs until all slots are filled, and then stop. */
Test(loader, workers_fill_all_slots_across_epochs_and_no_more)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act-jpeg", 3, 4, 32, 32, "a,b"));
    config.batch_size = 4;
    config.num_epochs = 5; /* each with 2 training batches and 1 validation batch */
    config.prefetch = 7;
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_counts counts;
    uint64_t expected = 8 * 4 * 2; /* 8 slots x 4 samples x 2 cameras */
    do {
        sleep_ms(10);
        weir_loader_counts(loader, &counts, false);
    } while (counts.reads < expected);
    sleep_ms(100);
    weir_loader_counts(loader, &counts, false);
    cr_assert_eq(counts.reads, expected, "%d", (int)counts.reads);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
    weir_loader_counts(loader, &counts, true);
    cr_assert_eq(counts.queue_samples, 1);
    cr_assert_eq(counts.queue_max, 8);
    cr_assert_eq(counts.queue_min, 8);
    weir_loader_counts(loader, &counts, false);
    cr_assert_eq(counts.queue_max, 0);
    cr_assert_eq(counts.queue_sum, 8);
    weir_loader_close(&loader); /* while the caller still holds a batch */
}

static void *stop_soon(void *loader)
{
    sleep_ms(150);
    weir_loader_stop(loader);
    return NULL;
}

Test(loader, stop_ends_the_run_soon_from_any_thread)
{
    for (int workers = 0; workers <= 2; workers += 2) {
        struct weir_loader_config config =
            config_for(fixture_synth(workers ? "a" : "b", "act-jpeg", 3, 20, 64, 48, NULL));
        config.num_epochs = 1000000;
        config.num_workers = workers;
        struct weir_loader *loader = fixture_loader(&config);
        struct weir_batch *batch;
        struct weir_err err = WEIR_ERR_NONE;
        pthread_t thread;
        int rc;
        pthread_create(&thread, NULL, stop_soon, loader);
        while ((rc = weir_loader_next(loader, &batch, &err)) > 0)
            weir_loader_release(loader, batch);
        cr_assert_eq(rc, 0);
        cr_assert_eq(weir_loader_next(loader, &batch, &err), 0);
        pthread_join(thread, NULL);
        weir_loader_close(&loader);
    }
}

Test(loader, figures_are_final_after_finish_and_batches_stay)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act-jpeg", 3, 20, 64, 48, NULL));
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
    weir_loader_finish(loader);
    struct weir_loader_counts a, b;
    weir_loader_counts(loader, &a, false);
    sleep_ms(50);
    weir_loader_counts(loader, &b, false);
    cr_assert_eq(a.reads, b.reads);
    cr_assert_eq(batch->n, 5);
    memset(batch->tensors[0].data, 1, batch->tensors[0].sample_bytes * 5);
    weir_loader_release(loader, batch);
    cr_assert_eq(weir_loader_next(loader, &batch, &err), 0);
    weir_loader_close(&loader);
}

/* Structs of other library versions: shorter, longer, and not initialised with defaults. */
Test(loader, configurations_of_other_sizes)
{
    struct {
        struct weir_loader_config config;
        unsigned char later[16];
    } own;
    const size_t size = sizeof own.config;
    struct weir_err err = WEIR_ERR_NONE;
    memset(&own, 0xff, sizeof own);
    weir_loader_config_init(&own.config, size + 8);
    for (size_t i = 0; i < sizeof own.later; i++)
        cr_assert_eq(own.later[i], i < 8 ? 0 : 0xff, "byte %zu", i);
    cr_assert_eq(own.config.size, size + 8);
    own.config = config_for(fixture_synth("d", "act", 2, 3, 32, 32, NULL));
    const struct {
        size_t size;
        unsigned char later;
        int code;
        const char *text;
    } cases[] = {{size, 0xff, 0, ""},
                 {size + 8, 0, 0, ""},
                 {size + 8, 1, -ENOTSUP, "struct weir_loader_config: the option at byte"},
                 {0, 0, -EINVAL, "its size is 0"},
                 {offsetof(struct weir_loader_config, user), 0, -EINVAL, "set it to sizeof(struct weir_loader_config)"},
                 {SIZE_MAX, 0, -EINVAL, "its size is"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_loader *loader = NULL;
        memset(own.later, cases[i].later, sizeof own.later);
        own.config.size = cases[i].size;
        err = WEIR_ERR_NONE;
        cr_assert_eq(weir_loader_config_check(&own.config, &err), cases[i].code, "case %zu: %s", i, err.text);
        err = WEIR_ERR_NONE;
        cr_assert_eq(weir_loader_open(&loader, &own.config, &err), cases[i].code, "case %zu: %s", i, err.text);
        cr_assert_eq(!loader, cases[i].code < 0);
        cr_assert_not_null(strstr(err.text, cases[i].text), "case %zu: %s", i, err.text);
        cr_assert_eq(own.config.size, cases[i].size, "the caller's struct is unchanged");
        weir_loader_close(&loader);
    }
}

Test(loader, other_structs_of_no_size)
{
    const struct weir_dataset_config data = {.path = fixture_synth("d", "act", 2, 3, 32, 32, NULL)};
    const struct weir_loader_reports_config begin = {.epochs = 1};
    const struct weir_loader_report_options options = {.final = true};
    const struct weir_profiler_config profile = {.bytes_max = 1 << 20};
    struct weir_loader_config config = config_for(data.path);
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_reports *reports = NULL;
    struct weir_dataset *dataset = NULL;
    struct weir_profiler *profiler = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_dataset_open(&dataset, &data, &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "struct weir_dataset_config: its size is 0"), "%s", err.text);
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_profiler_open(&profiler, &profile, &err), -EINVAL);
    cr_assert_not_null(strstr(err.text, "struct weir_profiler_config: its size is 0"), "%s", err.text);
    cr_assert_eq(weir_loader_reports_begin(&reports, loader, &begin), -EINVAL);
    cr_assert(!dataset && !profiler && !reports);
    struct weir_loader_reports_config right;
    weir_loader_reports_config_default(&right);
    cr_assert_eq(weir_loader_reports_begin(&reports, loader, &right), 0);
    cr_assert_eq(weir_loader_report(reports, &options, stdout), -EINVAL);
    weir_loader_reports_end(&reports);
    weir_loader_close(&loader);
}

Test(loader, nonsense_is_refused_in_one_line)
{
    const char *data = fixture_synth("d", "act", 2, 3, 32, 32, NULL);
    struct weir_loader_config good = config_for(data);
    struct {
        struct weir_loader_config config;
        const char *text;
    } cases[] = {{good, "--batch-size 0: must be from 1 to 65536 samples"},
                 {good, "--num-workers 513: must be from 0 to 512 threads, or auto"},
                 {good, "--prefetch -1: must be from 1 to 4096 batches, or auto"},
                 {good, "--obs-history 0: must be from 1 to 1024 frames"},
                 {good, "--chunk-size 0: must be from 1 to 65536 actions"},
                 {good, "io engine"},
                 {good, "decoder"},
                 {good, "no-such-camera"},
                 {good, "--train-split 1.5: must be from 0 to 1"},
                 {good, "nowhere"},
                 {good, "use a smaller --batch-size"},
                 {good, "--drop-last"}};
    cases[0].config.batch_size = 0;
    cases[1].config.num_workers = WEIR_WORKERS_MAX + 1;
    cases[2].config.prefetch = -1;
    cases[3].config.obs_history = 0;
    cases[4].config.chunk_size = 0;
    cases[5].config.io = "telepathy";
    cases[6].config.decoder = "abacus";
    cases[7].config.cameras = "top,no-such-camera";
    cases[8].config.train_split = 1.5;
    cases[9].config.data = fixture_path("nowhere");
    cases[10].config.batch_size = 65536;
    cases[10].config.obs_history = 1024;
    cases[11].config.drop_last = true;
    cases[11].config.batch_size = 1000;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_err err = WEIR_ERR_NONE;
        struct weir_loader *loader = (struct weir_loader *)&err;
        cr_assert_lt(weir_loader_open(&loader, &cases[i].config, &err), 0, "case %zu", i);
        cr_assert_null(loader);
        cr_assert_not_null(strstr(err.text, cases[i].text), "case %zu: %s", i, err.text);
        cr_assert_null(strchr(err.text, '\n'));
        cr_assert_null(weir_thread_self);
    }
}

Test(loader, several_loaders_run_at_once_on_one_thread)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act-jpeg", 3, 6, 32, 32, NULL));
    struct weir_loader *a = fixture_loader(&config), *b = fixture_loader(&config);
    struct weir_batch *of_a, *of_b;
    struct weir_err err = WEIR_ERR_NONE;
    int n = 0;
    while (weir_loader_next(a, &of_a, &err) > 0 && weir_loader_next(b, &of_b, &err) > 0) {
        cr_assert_eq(of_a->n, of_b->n);
        cr_assert_eq(
            memcmp(of_a->tensors[0].data, of_b->tensors[0].data, of_a->tensors[0].sample_bytes * (size_t)of_a->n), 0);
        weir_loader_release(b, of_b);
        weir_loader_release(a, of_a);
        n++;
    }
    cr_assert_eq(n, (int)weir_sampler_total(weir_loader_sampler(a)));
    weir_loader_close(&a);
    weir_loader_close(&b);
    cr_assert_null(weir_thread_self);
}

/* ---- figures ---- */

/* Runs the loader to the end. Returns the number of frames per camera, with frames shared within a batch counted once.
 */
static uint64_t run_through(struct weir_loader *loader, int history)
{
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    uint64_t frames = 0;
    int rc;
    while ((rc = weir_loader_next(loader, &batch, &err)) > 0) {
        frames += fixture_frames(batch, history);
        weir_loader_release(loader, batch);
    }
    cr_assert_eq(rc, 0, "%s", err.text);
    return frames;
}

Test(loader, stages_are_called_as_often_as_they_say)
{
    for (int workers = 0; workers <= 3; workers++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", workers);
        struct weir_loader_config config = config_for(fixture_synth(name, "act-jpeg", 3, 7, 64, 48, "a,b"));
        config.num_workers = workers;
        config.obs_history = 2;
        config.format.dtype = WEIR_DTYPE_F32;
        struct weir_loader *loader = fixture_loader(&config);
        uint64_t samples = 3 * 3 * 7, batches = weir_sampler_total(weir_loader_sampler(loader));
        uint64_t frames = 2 * run_through(loader, 2); /* for two cameras */
        weir_loader_finish(loader);
        struct weir_snapshot *snapshot;
        struct weir_loader_counts counts;
        cr_assert_eq(weir_snapshot_take(weir_loader_recorder(loader), &snapshot), 0);
        weir_loader_counts(loader, &counts, false);
        const struct {
            int stage;
            uint64_t calls;
        } expected[] = {{WEIR_STAGE_TOTAL_GETITEM, samples}, {WEIR_STAGE_READ_QPOS, samples},
                        {WEIR_STAGE_IMAGES_TOTAL, samples},  {WEIR_STAGE_ONE_CAMERA, 2 * samples},
                        {WEIR_STAGE_IMAGE_DECODE, frames},   {WEIR_STAGE_READ_BYTES, frames},
                        {WEIR_STAGE_FILE_CACHE, frames},     {WEIR_STAGE_READ_ACTIONS, samples},
                        {WEIR_STAGE_TO_TENSOR, frames},      {WEIR_STAGE_COLLATE, batches},
                        {WEIR_STAGE_WAIT_DATA, batches},     {WEIR_STAGE_H2D_COPY, 0}};
        for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
            cr_assert_eq(snapshot->stages[expected[i].stage].count, expected[i].calls,
                         "%d workers: %s %d instead of %d", workers, weir_stage_info(expected[i].stage)->name,
                         (int)snapshot->stages[expected[i].stage].count, (int)expected[i].calls);
        cr_assert_eq(counts.reads, frames);
        cr_assert_eq(counts.fallback_reads, 0);
        cr_assert_eq(counts.queue_samples, batches);
        /* A stage inside a sample cannot take longer than the sample. */
        const struct weir_stage_stats *s = snapshot->stages;
        cr_assert_leq(s[WEIR_STAGE_IMAGES_TOTAL].max_ns, s[WEIR_STAGE_TOTAL_GETITEM].max_ns);
        cr_assert_leq(s[WEIR_STAGE_IMAGE_DECODE].total_ns + s[WEIR_STAGE_TO_TENSOR].total_ns,
                      s[WEIR_STAGE_ONE_CAMERA].total_ns);
        weir_snapshot_free(&snapshot);
        weir_loader_close(&loader);
    }
}

static double worst_split(const struct weir_report *report)
{
    double worst = 0;
    for (int i = 0; i < report->n_workers; i++) {
        const struct weir_report_worker *w = &report->workers[i];
        double off = (w->work_s + w->wait_s + w->unattributed_s) / w->wall_s - 1;
        fprintf(stderr, "%s: work %.3f + waits %.3f + unattributed %.3f = wall %.3f s %+.3f %%\n", w->name, w->work_s,
                w->wait_s, w->unattributed_s, w->wall_s, 100 * off);
        worst = fmax(worst, fabs(off));
    }
    return worst;
}

/* Runs the loader for a while, with busy workers or (if `slow`) with workers that idle because the consumer keeps a
 * batch. *waited is the fraction of time that the workers waited. Returns the worst relative error of a worker's
 * accounted time. */
static double run_and_split(const struct weir_loader_config *config, bool slow, double *waited)
{
    struct weir_loader *loader = fixture_loader(config);
    struct weir_batch *batch;
    struct weir_err err = WEIR_ERR_NONE;
    uint64_t end_ns = weir_clock_monotonic_ns() + 600000000u;
    do {
        cr_assert_eq(weir_loader_next(loader, &batch, &err), 1);
        sleep_ms(slow ? 600 : 0);
        weir_loader_release(loader, batch);
    } while (weir_clock_monotonic_ns() < end_ns);
    weir_loader_finish(loader);
    struct weir_snapshot *snapshot;
    struct weir_report *report = calloc(1, sizeof *report);
    cr_assert_eq(weir_snapshot_take(weir_loader_recorder(loader), &snapshot), 0);
    cr_assert_eq(weir_report_from_snapshot(report, snapshot), 0);
    cr_assert_eq(report->n_workers, 2);
    double shares = 0, worst = worst_split(report);
    for (int i = 0; i < report->n_rows; i++)
        shares += report->rows[i].share > 0 ? report->rows[i].share : 0;
    cr_assert(fabs(shares - 1) < 1e-9, "%.12f", shares);
    cr_assert_gt(report->profiler_share, 0);
    *waited = (report->workers[0].wait_s + report->workers[1].wait_s) /
              (report->workers[0].wall_s + report->workers[1].wall_s);
    weir_report_free(report);
    free(report);
    weir_snapshot_free(&snapshot);
    weir_loader_close(&loader);
    return worst;
}

/* Shares must add up to one, and all of a worker's time must be accounted for, within 5 % (1 % on an idle machine).
 * Several attempts are allowed, because other processes may take the core between a thread's start and its first zone,
 * or between its last zone and its end. */
Test(loader, a_workers_time_is_accounted_for)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act-jpeg", 4, 20, 160, 120, NULL));
    double waited[2], off = 1;
    config.num_epochs = 1000000;
    for (int i = 0; i < 10 && off >= 0.05; i++) {
        double busy = run_and_split(&config, false, &waited[0]), idle = run_and_split(&config, true, &waited[1]);
        off = fmax(busy, idle);
        cr_assert_gt(waited[1], waited[0], "the workers' waits are not longer with a slow consumer: %g, otherwise %g",
                     waited[1], waited[0]);
    }
    cr_assert_lt(off, 0.05);
}

/* ---- memory ---- */

static uint64_t peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss * 1024;
}

/* Runs in a child process, since a process's peak memory never decreases. Exits with status 0 if the growth is within
 * the documented limit. */
static void measure_child(const char *data, const char *io, enum weir_dtype dtype)
{
    struct weir_loader_config config = config_for(data);
    config.io = io;
    config.format.dtype = dtype;
    config.num_workers = 4;
    uint64_t before = peak_bytes();
    struct weir_loader *loader = fixture_loader(&config);
    struct weir_loader_facts facts;
    weir_loader_facts(loader, &facts);
    run_through(loader, 1);
    uint64_t grown = peak_bytes() - before, slots = (uint64_t)facts.slots * facts.slot_bytes;
    uint64_t promise = slots + facts.index_bytes + (uint64_t)facts.workers * facts.extent_max + (64u << 20);
    fprintf(stderr, "peak memory grew by %.1f MB; slots %.1f + index %.1f + 4 x %.3f + 67.1 = %.1f MB\n",
            (double)grown / 1e6, (double)slots / 1e6, (double)facts.index_bytes / 1e6, (double)facts.extent_max / 1e6,
            (double)promise / 1e6);
    weir_loader_close(&loader);
    _exit(grown <= promise && grown >= slots / 2 ? 0 : 1);
}

Test(loader, memory_stays_within_slots_index_and_pieces)
{
#if defined(__SANITIZE_ADDRESS__)
    fprintf(stderr, "skipped: AddressSanitizer's own memory would be measured\n");
    return;
#endif
    static const char *const formats[] = {"act", "act-jpeg", "astrobench"};
    for (int i = 0; i < 3; i++) {
        const char *data = fixture_synth(formats[i], formats[i], 3, 8, 640, 480, "top");
        for (int dtype = 0; dtype < 2; dtype++) {
            int status = -1;
            pid_t child = fork();
            if (child == 0)
                measure_child(data, "pread", (enum weir_dtype)dtype);
            waitpid(child, &status, 0);
            cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s, dtype %d: status %x", formats[i], dtype,
                      (unsigned)status);
        }
    }
}

/* ---- recording ---- */

enum { HELD_MS = 200 };

/* Holds the lock on names and call stacks, so that threads that record one must wait. */
static void *hold_stacks(void *held)
{
    weir_names_fork(WEIR_FORK_PREPARE);
    pthread_barrier_wait(held);
    sleep_ms(HELD_MS);
    weir_names_fork(WEIR_FORK_PARENT);
    return NULL;
}

static uint64_t wait_while_stacks_are_held(struct weir_loader *loader)
{
    pthread_t thread;
    pthread_barrier_t held;
    struct weir_batch *batch;
    sleep_ms(100); /* until batches are ready and the workers are idle */
    pthread_barrier_init(&held, NULL, 2);
    cr_assert_eq(pthread_create(&thread, NULL, hold_stacks, &held), 0);
    pthread_barrier_wait(&held);
    cr_assert_eq(weir_loader_next(loader, &batch, NULL), 1);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&held);
    uint64_t wait_ns = batch->wait_ns;
    weir_loader_release(loader, batch);
    return wait_ns;
}

/* A trace's wait for data excludes the time to record it, so the loader's own figure must exclude it too. The smallest
 * of several attempts counts, since other work on the machine can cause equally long waits. */
Test(loader, the_wait_for_data_is_without_what_recording_it_takes)
{
    struct weir_loader_config config = config_for(fixture_synth("d", "act-jpeg", 3, 20, 64, 48, "a"));
    struct weir_profiler_config recording;
    struct weir_profiler *profiler;
    struct weir_err err = WEIR_ERR_NONE;
    weir_profiler_config_default(&recording);
    recording.with_stack = true;
    struct weir_loader *loader = fixture_loader(&config);
    cr_assert_eq(weir_profiler_open(&profiler, &recording, &err), 0, "%s", err.text);
    cr_assert_eq(weir_profiler_start(profiler, &err), 0, "%s", err.text);
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < 50 && least_ns >= HELD_MS * 500000; i++) {
        uint64_t wait_ns = wait_while_stacks_are_held(loader);
        least_ns = wait_ns < least_ns ? wait_ns : least_ns;
    }
    cr_assert_lt(least_ns, HELD_MS * 500000, "%d us", (int)(least_ns / 1000));
    weir_profiler_stop(profiler);
    weir_profiler_close(&profiler);
    weir_loader_close(&loader);
}
