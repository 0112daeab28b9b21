/* The verdict of a watched loader: each cause first for the figures that it leaves, the predicted gains, and bad
 * figures. */
#include "analyze/watch/watch_verdict.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 4, BATCHES = 1000 };

static struct weir_watch_figures *figures;
static struct weir_loader_report *report;
static struct weir_watch_verdict verdict;

static void row(const char *name, enum weir_stage_kind kind, enum weir_report_side side, double total_s, double self_s,
                double cpu_s)
{
    struct weir_report_row *to = &report->prof.rows[report->prof.n_rows++];
    *to = (struct weir_report_row){.kind = kind, .side = side, .count = BATCHES, .total_s = total_s, .self_s = self_s};
    snprintf(to->name, sizeof to->name, "%s", name);
    to->cpu_s = cpu_s;
}

static void stage(const char *name, double self_s, double cpu_s)
{
    row(name, WEIR_KIND_WORK, WEIR_SIDE_WORKER, self_s, self_s, cpu_s);
}

/* Four workers on four cores, busy all the time for 80 ms per batch. The step takes 10 ms of the 20 ms between
 * batches. */
static void begin(void)
{
    figures = calloc(1, sizeof *figures);
    report = calloc(1, sizeof *report);
    report->prof.workers = calloc(1, sizeof *report->prof.workers);
    report->prof.machine = (struct weir_report_machine){.used = true, .cores = 4, .online = 4};
    report->wall_s = 20;
    snprintf(report->prof.consumer.name, sizeof report->prof.consumer.name, "loop");
    report->prof.consumer.wall_s = 20;
    report->prof.consumer.cpu_s = 0.2;
    struct weir_watch_settings *s = &figures->settings;
    *s = (struct weir_watch_settings){.num_workers = WORKERS,
                                      .prefetch_factor = 2,
                                      .persistent_workers = 1,
                                      .in_order = 1,
                                      .torch_threads = 1,
                                      .cv2_threads = -1};
    figures->known = true;
    figures->batches = figures->requests = BATCHES;
    figures->items = 8 * BATCHES;
    figures->loop_s = 20;
    figures->wait_s = figures->wait_none_s = 10;
    figures->ready_known = BATCHES;
    figures->n_workers = WORKERS;
    for (int i = 0; i < WORKERS; i++)
        figures->workers[i] = (struct weir_watch_worker){
            .worker = i, .wall_s = 20, .busy_s = 20, .batches = 250, .batch_s = 0.08, .spread = 0.05, .cpu_s = 20};
    row("00_TOTAL_batch", WEIR_KIND_INCLUSIVE, WEIR_SIDE_WORKER, 80, 0, 0);
    row("20_step", WEIR_KIND_WORK, WEIR_SIDE_CONSUMER, 10, 10, 0.2);
}

static void end(void)
{
    free(report->prof.workers);
    free(report);
    free(figures);
}

TestSuite(watch_verdict, .init = begin, .fini = end);

static void make(void)
{
    weir_watch_verdict_make(&verdict, figures, report);
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    weir_watch_verdict_print(out, &verdict, figures);
    fclose(out);
    cr_assert_gt(size, 10);
    free(text);
}

static void expect_first(enum weir_cause cause)
{
    make();
    cr_assert_gt(verdict.found.n_causes, 0);
    cr_expect_str_eq(weir_cause_name(WEIR_SUBJECT_JOB, verdict.found.causes[0].cause),
                     weir_cause_name(WEIR_SUBJECT_JOB, cause), "%s", verdict.found.causes[0].text);
}

static const struct weir_advice *advice(enum weir_advice_kind kind)
{
    for (int i = 0; i < verdict.found.n_advices; i++)
        if (verdict.found.advices[i].kind == kind)
            return &verdict.found.advices[i];
    return NULL;
}

/* The workers spend these fractions of their busy time on a core, waiting for one, and asleep. */
static void spend(double on_core, double core_wait, double storage, double lock, double sleep)
{
    for (int i = 0; i < figures->n_workers; i++) {
        struct weir_watch_worker *w = &figures->workers[i];
        w->cpu_s = on_core * w->busy_s;
        w->delay_s = core_wait * w->busy_s;
        w->shares = (struct weir_watch_shares){.seconds = 10, .storage = storage, .lock = lock, .sleep = sleep};
    }
}

Test(watch_verdict, stages_of_busy_workers)
{
    static const struct {
        const char *stage;
        enum weir_cause cause;
    } cases[] = {{"03b_image_decode", WEIR_CAUSE_DECODE},
                 {"03j_video_decode", WEIR_CAUSE_DECODE},
                 {"05_transform Resize", WEIR_CAUSE_TRANSFORM},
                 {"06_collate", WEIR_CAUSE_COLLATE},
                 {"01_getitem", WEIR_CAUSE_OWN_CODE},
                 {"my_stage", WEIR_CAUSE_OWN_CODE},
                 {"03_read", WEIR_CAUSE_READ_CPU}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        report->prof.n_rows = 2;
        stage(cases[i].stage, 60, 60);
        stage("06_collate", i == 3 ? 0 : 8, 8);
        expect_first(cases[i].cause);
        cr_expect_eq(verdict.found.bound, WEIR_BOUND_STRONGLY);
        cr_expect_lt(fabs(verdict.found.wait - 0.5), 1e-9);
        cr_expect_lt(fabs(verdict.found.causes[0].share - 0.75), 0.01);
        /* Half of 60 of 80 ms: 50 instead of 80 ms per batch, so 1.6 times the rate. */
        cr_expect_lt(fabs(verdict.found.causes[0].gain - 1.6), 0.06, "%g", verdict.found.causes[0].gain);
    }
    cr_expect_lt(fabs(verdict.most - 2), 1e-9);
}

Test(watch_verdict, few_workers_precede_what_they_do)
{
    stage("03b_image_decode", 60, 60);
    report->prof.machine.cores = report->prof.machine.online = 16;
    expect_first(WEIR_CAUSE_TOO_FEW_WORKERS);
    cr_expect_eq(verdict.found.causes[1].cause, WEIR_CAUSE_DECODE);
    const struct weir_advice *more = advice(WEIR_ADVICE_MORE_WORKERS);
    cr_assert_not_null(more);
    cr_expect_str_eq(more->setting, "num_workers=8", "twice the rate is all that the step takes");
    cr_expect_lt(fabs(more->ratio - 2), 0.07, "%g", more->ratio);
    cr_expect_str_eq(verdict.found.advices[0].setting, "num_workers=8");
}

Test(watch_verdict, no_workers_take_turns_with_the_step)
{
    figures->settings.num_workers = figures->n_workers = 0;
    expect_first(WEIR_CAUSE_TOO_FEW_WORKERS);
    cr_assert_not_null(advice(WEIR_ADVICE_MORE_WORKERS));
    cr_expect_gt(advice(WEIR_ADVICE_MORE_WORKERS)->ratio, 1.5);
}

Test(watch_verdict, sleeping_workers)
{
    stage("03_read", 60, 10);
    spend(0.3, 0, 0.6, 0, 0);
    expect_first(WEIR_CAUSE_STORAGE);
    spend(0.3, 0, 0, 0, 0); /* not sampled as storage: a network file system that the kernel does not name */
    expect_first(WEIR_CAUSE_STORAGE);
    spend(0.25, 0, 0, 0.7, 0);
    expect_first(WEIR_CAUSE_LOCK);
    cr_expect_gt(verdict.found.causes[0].gain, 1.5);
    cr_expect_eq(verdict.found.advices[0].kind, WEIR_ADVICE_OPEN_PER_WORKER);
    cr_expect_null(advice(WEIR_ADVICE_MORE_WORKERS), "more workers would wait for the lock too");
}

/* As seen on two cores, where reading without the lock was 1.40 times as fast. */
Test(watch_verdict, a_lock_beside_idle_cores)
{
    report->prof.machine.cores = report->prof.machine.online = 2;
    report->cpu_s = 1.34 * report->wall_s;
    figures->wait_s = figures->wait_none_s = 13.4;
    stage("01_getitem", 60, 15);
    spend(0.27, 0.2, 0, 0.5, 0);
    expect_first(WEIR_CAUSE_LOCK);
    cr_expect_lt(fabs(verdict.found.causes[0].gain - 2 / 1.34), 0.001, "%g", verdict.found.causes[0].gain);
    report->cpu_s = 2 * report->wall_s; /* the cores are the limit */
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_LOCK);
}

Test(watch_verdict, who_takes_the_cores)
{
    stage("03b_image_decode", 70, 35);
    spend(0.5, 0.5, 0, 0, 0);
    report->prof.machine.others_cores = 2;
    expect_first(WEIR_CAUSE_NEIGHBOURS);
    spend(0.88, 0.12, 0, 0, 0); /* the thresholds of a run's verdict: both 10 % */
    report->prof.machine.others_cores = 0.12 * report->prof.machine.cores;
    expect_first(WEIR_CAUSE_NEIGHBOURS);
    spend(0.5, 0.5, 0, 0, 0);
    report->prof.machine.others_cores = 0;
    report->prof.machine.quota_cores = 2;
    report->prof.machine.throttling = true;
    report->prof.machine.periods = 200;
    report->prof.machine.throttled = 150;
    report->prof.machine.throttled_s = 30;
    expect_first(WEIR_CAUSE_QUOTA);
    report->prof.machine.throttling = false;
    report->prof.machine.quota_cores = 0;
    figures->settings.cv2_threads = 4;
    expect_first(WEIR_CAUSE_TOO_MANY_THREADS);
    cr_expect_str_eq(verdict.found.advices[0].setting, "cv2.setNumThreads(0), torch.set_num_threads(1)");
    figures->settings.cv2_threads = -1;
    figures->others_in_worker = 0.8;
    figures->n_threads = 10;
    expect_first(WEIR_CAUSE_TOO_MANY_THREADS);
    figures->others_in_worker = 0;
    figures->n_threads = 2;
    expect_first(WEIR_CAUSE_DECODE);
}

Test(watch_verdict, a_worker_waits_for_its_own_threads)
{
    stage("03j_video_decode", 78, 5);
    spend(0.06, 0.14, 0, 0.8, 0);
    figures->others_in_worker = 18;
    figures->n_threads = 6;
    expect_first(WEIR_CAUSE_DECODE);
    for (int i = 0; i < verdict.found.n_causes; i++)
        cr_expect(verdict.found.causes[i].cause != WEIR_CAUSE_LOCK &&
                  verdict.found.causes[i].cause != WEIR_CAUSE_TOO_MANY_THREADS);
    figures->others_in_worker = 0; /* now it is another worker that it waits for */
    expect_first(WEIR_CAUSE_LOCK);
}

Test(watch_verdict, the_thread_that_pickles_is_not_one_too_many)
{
    stage("06_collate", 4, 4);
    row("06b_pickle", WEIR_KIND_WORK, WEIR_SIDE_WORKER, 40, 40, 40);
    spend(0.8, 0.2, 0, 0, 0);
    figures->others_in_worker = 0.6;
    figures->n_threads = 3;
    expect_first(WEIR_CAUSE_COLLATE);
    for (int i = 0; i < verdict.found.n_causes; i++)
        cr_expect_neq(verdict.found.causes[i].cause, WEIR_CAUSE_TOO_MANY_THREADS);
}

Test(watch_verdict, one_slow_worker)
{
    stage("05_transform", 60, 60);
    figures->workers[2].batch_s = 0.08;
    for (int i = 0; i < WORKERS; i++) {
        struct weir_watch_worker *w = &figures->workers[i];
        w->batch_s = i == 2 ? 0.08 : 0.02;
        w->busy_s = w->batches * w->batch_s;
        w->wait_s = w->wall_s - w->busy_s;
        w->cpu_s = w->busy_s;
    }
    figures->workers[2].asked_of_s = figures->wait_order_s = 9;
    figures->wait_none_s = 1;
    expect_first(WEIR_CAUSE_SLOW_WORKER);
    cr_expect_str_eq(verdict.found.causes[0].who, "worker 2");
    cr_expect_gt(verdict.found.causes[0].gain, 1.7, "%g", verdict.found.causes[0].gain);
    figures->workers[2].delay_s = 15; /* of 20 s: others take its core */
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_SLOW_WORKER);
    figures->workers[2].delay_s = 0;
    figures->workers[2].spread = 40; /* one batch of 20 s is no slow worker */
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_SLOW_WORKER);
}

Test(watch_verdict, one_slow_file)
{
    stage("03_read", 60, 60);
    figures->n_files = 2;
    figures->files_seen = 200;
    figures->slow_files[0] = (struct weir_watch_slow_file){"/data/slow.hdf5", 400, 0.1, 0.2};
    figures->slow_files[1] = (struct weir_watch_slow_file){"/data/other.hdf5", 400, 0.006, 0.01};
    figures->paths = 8000;
    figures->paths_s = 75;
    expect_first(WEIR_CAUSE_SLOW_FILE);
    cr_expect_str_eq(verdict.found.causes[0].who, "/data/slow.hdf5");
    figures->slow_files[1] = figures->slow_files[0];
    figures->slow_files[0] = (struct weir_watch_slow_file){"/data/once.hdf5", 2, 0.5, 0.99};
    expect_first(WEIR_CAUSE_SLOW_FILE);
    cr_expect_str_eq(verdict.found.causes[0].who, "/data/slow.hdf5", "not the file of which one item was slow");
    figures->slow_files[1].max_s = 39; /* of 40 s */
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_SLOW_FILE);
    figures->slow_files[1].max_s = 0.2;
    figures->slow_files[1].count = 20; /* 2 of 75 s */
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_SLOW_FILE);
}

Test(watch_verdict, uneven_batches)
{
    for (int i = 0; i < WORKERS; i++) {
        figures->workers[i].busy_s = 10;
        figures->workers[i].wait_s = 10;
        figures->workers[i].batch_s = 0.04;
        figures->workers[i].spread = 1.2;
        figures->workers[i].cpu_s = 10;
    }
    figures->wait_order_s = 8;
    figures->wait_none_s = 2;
    expect_first(WEIR_CAUSE_IMBALANCE);
    cr_expect_str_eq(verdict.found.advices[0].setting, "in_order=False");
    figures->settings.in_order = 0;
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_IMBALANCE);
}

Test(watch_verdict, uneven_shares_of_an_iterable_dataset)
{
    figures->settings.iterable = 1;
    for (int i = 0; i < WORKERS; i++) {
        struct weir_watch_worker *w = &figures->workers[i];
        w->batches = i == 1 ? 700 : 100;
        w->busy_s = w->cpu_s = i == 1 ? 19 : 3;
        w->wait_s = 20 - w->busy_s;
        w->batch_s = w->busy_s / w->batches;
    }
    expect_first(WEIR_CAUSE_IMBALANCE);
    cr_expect_str_eq(verdict.found.causes[0].who, "worker 1");
    cr_expect_gt(verdict.found.causes[0].gain, 1.3, "%g", verdict.found.causes[0].gain);
    cr_expect_eq(verdict.found.advices[0].kind, WEIR_ADVICE_EVEN_SHARES);
    figures->settings.iterable = 0; /* the sampler divides the batches */
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_IMBALANCE);
    figures->settings.iterable = 1;
    for (int i = 0; i < WORKERS; i++)
        figures->workers[i].batches = 250;
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_IMBALANCE, "a slow worker");
    for (int i = 0; i < WORKERS; i++)
        figures->workers[i].wait_s = 20;
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_IMBALANCE, "none is busy");
}

/* Adds a stage that is called n times. */
static void stage_of(const char *name, double self_s, int n)
{
    stage(name, self_s, self_s);
    report->prof.rows[report->prof.n_rows - 1].count = (uint64_t)n;
}

Test(watch_verdict, a_file_opened_for_each_item)
{
    stage_of("02_open", 40, 8 * BATCHES);
    stage_of("03_read", 20, 16 * BATCHES);
    expect_first(WEIR_CAUSE_READ_CPU);
    cr_expect_eq(verdict.found.advices[0].kind, WEIR_ADVICE_KEEP_OPEN);
    cr_expect_gt(verdict.found.advices[0].ratio, 1.7, "%g", verdict.found.advices[0].ratio);
    cr_assert_not_null(advice(WEIR_ADVICE_CHEAPER_READ));
    report->prof.rows[2].count = WORKERS; /* once per worker */
    make();
    cr_expect_null(advice(WEIR_ADVICE_KEEP_OPEN));
}

Test(watch_verdict, a_file_opened_before_the_workers)
{
    figures->settings.hdf5_opened = 1;
    stage("03b_image_decode", 60, 60);
    make();
    cr_expect_eq(verdict.found.advices[0].kind, WEIR_ADVICE_OPEN_PER_WORKER);
    cr_assert_not_null(advice(WEIR_ADVICE_CHEAPER_DECODE));
    figures->batches = 3; /* data can be wrong from the first batch on */
    make();
    cr_expect_eq(verdict.found.n_advices, 1);
}

Test(watch_verdict, own_code_names_what_is_not_timed)
{
    stage("01_getitem", 60, 60);
    figures->n_unseen = 1;
    snprintf(figures->unseen[0].what, sizeof figures->unseen[0].what, "PyAV's decoding");
    expect_first(WEIR_CAUSE_OWN_CODE);
    cr_expect(strstr(verdict.found.causes[0].text, ", or PyAV's decoding, takes 75 %"), "%s",
              verdict.found.causes[0].text);
}

static void idle_workers(void)
{
    for (int i = 0; i < WORKERS; i++) {
        figures->workers[i].busy_s = 2;
        figures->workers[i].wait_s = 18;
        figures->workers[i].batch_s = 0.008;
        figures->workers[i].cpu_s = 2;
    }
}

Test(watch_verdict, start_up_of_every_epoch)
{
    idle_workers();
    figures->settings.persistent_workers = 0;
    figures->epochs = figures->first_waits = figures->startups = 10;
    figures->startup_s = 4;
    figures->first_wait_s = 6;
    figures->wait_s = figures->wait_none_s = 6.2;
    figures->run_first_s = 0.6;
    expect_first(WEIR_CAUSE_START_UP);
    cr_expect_str_eq(verdict.found.advices[0].setting, "persistent_workers=True");
    /* Of 23.4 s 5.4 for first batches, and nine tenths of 4 for creating workers. */
    cr_expect_lt(fabs(verdict.found.causes[0].gain - 23.4 / 14.4), 0.001, "%g", verdict.found.causes[0].gain);
    figures->settings.persistent_workers = 1;
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_START_UP);
}

Test(watch_verdict, the_main_process)
{
    idle_workers();
    figures->wait_due_s = 9;
    figures->wait_none_s = 1;
    expect_first(WEIR_CAUSE_GIL);
    figures->wait_due_s = 0;
    figures->wait_s = 0.2;
    figures->loop_shares = (struct weir_watch_shares){.seconds = 10, .lock = 0.4};
    expect_first(WEIR_CAUSE_GIL);
    figures->settings.cuda = 1; /* backward() waits on a lock */
    expect_first(WEIR_CAUSE_CONSUMER);
    figures->settings.cuda = 0;
    figures->settings.world_size = 2; /* a collective waits on a lock */
    expect_first(WEIR_CAUSE_CONSUMER);
    figures->settings.world_size = 1;
    figures->settings.pin_memory = 1; /* waiting for the pin thread is a lock too */
    figures->wait_s = 8;
    make();
    cr_expect_neq(verdict.found.causes[0].cause, WEIR_CAUSE_GIL);
}

/* A slow step on a machine that others use: the loop waits for its core, not for data. */
Test(watch_verdict, a_slow_step_beside_other_programs)
{
    idle_workers();
    spend(0.4, 0.6, 0, 0, 0);
    report->prof.machine.others_cores = 3;
    report->prof.consumer.core_wait_s = 1.4;
    figures->wait_s = figures->wait_due_s = 1.4;
    expect_first(WEIR_CAUSE_CONSUMER);
    cr_expect_eq(verdict.found.bound, WEIR_BOUND_PARTLY);
}

Test(watch_verdict, copies_to_the_gpu)
{
    idle_workers();
    figures->wait_s = 0.2;
    row("07_h2d_copy", WEIR_KIND_WORK, WEIR_SIDE_CONSUMER, 8, 8, 1);
    expect_first(WEIR_CAUSE_PIN_OFF);
    cr_expect_str_eq(verdict.found.advices[0].setting, "pin_memory=True");
    figures->settings.pin_memory = 1;
    expect_first(WEIR_CAUSE_TRANSFER);
}

Test(watch_verdict, not_data_bound_or_unknown)
{
    figures->wait_s = 0.2;
    expect_first(WEIR_CAUSE_CONSUMER);
    cr_expect_eq(verdict.found.bound, WEIR_BOUND_NO);
    cr_expect_null(advice(WEIR_ADVICE_MORE_WORKERS));
    figures->wait_s = 10;
    idle_workers();
    expect_first(WEIR_CAUSE_CANNOT_TELL);
    cr_expect_not_null(advice(WEIR_ADVICE_TRACE));
    figures->settings.any_iterable = 1;
    expect_first(WEIR_CAUSE_CANNOT_TELL);
    cr_expect_not_null(advice(WEIR_ADVICE_TIME_PARTS));
    cr_expect_null(advice(WEIR_ADVICE_TRACE));
    figures->batches = 3;
    expect_first(WEIR_CAUSE_CANNOT_TELL);
    cr_expect_eq(verdict.found.bound, WEIR_BOUND_UNKNOWN);
    cr_expect_eq(verdict.found.n_advices, 0);
}

Test(watch_verdict, a_run_that_replays_one_batch_has_its_rate_alone)
{
    figures->settings.headroom = WEIR_WATCH_REPLAYS;
    figures->window_batches = 100;
    figures->window_s = 2;
    figures->window_sd_s = 0.002;
    figures->rest_batches = 10; /* the first batch of each epoch */
    figures->rest_s = 5;
    make();
    cr_expect_lt(fabs(verdict.replayed - 50), 1e-9, "%g", verdict.replayed);
    cr_expect_lt(fabs(verdict.replayed_error - 0.5), 1e-9, "%g", verdict.replayed_error);
    cr_expect_eq(verdict.headroom, 0);
    cr_expect_eq(verdict.found.n_causes, 0);
    figures->settings.headroom = 1;
    make();
    cr_expect_eq(verdict.replayed, 0);
    cr_expect_gt(verdict.headroom, 0);
}

Test(watch_verdict, a_measured_headroom_limits_gains)
{
    stage("03b_image_decode", 76, 76);
    figures->windows = 3;
    figures->window_batches = 30;
    figures->window_s = 30 * 0.016;
    figures->window_sd_s = 0.001;
    figures->rest_batches = 900;
    figures->rest_s = 900 * 0.02;
    figures->rest_sd_s = 0.002;
    make();
    cr_expect_lt(fabs(verdict.headroom - 1.25), 1e-6);
    cr_expect_lt(fabs(verdict.headroom_error - 0.0146), 0.001, "%g", verdict.headroom_error);
    for (int i = 0; i < verdict.found.n_causes; i++)
        cr_expect_leq(verdict.found.causes[i].gain, 1.2501);
}

/* Figures of a log that somebody edited. */
Test(watch_verdict, nonsense_is_survived)
{
    static const double values[] = {0, -1, 1e15, -1e15, 1e-300};
    uint32_t seed = 1;
    for (int round = 0; round < 300; round++) {
        double *numbers = (double *)&figures->settings.num_workers;
        for (size_t i = 0; i < 14; i++)
            numbers[i] = values[(seed = seed * 1664525u + 1013904223u) >> 16 & 3];
        numbers = &figures->requests;
        for (size_t i = 0; i < 30; i++)
            numbers[i] = values[(seed = seed * 1664525u + 1013904223u) >> 16 & 3];
        figures->n_workers = (int)(seed >> 20 & 127);
        for (int w = 0; w < figures->n_workers; w++) {
            numbers = &figures->workers[w].worker;
            for (size_t i = 0; i < sizeof figures->workers[w] / sizeof *numbers; i++)
                numbers[i] = values[(seed = seed * 1664525u + 1013904223u) >> 16 & 3];
        }
        figures->n_files = 1;
        report->prof.machine.cores = (int)(seed >> 8 & 1023) - 8;
        make();
    }
}

Test(watch_verdict, every_cause_and_advice_has_words)
{
    for (int i = 0; i < WEIR_CAUSES; i++) {
        const char *loader = weir_cause_name(WEIR_SUBJECT_LOADER, (enum weir_cause)i);
        const char *job = weir_cause_name(WEIR_SUBJECT_JOB, (enum weir_cause)i);
        const char *sentence = weir_cause_sentence((enum weir_cause)i);
        cr_assert(loader || job, "cause %d", i);
        cr_expect(!job || (sentence[0] >= 'a' && sentence[0] <= 'z'), "%s", job);
        cr_expect_eq(job != NULL, sentence != NULL, "cause %d", i);
        for (int k = 0; k < i; k++) {
            const char *other = weir_cause_name(WEIR_SUBJECT_JOB, (enum weir_cause)k);
            cr_expect(!job || !other || strcmp(job, other) != 0, "%s twice", job);
        }
    }
    for (int i = 0; i < WEIR_ADVICES; i++) {
        const struct weir_advice_words *loader = weir_advice_words(WEIR_SUBJECT_LOADER, (enum weir_advice_kind)i);
        const struct weir_advice_words *job = weir_advice_words(WEIR_SUBJECT_JOB, (enum weir_advice_kind)i);
        cr_assert(loader->name || job->name, "advice %d", i);
        cr_expect(!job->name || job->what, "%s", job->name);
    }
}
