/* weir.watch's shared segment: figures of threads and processes, killed writers, reused slots, the loop's requests, and
 * nonsense in the segment. */
#include "prof/watch/segment_priv.h"
#include "prof/watch/watch_read.h"
#include "prof/watch/zones_priv.h"
#include "weir/profiler.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct weir_watch *watch;
static struct weir_watch_reading *reading;
static struct weir_snapshot *snapshot;

static void begin(void)
{
    char why[256];
    watch = weir_watch_create(why, sizeof why);
    cr_assert_not_null(watch, "%s", why);
    cr_assert_eq(weir_watch_loader(watch, "train"), 0);
    reading = malloc(sizeof *reading);
}

static void end(void)
{
    weir_snapshot_free(&snapshot);
    free(reading);
    weir_watch_close(watch);
}

TestSuite(watch, .init = begin, .fini = end);

static void read_loader(int loader)
{
    weir_snapshot_free(&snapshot);
    cr_assert_eq(weir_watch_read(watch, loader, reading, &snapshot), 0);
}

/* Keeps the thread busy for at least this time. */
static void work(double ms)
{
    uint64_t until = weir_clock_monotonic_ns() + (uint64_t)(ms * 1e6);
    while (weir_clock_monotonic_ns() < until)
        ;
}

static void one_batch(int64_t batch, double decode_ms)
{
    weir_watch_batch_begin(batch);
    weir_watch_item_begin(10 * batch);
    weir_watch_path("/data/a.hdf5");
    weir_watch_begin(WEIR_WATCH_IMAGE_DECODE);
    work(decode_ms);
    weir_watch_end();
    weir_watch_item_end();
    weir_watch_batch_end(1);
}

static pid_t worker_child(int worker, int batches, bool killed)
{
    int pipes[2];
    cr_assert_eq(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (weir_watch_thread(watch, 0, WEIR_WATCH_WORKER, worker) != 0)
            _exit(2);
        for (int i = 0; i < batches; i++)
            one_batch(i, 1);
        weir_watch_batch_begin(batches); /* stays open */
        if (write(pipes[1], "x", 1) != 1)
            _exit(3);
        if (killed)
            pause();
        weir_watch_batch_end(0);
        _exit(0);
    }
    char done;
    cr_assert_eq(read(pipes[0], &done, 1), 1);
    if (killed)
        kill(pid, SIGKILL);
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(pipes[0]);
    close(pipes[1]);
    return pid;
}

Test(watch, a_killed_worker_loses_only_its_open_batch)
{
    worker_child(3, 5, true);
    read_loader(0);
    const struct weir_stage_stats *decode = &snapshot->stages[WEIR_WATCH_IMAGE_DECODE];
    cr_expect_eq(snapshot->n_threads, 1);
    cr_expect_str_eq(snapshot->threads[0].name, "worker 3");
    cr_expect_eq(decode->count, 5);
    cr_expect_geq(decode->self_ns, 5000000u);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_TOTAL_BATCH].count, 5);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_WAIT_WORK].count, 5, "the wait before the open batch has ended");
    cr_expect_eq(snapshot->stages[WEIR_WATCH_START_WORKER].count, 1);
    const struct weir_thread_figures *counts = &reading->counts.workers[3];
    cr_expect_eq(reading->n_workers, 4);
    cr_expect_eq(counts->batches, 5);
    cr_expect_geq(counts->busy_s, 0.005);
    cr_expect_gt(counts->cpu_s, 0);
    cr_expect_leq(counts->cpu_s, counts->wall_s);
    cr_expect_geq(counts->wall_s, counts->busy_s);
}

Test(watch, the_slot_of_an_ended_worker_is_continued)
{
    worker_child(0, 3, true);
    usleep(50000); /* time without a worker, which must not count */
    worker_child(0, 4, false);
    worker_child(1, 1, false);
    read_loader(0);
    cr_expect_eq(snapshot->n_threads, 2);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_TOTAL_BATCH].count, 3 + 4 + 1 + 2);
    const struct weir_thread_figures *counts = &reading->counts.workers[0];
    cr_expect_eq(snapshot->stages[WEIR_WATCH_START_WORKER].count, 3);
    double known_s = counts->busy_s + counts->wait_s + counts->start_s;
    cr_expect_lt(fabs(counts->wall_s - known_s), 1e-4, "%g s, of which %g s are known", counts->wall_s, known_s);
}

Test(watch, a_forked_child_starts_without_a_slot)
{
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1), 0);
    weir_watch_begin(WEIR_WATCH_READ);
    pid_t pid = fork();
    if (pid == 0) {
        weir_watch_begin(WEIR_WATCH_COLLATE); /* no effect */
        weir_watch_end();
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(weir_watch_thread(watch, 0, WEIR_WATCH_WORKER, 0) == 0 ? 0 : 1);
        int status;
        waitpid(grandchild, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    weir_watch_end();
    read_loader(0);
    cr_expect_eq(snapshot->others[WEIR_WATCH_READ].count, 1, "on the loop's thread, beside a worker");
    cr_expect_eq(snapshot->stages[WEIR_WATCH_COLLATE].count, 0);
    cr_expect_eq(snapshot->n_threads, 2);
}

Test(watch, another_process_maps_the_segment_by_its_file)
{
    char why[256];
    int fd = weir_watch_fd(watch), parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        struct weir_watch *other = weir_watch_open(parent, fd, why, sizeof why);
        if (!other || weir_watch_thread(other, 0, WEIR_WATCH_WORKER, 0) != 0)
            _exit(1);
        int stage = weir_watch_stage("augment", 0);
        weir_watch_begin(stage);
        weir_watch_end();
        weir_watch_unseen(other, "av.container.decode");
        weir_watch_unseen(other, "av.container.decode");
        weir_watch_close(other);
        _exit(stage >= 0 ? 0 : 2);
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1), 0);
    int stage = weir_watch_stage("augment", 0); /* the same number here */
    read_loader(0);
    cr_expect_eq(weir_watch_stage("05_transform", 0), WEIR_WATCH_TRANSFORM);
    cr_expect_geq(stage, WEIR_STAGE_TABLE_MAX);
    int found = 0;
    for (int s = 0; s < snapshot->n_stages; s++)
        if (weir_stage_info(s) && strcmp(weir_stage_info(s)->name, "augment") == 0)
            found += snapshot->stages[s].count == 1;
    cr_expect_eq(found, 1);
    cr_expect_eq(reading->slowest.n_unseen, 1);
    cr_expect_str_eq(reading->slowest.unseen[0].what, "av.container.decode");
    cr_expect_null(weir_watch_open(parent, 0, why, sizeof why), "not a segment");
    cr_expect(strncmp(why, "weir.watch: ", 12) == 0);
}

Test(watch, zones_nest_and_an_exception_closes_them)
{
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_WORKER, 0), 0);
    weir_watch_batch_begin(0);
    weir_watch_item_begin(7);
    weir_watch_begin(WEIR_WATCH_READ);
    work(4);
    weir_watch_end();
    work(2);
    weir_watch_begin(WEIR_WATCH_TRANSFORM); /* left open, as by an exception */
    weir_watch_batch_end(1);
    for (int i = 0; i < 100; i++) /* deeper than the stack */
        weir_watch_begin(WEIR_WATCH_COLLATE);
    for (int i = 0; i < 100; i++)
        weir_watch_end();
    weir_watch_end(); /* one too many */
    weir_watch_begin(-1);
    weir_watch_begin(WEIR_STAGE_MAX);
    weir_watch_end();
    read_loader(0);
    const struct weir_stage_stats *item = &snapshot->stages[WEIR_WATCH_GETITEM];
    cr_expect_eq(item->count, 1);
    cr_expect_geq(item->total_ns, 6000000u);
    cr_expect_leq(item->self_ns + snapshot->stages[WEIR_WATCH_READ].total_ns, item->total_ns);
    cr_expect_geq(item->self_ns, 2000000u);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_TRANSFORM].count, 1);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_COLLATE].count, WEIR_ZONES_DEEP);
    cr_expect_eq(snapshot->threads[0].too_deep, 100 - WEIR_ZONES_DEEP);
}

static void work_on_core(double ms)
{
    uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(ms * 1e6);
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
}

/* One batch in 8 is sampled, the first one of them. */
Test(watch, sampled_zones_have_their_own_cpu_time)
{
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_WORKER, 0), 0);
    for (int i = 0; i < 9; i++) {
        weir_watch_batch_begin(i);
        weir_watch_item_begin(i);
        weir_watch_begin(WEIR_WATCH_READ);
        usleep(20000);
        weir_watch_end();
        work_on_core(5);
        weir_watch_item_end();
        weir_watch_batch_end(1);
    }
    read_loader(0);
    const struct weir_stage_stats *item = &snapshot->stages[WEIR_WATCH_GETITEM];
    const struct weir_stage_stats *wait = &snapshot->stages[WEIR_WATCH_READ];
    cr_expect_eq(item->sampled, 2);
    cr_expect_eq(wait->sampled, 2);
    cr_expect_geq(item->sampled_cpu_ns, 9500000u, "not in proportion to wall time");
    cr_expect_lt(wait->sampled_cpu_ns, 5000000u);
}

/* Others may take the core from an item for as long as the slow ones take, so that they are found in the list, at any
 * place. */
Test(watch, slow_items_and_files_are_named)
{
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_WORKER, 2), 0);
    char path[300];
    for (int i = 0; i < 400; i++) {
        weir_watch_batch_begin(i);
        weir_watch_item_begin(i);
        memset(path, 'p', sizeof path);
        snprintf(path + 200, 100, "/episode_%03d.hdf5", i % 200);
        weir_watch_path(path);
        if (i % 200 == 150)
            work(40);
        weir_watch_item_end();
        weir_watch_batch_end(1);
    }
    read_loader(0);
    int found = 0, files = 0;
    for (int i = 0; i < reading->slowest.n_items; i++) {
        const struct weir_watch_item *item = &reading->slowest.items[i];
        cr_expect(i == 0 || item->s <= reading->slowest.items[i - 1].s);
        if (item->index != 150 && item->index != 350)
            continue;
        found++;
        cr_expect_eq(item->worker, 2);
        cr_expect_not_null(strstr(item->file, "/episode_150.hdf5"), "%s", item->file);
    }
    for (int i = 0; i < reading->slowest.n_files; i++) {
        const struct weir_watch_file *file = &reading->slowest.files[i];
        if (!strstr(file->name, "/episode_150.hdf5"))
            continue;
        files++;
        cr_expect_eq(file->count, 2);
        cr_expect_geq(file->mean_s, 0.04);
    }
    cr_expect_eq(found, 2);
    cr_expect_eq(files, 1);
    cr_expect_leq(reading->slowest.files_seen, WEIR_SLOT_PATHS);
    cr_expect_gt(reading->slowest.files_mean_s, 0);
}

/* A loop of requests: ready, due_ready, worker; the wait is 2 ms and the step 4 ms. */
static void request(int loader, int ready, int due_ready, int worker, int items)
{
    weir_watch_request_begin(loader, ready, due_ready, worker);
    work(2);
    weir_watch_request_end(loader, items);
    if (items <= 0)
        return;
    work(2);
    weir_watch_begin(WEIR_WATCH_H2D_COPY);
    work(2);
    weir_watch_end();
}

Test(watch, the_loop_counts_waits_by_reason)
{
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1), 0);
    weir_watch_set(watch, 0, "num_workers", 2);
    cr_expect_eq(weir_watch_set(watch, 0, "nonsense", 2), -1);
    cr_expect_eq(weir_watch_set_text(watch, 0, "start_method", "fork"), 0);
    weir_watch_epoch_begin(0);
    weir_watch_startup(0, 0.5);
    request(0, 0, 0, 0, 8);
    request(0, 0, 0, 1, 8);
    request(0, 2, 0, 1, 8);
    request(0, 3, 1, 0, 8);
    weir_watch_request_due(0, 0); /* no request is open */
    request(0, -1, -1, -1, 8);
    request(0, 0, 0, 0, 0);
    weir_watch_epoch_end(0, 1);
    read_loader(0);
    const struct weir_watch_counts *counts = &reading->counts;
    cr_expect_eq(counts->batches, 5);
    cr_expect_eq(counts->items, 40);
    cr_expect_eq(counts->requests, 5);
    cr_expect_eq(counts->waits[WEIR_WATCH_WAIT_NONE_READY], 2);
    cr_expect_eq(counts->waits[WEIR_WATCH_WAIT_OUT_OF_ORDER], 1);
    cr_expect_eq(counts->waits[WEIR_WATCH_WAIT_DUE_READY], 1);
    cr_expect_eq(counts->waits[WEIR_WATCH_WAIT_UNKNOWN], 1);
    cr_expect_geq(counts->workers[1].asked_of_s, 0.002);
    cr_expect_eq(counts->ready_known, 4, "neither the first request nor one that does not know");
    cr_expect_eq(counts->ready_sum, 5);
    cr_expect_eq(reading->ready_max, 3);
    cr_expect_geq(counts->wait_s, 6 * 0.002);
    cr_expect_geq(counts->loop_s, 5 * 0.006 + 0.002);
    cr_expect_geq(snapshot->stages[WEIR_WATCH_STEP].total_ns, 5 * 4000000u);
    cr_expect_lt(snapshot->stages[WEIR_WATCH_STEP].self_ns,
                 snapshot->stages[WEIR_WATCH_STEP].total_ns - snapshot->stages[WEIR_WATCH_H2D_COPY].total_ns + 1000);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_WAIT_DATA].count, 6);
    cr_assert_eq(reading->n_epochs, 1);
    cr_expect_eq(reading->epochs[0].batches, 5);
    cr_expect(reading->epochs[0].complete);
    cr_expect_lt(fabs(reading->epochs[0].startup_s - 0.5), 1e-6);
    cr_expect_eq(reading->settings.num_workers, 2);
    cr_expect_eq(reading->settings.prefetch_factor, -1, "unknown");
    cr_expect_str_eq(reading->settings.start_method, "fork");
}

/* The program's own stages around its requests and its step. */
Test(watch, the_program_times_its_requests_too)
{
    enum { BATCHES = 200 };
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1), 0);
    int wait = weir_watch_stage("08_wait_for_data", 2), next = weir_watch_stage("next", 0);
    int forward = weir_watch_stage("20_train_forward_pass", 0);
    cr_assert_eq(wait, WEIR_WATCH_WAIT_DATA);
    weir_watch_epoch_begin(0);
    for (int i = 0; i < BATCHES; i++) {
        weir_watch_begin(i % 2 ? wait : next);
        weir_watch_request_begin(0, 1, 1, 0);
        weir_watch_request_end(0, 1);
        weir_watch_end();
        weir_watch_begin(forward);
        weir_watch_end();
    }
    weir_watch_request_begin(0, 0, 0, 0);
    weir_watch_request_end(0, 0);
    weir_watch_epoch_end(0, 1);
    read_loader(0);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_STEP].count, BATCHES);
    cr_expect_eq(snapshot->stages[next].count, BATCHES / 2);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_WAIT_DATA].count, BATCHES + 1, "one row, once per request");
    cr_expect_eq(snapshot->stages[forward].count, BATCHES);
    for (int i = 0; i < snapshot->n_threads; i++)
        cr_expect_eq(snapshot->threads[i].too_deep, 0);
}

Test(watch, the_reason_of_a_wait_can_follow_during_the_request)
{
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1), 0);
    weir_watch_epoch_begin(0);
    for (int i = 0; i < 3; i++) {
        weir_watch_request_begin(0, 2, -1, 1);
        weir_watch_request_due(0, i - 1);
        weir_watch_request_end(0, 1);
    }
    weir_watch_request_begin(0, -1, -1, -1);
    weir_watch_request_end(0, 0);
    read_loader(0);
    cr_expect_eq(reading->counts.waits[WEIR_WATCH_WAIT_UNKNOWN], 1);
    cr_expect_eq(reading->counts.waits[WEIR_WATCH_WAIT_OUT_OF_ORDER], 1);
    cr_expect_eq(reading->counts.waits[WEIR_WATCH_WAIT_DUE_READY], 1);
}

Test(watch, a_loop_in_the_step_of_another_has_figures_of_its_own)
{
    cr_assert_eq(weir_watch_loader(watch, "validation"), 1);
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1), 0);
    weir_watch_epoch_begin(0);
    request(0, -1, -1, -1, 1);
    weir_watch_epoch_begin(1);
    request(1, -1, -1, -1, 1);
    request(1, -1, -1, -1, 0);
    weir_watch_epoch_end(1, 1);
    request(0, -1, -1, -1, 1);
    weir_watch_epoch_end(0, 0);
    read_loader(1);
    cr_expect_eq(snapshot->n_threads, 1);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_STEP].count, 1);
    read_loader(0);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_STEP].count, 1, "the last step did not end");
    cr_expect_geq(snapshot->stages[WEIR_WATCH_STEP].total_ns, 12000000u);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_WAIT_DATA].count, 2);
    put(&watch->segment->loader[0].wait_ticks, 5);
    put(&watch->segment->loader[1].wait_ticks, 6);
    cr_expect_eq(weir_watch_slowest_loader(watch), 1);
}

Test(watch, headroom_windows_are_apart)
{
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1), 0);
    weir_watch_set(watch, 0, "num_workers", 1);
    weir_watch_set(watch, 0, "prefetch_factor", 2);
    weir_watch_epoch_begin(0);
    for (int i = 0; i < 4; i++)
        request(0, 0, 0, 0, 1);
    weir_watch_headroom(0, 2);
    request(0, 0, 0, 0, 1);
    weir_watch_headroom(0, 1);
    for (int i = 0; i < 3; i++) {
        weir_watch_request_begin(0, 3, 1, 0);
        weir_watch_request_end(0, 1);
        work(4);
    }
    weir_watch_headroom(0, 0);
    for (int i = 0; i < 4; i++)
        request(0, 0, 0, 0, 1);
    request(0, 0, 0, 0, 0);
    read_loader(0);
    const struct weir_watch_counts *counts = &reading->counts;
    cr_expect_eq(counts->windows, 1);
    cr_expect_eq(counts->window_batches, 3);
    cr_expect_eq(counts->rest_batches, 3 + 2, "neither the first of the epoch nor those while the workers were ahead");
    cr_expect_geq(counts->window_s, 3 * 0.004);
    cr_expect_geq(counts->rest_s, 5 * 0.006);
    cr_expect_geq(counts->held_s, 0.006);
    cr_expect_eq(counts->batches, 4 + 2);
}

Test(watch, without_workers_the_loop_does_their_work)
{
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1), 0);
    weir_watch_set(watch, 0, "num_workers", 0);
    weir_watch_epoch_begin(0);
    for (int i = 0; i < 3; i++) {
        weir_watch_request_begin(0, -1, -1, -1);
        one_batch(i, 1);
        weir_watch_request_end(0, 1);
        work(1);
    }
    read_loader(0);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_IMAGE_DECODE].count, 3);
    cr_expect_eq(snapshot->others[WEIR_WATCH_IMAGE_DECODE].count, 0);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_WAIT_WORK].count, 0);
    struct weir_report report = {0};
    cr_assert_eq(weir_report_from_snapshot(&report, snapshot), 0);
    cr_expect_eq(report.n_workers, 1);
    weir_report_free(&report);
}

/* Without workers, a dataset that iterates another watched loader for each of its items. */
Test(watch, the_items_of_a_loader_that_iterates_another_one_are_its_own)
{
    cr_assert_eq(weir_watch_loader(watch, "inner"), 1);
    cr_assert_eq(weir_watch_thread(watch, 0, WEIR_WATCH_LOOP, -1), 0);
    weir_watch_epoch_begin(0);
    weir_watch_request_begin(0, -1, -1, -1);
    weir_watch_batch_begin(0);
    for (int i = 0; i < 4; i++) {
        weir_watch_item_begin(100 + i);
        weir_watch_epoch_begin(1);
        for (int k = 0; k < 2; k++) {
            weir_watch_request_begin(1, -1, -1, -1);
            one_batch(k, 0);
            weir_watch_request_end(1, 1);
        }
        weir_watch_request_begin(1, -1, -1, -1);
        weir_watch_request_end(1, 0);
        if (i > 0) /* else the loop holds the iterator */
            weir_watch_epoch_end(1, 1);
        weir_watch_path("/data/outer.hdf5");
        weir_watch_begin(WEIR_WATCH_TRANSFORM);
        weir_watch_end();
        weir_watch_item_end();
    }
    weir_watch_batch_end(4);
    weir_watch_request_end(0, 4);
    read_loader(0);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_GETITEM].count, 4);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_TRANSFORM].count, 3);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_IMAGE_DECODE].count, 0);
    cr_expect_eq(reading->slowest.n_items, 4);
    for (int i = 0; i < reading->slowest.n_items; i++)
        cr_expect(reading->slowest.items[i].index >= 100 && reading->slowest.items[i].index < 104);
    cr_expect_eq(reading->slowest.n_files, 1);
    read_loader(1);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_GETITEM].count, 8);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_IMAGE_DECODE].count, 8);
    cr_expect_eq(snapshot->stages[WEIR_WATCH_TRANSFORM].count, 1);
    cr_expect_eq(reading->slowest.n_files, 1);
}

static void *thread_main(void *unused)
{
    (void)unused;
    if (weir_watch_thread(watch, 0, WEIR_WATCH_FEEDER, 5) == 0) {
        weir_watch_begin(WEIR_WATCH_PICKLE);
        weir_watch_end();
    }
    return NULL; /* the slot is given back */
}

Test(watch, an_ended_thread_gives_its_slot_back)
{
    for (int i = 0; i < 3000; i++) {
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, thread_main, NULL), 0);
        pthread_join(thread, NULL);
    }
    read_loader(0);
    cr_expect_eq(snapshot->n_threads, 1);
    cr_expect_eq(snapshot->others[WEIR_WATCH_PICKLE].count, 3000);
    cr_expect_str_eq(snapshot->threads[0].name, "feeder 5");
}

/* Programs close numbers of files that they have not opened, as daemons do. */
Test(watch, files_of_the_program_with_the_numbers_of_closed_ones_stay_open)
{
    char why[256];
    struct weir_watch *other = weir_watch_create(why, sizeof why);
    cr_assert_eq(weir_watch_loader(other, "train"), 0);
    cr_assert_eq(weir_watch_thread(other, 0, WEIR_WATCH_LOOP, -1), 0);
    int null = open("/dev/null", O_RDWR), segment = weir_watch_fd(other);
    int schedstat = weir_watch_self()->schedstat.fd;
    cr_assert_eq(dup2(null, segment), segment);
    if (schedstat >= 0)
        cr_assert_eq(dup2(null, schedstat), schedstat);
    one_batch(0, 0);
    cr_expect(schedstat < 0 || weir_watch_self()->schedstat.fd != schedstat, "opened again");
    cr_expect_eq(weir_own_file_is_open(&weir_watch_self()->schedstat), schedstat >= 0);
    cr_expect_null(weir_watch_open(getpid(), segment, why, sizeof why));
    int again = weir_watch_self()->schedstat.fd;
    if (again >= 0)
        cr_assert_eq(dup2(null, again), again);
    weir_watch_close(other);
    int files[] = {segment, schedstat, again};
    for (int i = 0; i < 3; i++)
        cr_expect(files[i] < 0 || fcntl(files[i], F_GETFD) >= 0, "file %d", i);
}

Test(watch, a_second_process_cannot_cut_the_segment)
{
    cr_expect_neq(ftruncate(weir_watch_fd(watch), 4096), 0);
}

static void print_all(void)
{
    struct weir_report report = {0};
    FILE *sink = fopen("/dev/null", "w");
    cr_assert_eq(weir_report_from_snapshot(&report, snapshot), 0);
    weir_report_print(sink, &report);
    weir_report_free(&report);
    fclose(sink);
}

/* The whole segment apart from its sparse end is random, but for some rounds the keys fit, so that cells are read. */
Test(watch, nonsense_in_the_segment_is_survived)
{
    uint64_t seed = 88172645463325252u;
    struct weir_segment *segment = watch->segment;
    size_t bytes = offsetof(struct weir_segment, slot) + 3 * sizeof segment->slot[0];
    for (int round = 0; round < 12; round++) {
        for (size_t i = 0; i + 8 <= bytes; i += 8) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            uint64_t word = round % 3 == 0 ? seed : round % 3 == 1 ? UINT64_MAX : seed >> (seed & 63);
            memcpy((char *)segment + i, &word, 8);
        }
        for (int i = 0; i < 3 && round > 2; i++) {
            atomic_store(&segment->slot[i].loader, 0);
            atomic_store(&segment->slot[i].role, i);
        }
        if (round % 2)
            atomic_store(&segment->slots, 3);
        atomic_store(&segment->loaders, UINT32_MAX);
        read_loader(round % WEIR_WATCH_LOADERS);
        read_loader(0);
        print_all();
        struct weir_watch_thread_id threads[8];
        cr_expect_leq(weir_watch_threads(watch, -1, threads, 8), 8);
        cr_expect_leq(weir_watch_loaders(watch), WEIR_WATCH_LOADERS);
        cr_expect_lt(weir_watch_slowest_loader(watch), WEIR_WATCH_LOADERS);
        struct weir_watch_counts then = reading->counts;
        weir_watch_counts_subtract(&reading->counts, &then);
        cr_expect_eq(reading->counts.loop_s, 0);
    }
}
