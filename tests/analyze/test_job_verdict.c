/* Figures of jobs that are seen from outside: sums over intervals. tests/golden has a situation for each cause. */
#include "analyze/jobs/outside.h"

#include <criterion/criterion.h>
#include <string.h>

static struct weir_dataloader_figures figures;
static struct weir_job_figures job;
static struct weir_report_machine machine;
static struct weir_outside_window window;

static void put_worker(int i, int pid, double on_core, double idle)
{
    struct weir_process_figures *worker = &job.workers[i];
    *worker = (struct weir_process_figures){.pid = pid, .age_s = -1, .ready_threads = on_core};
    worker->shares.seconds = 1;
    worker->shares.of[WEIR_TASK_ON_CORE] = on_core;
    worker->shares.of[WEIR_TASK_IDLE] = idle;
}

static void begin_intervals(void)
{
    memset(&window, 0, sizeof window);
    job = (struct weir_job_figures){.seconds = 1, .cores = 1.5, .n_workers = 3};
    job.main.shares.seconds = 1;
    job.main.shares.of[WEIR_TASK_IDLE] = 1;
    put_worker(0, 10, 0.9, 0.1);
    put_worker(1, 11, 0.7, 0.3);
    put_worker(2, 12, 0.001, 0.999);
    machine = (struct weir_report_machine){.used = true,
                                           .cores = 4,
                                           .online = 8,
                                           .quota_cores = 2,
                                           .throttling = true,
                                           .periods = 10,
                                           .throttled = 1,
                                           .others_cores = 0.5};
}

static void add(double gpu_busy)
{
    *weir_outside_next(&window) = (struct weir_outside_interval){job, machine, gpu_busy, gpu_busy * 1e9, 0, -1};
    weir_outside_add(&window);
}

Test(outside, means_over_intervals)
{
    begin_intervals();
    add(0.2);
    job.main.shares.of[WEIR_TASK_IDLE] = 0;
    job.main.shares.of[WEIR_TASK_ON_CORE] = 1;
    machine.throttled = 4;
    add(0.4);
    weir_outside_figures(&window, &figures);
    cr_assert_float_eq(figures.loop_s, 2, 1e-9);
    cr_assert_float_eq(figures.loop.shares.of[WEIR_TASK_IDLE], 0.5, 1e-9);
    cr_assert_float_eq(figures.outside.gpu_busy, 0.3, 1e-9);
    cr_assert_float_eq(figures.outside.to_gpu_bytes_per_s, 0.3e9, 1);
    cr_assert_eq(figures.machine.periods, 20);
    cr_assert_eq(figures.machine.throttled, 5);
    cr_assert_float_eq(figures.machine.others_cores, 0.5, 1e-9);
    cr_assert_float_eq(figures.cpu_s, 3, 1e-9);
    cr_assert_float_eq(figures.wait_s, 1, 1e-9);
    cr_assert_eq(figures.outside.n_parked, 1, "the third worker belongs to another loader");
    cr_assert_eq(figures.n_workers, 2);
    cr_assert_eq(figures.settings.num_workers, 2);
    cr_assert_eq(figures.workers[0].id, 10);
    cr_assert_float_eq(figures.workers[0].busy_s, 1.8, 1e-9);
    cr_assert_float_eq(figures.workers[1].busy_s, 1.4, 1e-9);
    cr_assert_lt(figures.workers[0].batches, 0, "unknown");
    struct weir_thread_figures sum;
    weir_dataloader_sum(&sum, &figures);
    cr_assert_float_eq(sum.cpu_s, 3.2, 1e-9);
    cr_assert_float_eq(figures.outside.worker_ready, 0.8, 1e-9);
    cr_assert_not(figures.outside.has_pin);
}

Test(outside, only_the_last_intervals_count)
{
    begin_intervals();
    for (int i = 0; i < WEIR_OUTSIDE_INTERVALS; i++)
        add(-1);
    job.main.shares.of[WEIR_TASK_IDLE] = 0;
    for (int i = 0; i < WEIR_OUTSIDE_INTERVALS; i++)
        add(-1);
    weir_outside_figures(&window, &figures);
    cr_assert_float_eq(figures.loop_s, WEIR_OUTSIDE_INTERVALS, 1e-9);
    cr_assert_float_eq(figures.loop.shares.of[WEIR_TASK_IDLE], 0, 1e-9);
    cr_assert(figures.outside.gpu_busy < 0 && figures.outside.to_gpu_bytes_per_s < 0, "unknown");
}

Test(outside, workers_of_many_epochs_are_few_at_one_time)
{
    begin_intervals();
    for (int i = 0; i < WEIR_OUTSIDE_INTERVALS; i++) {
        for (int w = 0; w < 3; w++) {
            put_worker(w, 100 + 3 * i + w, 0.9, 0.1);
            job.workers[w].age_s = 0.5;
        }
        job.workers_begun = 3;
        add(-1);
    }
    weir_outside_figures(&window, &figures);
    cr_assert_eq(figures.settings.num_workers, 3, "%g", figures.settings.num_workers);
    cr_assert_eq(figures.outside.workers_begun, 30);
    cr_assert_float_eq(figures.outside.young, 1, 1e-9);
}
