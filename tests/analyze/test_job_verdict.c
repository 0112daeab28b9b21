/* Verdicts on jobs that are seen from outside: each cause from its figures, values on both sides of the thresholds, and
 * the sums over intervals. */
#include "analyze/jobs/outside.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct weir_outside_figures f;
static struct weir_outside_verdict verdict;

static void set(double uses[WEIR_TASK_USES], double on_core, double core_wait, double storage, double lock,
                double sleep)
{
    double sum = on_core + core_wait + storage + lock + sleep;
    memset(uses, 0, WEIR_TASK_USES * sizeof *uses);
    uses[WEIR_TASK_ON_CORE] = on_core;
    uses[WEIR_TASK_CORE_WAIT] = core_wait;
    uses[WEIR_TASK_STORAGE] = storage;
    uses[WEIR_TASK_LOCK] = lock;
    uses[WEIR_TASK_SLEEP] = sleep;
    uses[WEIR_TASK_IDLE] = 1 - sum;
}

/* Two workers on eight cores, always busy; the loop waits 60 % of the time. */
static void data_bound(void)
{
    f = (struct weir_outside_figures){.seconds = 10,
                                      .n_workers = 2,
                                      .busiest = 0.97,
                                      .rest = 0.95,
                                      .ready_threads = 1,
                                      .main_ready_threads = 0.4,
                                      .job_cores = 2.3,
                                      .cores = 8,
                                      .online = 8,
                                      .gpu_busy = -1,
                                      .to_gpu_bytes_per_s = -1};
    set(f.main, 0.38, 0.02, 0, 0, 0);
    set(f.workers, 0.95, 0.01, 0, 0, 0);
}

/* The loop computes, and workers wait for work. */
static void step_bound(void)
{
    data_bound();
    set(f.main, 0.97, 0.01, 0, 0, 0);
    set(f.workers, 0.15, 0, 0, 0, 0);
    f.busiest = 0.16;
    f.rest = 0.15;
    f.ready_threads = 0.2;
    f.job_cores = 1.3;
}

static const struct weir_diagnosis_cause *judge(void)
{
    weir_outside_judge(&verdict, &f);
    return &verdict.found.causes[0];
}

/* Returns the advice for the first cause. */
static enum weir_advice_kind advice(void)
{
    return verdict.found.n_advices > 0 ? verdict.found.advices[0].kind : WEIR_ADVICE_NONE;
}

static void assert_cause(const char *name, enum weir_certainty certainty)
{
    const struct weir_diagnosis_cause *cause = judge();
    cr_assert_geq(verdict.found.n_causes, 1);
    cr_assert_str_eq(weir_cause_name(WEIR_SUBJECT_JOB, cause->cause), name, "%s: %s",
                     weir_cause_name(WEIR_SUBJECT_JOB, cause->cause), cause->text);
    cr_assert_eq(cause->certainty, certainty, "%s: %s", name, weir_certainty_name(cause->certainty));
    cr_assert(cause->text[0]);
}

Test(outside, a_short_window_has_no_verdict)
{
    data_bound();
    f.seconds = WEIR_OUTSIDE_LEAST_S - 0.01;
    judge();
    cr_assert_not(verdict.ready);
    cr_assert_eq(verdict.found.n_causes, 0);
}

/* ---- not data-bound ---- */

Test(outside, the_loop_computes)
{
    step_bound();
    assert_cause("not-data-bound", WEIR_CERTAINTY_SURE);
    cr_assert_eq(advice(), WEIR_ADVICE_NONE);
    set(f.main, 0.93, 0, 0, 0, 0); /* weir.watch, which times the waits, calls 7 % data-bound */
    assert_cause("not-data-bound", WEIR_CERTAINTY_LIKELY);
}

Test(outside, the_loop_sleeps_and_batches_are_ready)
{
    step_bound();
    set(f.main, 0.05, 0, 0, 0, 0.93);
    assert_cause("step", WEIR_CERTAINTY_LIKELY);
    cr_assert_eq(advice(), WEIR_ADVICE_TRACE);
    f.gpu_busy = 0.9;
    assert_cause("not-data-bound", WEIR_CERTAINTY_SURE);
}

Test(outside, a_busy_loop_with_an_idle_gpu_is_a_slow_step)
{
    step_bound();
    f.gpu_busy = 0.2;
    assert_cause("step", WEIR_CERTAINTY_LIKELY);
    cr_assert(strstr(verdict.found.causes[0].text, "GPU is busy 20 %"));
}

Test(outside, another_thread_holds_the_gil)
{
    step_bound();
    set(f.main, 0.38, 0, 0, 0.6, 0);
    f.other_thread = 0.9;
    assert_cause("gil", WEIR_CERTAINTY_LIKELY);
    f.gpu_busy = 0; /* opened, but not used */
    assert_cause("gil", WEIR_CERTAINTY_LIKELY);
    f.gpu_busy = 0.3; /* the other thread can be autograd's */
    assert_cause("step", WEIR_CERTAINTY_LIKELY);
    set(f.main, 0.02, 0, 0, 0.97, 0); /* but no step consists of backward() alone */
    assert_cause("gil", WEIR_CERTAINTY_LIKELY);
    set(f.main, 0.38, 0, 0, 0.6, 0);
    f.gpu_busy = -1;
    f.other_thread = 0.3;
    assert_cause("step", WEIR_CERTAINTY_LIKELY);
}

Test(outside, copies_from_memory_that_is_not_pinned)
{
    step_bound();
    set(f.main, 0.9, 0, 0, 0.01, 0);
    f.gpu_busy = 0.1;
    f.to_gpu_bytes_per_s = 2e9;
    assert_cause("pin-off", WEIR_CERTAINTY_LIKELY);
    cr_assert_eq(advice(), WEIR_ADVICE_PIN_MEMORY);
    f.to_gpu_bytes_per_s = 1e8;
    assert_cause("step", WEIR_CERTAINTY_LIKELY);
    f.to_gpu_bytes_per_s = 2e9;
    f.gpu_busy = 0.9;
    assert_cause("not-data-bound", WEIR_CERTAINTY_SURE);
    f.gpu_busy = 0.1;
    f.has_pin = true;
    assert_cause("step", WEIR_CERTAINTY_LIKELY);
}

/* ---- the pin thread ---- */

/* Advice in PyTorch's words is of no use to Weir's loader. */
Test(outside, weirs_loader_has_a_report)
{
    data_bound();
    f.weir = true;
    assert_cause("too-few-workers", WEIR_CERTAINTY_SURE);
    cr_assert_eq(advice(), WEIR_ADVICE_MORE_WORKERS);
    f.job_cores = 8;
    assert_cause("workers-saturated", WEIR_CERTAINTY_SURE);
    cr_assert_eq(advice(), WEIR_ADVICE_OWN_REPORT);
    f.young = 0.9;
    f.workers_begun = 4;
    assert_cause("workers-saturated", WEIR_CERTAINTY_SURE);
    f.n_workers = 0;
    assert_cause("unsure", WEIR_CERTAINTY_UNSURE);
    cr_assert(strstr(verdict.found.causes[0].text, "has no worker threads"), "%s", verdict.found.causes[0].text);
    cr_assert_eq(advice(), WEIR_ADVICE_OWN_REPORT);
    step_bound();
    f.weir = true;
    assert_cause("not-data-bound", WEIR_CERTAINTY_SURE);
    cr_assert_eq(advice(), WEIR_ADVICE_NONE);
    set(f.main, 0.93, 0, 0, 0, 0); /* weir.watch, which times the waits, calls 7 % data-bound */
    assert_cause("not-data-bound", WEIR_CERTAINTY_LIKELY);
}

/* The loop waits on a lock for batches, and for other things of torch. */
Test(outside, weirs_loader_in_a_process_with_torch)
{
    data_bound();
    f.weir = f.torch = true;
    set(f.main, 0.4, 0, 0, 0.6, 0);
    assert_cause("too-few-workers", WEIR_CERTAINTY_LIKELY);
    cr_assert(strstr(verdict.found.causes[0].text, "on a lock 60 % of the time"), "%s", verdict.found.causes[0].text);
    step_bound();
    f.weir = f.torch = true;
    set(f.main, 0.4, 0, 0, 0.6, 0);
    assert_cause("unsure", WEIR_CERTAINTY_UNSURE);
    cr_assert_not(strstr(verdict.found.causes[0].text, "pin thread"), "%s", verdict.found.causes[0].text);
    cr_assert_eq(advice(), WEIR_ADVICE_OWN_REPORT);
}

static void with_pin(double loop_lock)
{
    f.has_pin = true;
    set(f.main, 1 - loop_lock - 0.01, 0, 0, loop_lock, 0);
}

Test(outside, a_pin_thread_hides_the_wait)
{
    step_bound();
    with_pin(0.05);
    assert_cause("not-data-bound", WEIR_CERTAINTY_SURE);
    with_pin(0.6);
    assert_cause("unsure", WEIR_CERTAINTY_UNSURE);
    cr_assert_eq(advice(), WEIR_ADVICE_WATCH);
    f.gpu_busy = 0.7;
    assert_cause("not-data-bound", WEIR_CERTAINTY_LIKELY);
    f.gpu_busy = 0.3;
    assert_cause("unsure", WEIR_CERTAINTY_UNSURE);
}

Test(outside, busy_workers_show_the_wait_behind_a_pin_thread)
{
    data_bound();
    with_pin(0.6);
    assert_cause("too-few-workers", WEIR_CERTAINTY_LIKELY);
    cr_assert_eq(verdict.found.causes[0].gain, 0, "the wait is not known");
    f.gpu_busy = 0.95;
    assert_cause("not-data-bound", WEIR_CERTAINTY_LIKELY);
}

Test(outside, a_busy_pin_thread)
{
    step_bound();
    with_pin(0.6);
    set(f.pin, 0.95, 0, 0, 0, 0);
    assert_cause("transfer", WEIR_CERTAINTY_LIKELY);
}

/* ---- data-bound ---- */

Test(outside, cores_are_idle_for_more_workers)
{
    data_bound();
    assert_cause("too-few-workers", WEIR_CERTAINTY_SURE);
    cr_assert_eq(verdict.found.advices[0].value, 5, "%.0f: 2 / (1 - 0.6)", verdict.found.advices[0].value);
    cr_assert_float_eq(verdict.found.causes[0].gain, 2.5, 0.01);
    f.others_cores = 4;
    assert_cause("too-few-workers", WEIR_CERTAINTY_SURE);
    cr_assert_eq(verdict.found.advices[0].value, 4, "as many as the idle cores allow");
}

Test(outside, all_cores_are_busy)
{
    data_bound();
    f.cores = 2;
    f.job_cores = 1.95;
    assert_cause("workers-saturated", WEIR_CERTAINTY_SURE);
    cr_assert_eq(advice(), WEIR_ADVICE_WATCH);
}

Test(outside, more_workers_than_cores)
{
    data_bound();
    f.cores = 2;
    f.job_cores = 1.95;
    f.n_workers = 6;
    set(f.workers, 0.3, 0.65, 0, 0, 0);
    assert_cause("workers-saturated", WEIR_CERTAINTY_SURE);
    cr_assert_eq(advice(), WEIR_ADVICE_FEWER_WORKERS);
    cr_assert_eq(verdict.found.advices[0].value, 2);
}

Test(outside, storage)
{
    data_bound();
    set(f.workers, 0.2, 0, 0.7, 0, 0);
    f.storage_bytes_per_s = 50e6;
    assert_cause("storage", WEIR_CERTAINTY_SURE);
    cr_assert(strstr(verdict.found.causes[0].text, "50.0 MB/s"));
    set(f.workers, 0.65, 0, 0.3, 0, 0);
    assert_cause("storage", WEIR_CERTAINTY_LIKELY);
    set(f.workers, 0.2, 0, 0.7, 0, 0);
    f.has_pin = true;
    set(f.main, 0.4, 0, 0, 0.6, 0);
    assert_cause("storage", WEIR_CERTAINTY_LIKELY);
}

Test(outside, a_lock)
{
    data_bound();
    set(f.workers, 0.2, 0, 0, 0.7, 0);
    assert_cause("lock", WEIR_CERTAINTY_SURE);
    f.other_cores = 0.8;
    assert_cause("too-few-workers", WEIR_CERTAINTY_SURE); /* a video decoder's threads, for which the worker waits */
    cr_assert(strstr(verdict.found.causes[0].text, "their other threads use 0.8 cores each"));
}

Test(outside, workers_that_sleep_need_no_core)
{
    data_bound();
    f.cores = 2;
    f.job_cores = 0.4;
    set(f.workers, 0.05, 0, 0, 0, 0.92);
    assert_cause("too-few-workers", WEIR_CERTAINTY_LIKELY);
    cr_assert_gt(verdict.found.advices[0].value, 2);
}

Test(outside, one_slow_worker)
{
    data_bound();
    f.n_workers = 4;
    set(f.workers, 0.35, 0, 0, 0, 0);
    f.busiest = 0.97;
    f.rest = 0.15;
    f.busiest_pid = 77;
    assert_cause("slow-worker", WEIR_CERTAINTY_LIKELY);
    cr_assert(strstr(verdict.found.causes[0].text, "process 77"));
    f.rest = 0.65;
    assert_cause("unsure", WEIR_CERTAINTY_UNSURE);
}

Test(outside, workers_that_begin_again_and_again)
{
    data_bound();
    f.young = 0.6;
    f.workers_begun = 8;
    assert_cause("start-up", WEIR_CERTAINTY_LIKELY);
    cr_assert_eq(advice(), WEIR_ADVICE_PERSISTENT);
    f.young = 0.1;
    assert_cause("too-few-workers", WEIR_CERTAINTY_SURE);
}

Test(outside, idle_workers_and_a_waiting_loop_are_unsure)
{
    data_bound();
    set(f.workers, 0.3, 0, 0, 0, 0);
    f.busiest = 0.4;
    f.rest = 0.3;
    assert_cause("unsure", WEIR_CERTAINTY_UNSURE);
}

/* ---- cores ---- */

Test(outside, a_quota)
{
    data_bound();
    f.quota_cores = 1;
    f.throttled = 0.8;
    set(f.workers, 0.45, 0.5, 0, 0, 0);
    assert_cause("quota", WEIR_CERTAINTY_SURE);
    f.throttled = 0.05;
    judge();
    cr_assert_neq(verdict.found.causes[0].cause, WEIR_CAUSE_QUOTA);
    f.throttled = 0.8;
    set(f.workers, 0.95, 0.02, 0, 0, 0);
    judge();
    cr_assert_neq(verdict.found.causes[0].cause, WEIR_CAUSE_QUOTA, "nothing of this job waits");
}

Test(outside, neighbours)
{
    data_bound();
    f.cores = 2;
    f.others_cores = 1.1;
    f.job_cores = 0.9;
    f.ready_threads = 0.95;
    f.main_ready_threads = 0.1;
    set(f.workers, 0.4, 0.55, 0, 0, 0);
    assert_cause("neighbours", WEIR_CERTAINTY_SURE);
    f.other_jobs_cores = 0.9;
    judge();
    cr_assert(strstr(verdict.found.causes[0].text, "other training jobs"), "%s", verdict.found.causes[0].text);
    f.others_cores = 0.3; /* between a tenth and a fifth of the cores */
    assert_cause("neighbours", WEIR_CERTAINTY_LIKELY);
    f.others_cores = 0.1;
    judge();
    cr_assert_neq(verdict.found.causes[0].cause, WEIR_CAUSE_NEIGHBOURS);
    f.steal_cores = 0.15;
    assert_cause("neighbours", WEIR_CERTAINTY_LIKELY);
    f.quota_cores = 1;
    f.throttled = 0.8;
    assert_cause("quota", WEIR_CERTAINTY_SURE);
    cr_assert_eq(verdict.found.n_causes, 1, "the quota explains the waits");
}

Test(outside, a_lock_beside_neighbours)
{
    data_bound();
    f.cores = 2;
    f.n_workers = 4;
    f.others_cores = 1.4;
    f.job_cores = 0.6;
    set(f.workers, 0.15, 0.5, 0, 0.3, 0);
    assert_cause("neighbours", WEIR_CERTAINTY_LIKELY); /* more workers than cores would wait in any case */
    cr_assert_eq(verdict.found.n_causes, 2);
    cr_assert_eq(verdict.found.causes[1].cause, WEIR_CAUSE_LOCK);
}

Test(outside, workers_that_sleep_beside_neighbours)
{
    data_bound();
    f.cores = 2;
    f.others_cores = 1.9;
    f.job_cores = 0.2;
    set(f.main, 0.1, 0.29, 0, 0, 0);
    set(f.workers, 0.02, 0.05, 0, 0, 0.9);
    assert_cause("too-few-workers", WEIR_CERTAINTY_LIKELY);
    cr_assert_eq(verdict.found.causes[1].cause, WEIR_CAUSE_NEIGHBOURS);
    set(f.workers, 0.02, 0.05, 0.9, 0, 0);
    assert_cause("storage", WEIR_CERTAINTY_SURE);
    f.quota_cores = 1;
    f.throttled = 0.5;
    set(f.workers, 0.4, 0.5, 0.05, 0, 0);
    assert_cause("quota", WEIR_CERTAINTY_SURE);
}

Test(outside, a_step_that_waits_for_a_core)
{
    step_bound();
    set(f.main, 0.5, 0.45, 0, 0, 0);
    f.others_cores = 6;
    assert_cause("neighbours", WEIR_CERTAINTY_SURE);
}

Test(outside, too_many_threads)
{
    data_bound();
    f.cores = 2;
    f.ready_threads = 6;
    f.job_cores = 2;
    set(f.workers, 0.3, 0.4, 0, 0.25, 0);
    assert_cause("too-many-threads", WEIR_CERTAINTY_SURE);
    f.cores = 64;
    judge();
    cr_assert_neq(verdict.found.causes[0].cause, WEIR_CAUSE_TOO_MANY_THREADS, "all of them have cores");
}

/* ---- another user's process ---- */

static void hide(double uses[WEIR_TASK_USES])
{
    uses[WEIR_TASK_OTHER] = 1 - uses[WEIR_TASK_ON_CORE] - uses[WEIR_TASK_CORE_WAIT];
    uses[WEIR_TASK_IDLE] = uses[WEIR_TASK_LOCK] = uses[WEIR_TASK_SLEEP] = uses[WEIR_TASK_STORAGE] = 0;
}

Test(outside, hidden_reasons)
{
    step_bound();
    set(f.main, 0.05, 0, 0, 0, 0.93);
    hide(f.main);
    hide(f.workers);
    assert_cause("unsure", WEIR_CERTAINTY_UNSURE);
    cr_assert(strstr(verdict.found.causes[0].text, "run weir top as its user"));
    set(f.main, 0.95, 0, 0, 0, 0);
    hide(f.main);
    assert_cause("not-data-bound", WEIR_CERTAINTY_LIKELY);
    data_bound();
    hide(f.main);
    hide(f.workers);
    assert_cause("workers-saturated", WEIR_CERTAINTY_LIKELY);
    f.cores = 2;
    f.others_cores = 1.5;
    set(f.workers, 0.3, 0.6, 0, 0, 0);
    hide(f.workers);
    assert_cause("neighbours", WEIR_CERTAINTY_SURE);
}

/* ---- without workers ---- */

Test(outside, no_workers)
{
    data_bound();
    f.n_workers = 0;
    f.ready_threads = -1;
    memset(f.workers, 0, sizeof f.workers);
    set(f.main, 0.95, 0, 0, 0, 0);
    assert_cause("unsure", WEIR_CERTAINTY_UNSURE);
    cr_assert_eq(advice(), WEIR_ADVICE_WATCH);
    set(f.main, 0.4, 0, 0.5, 0, 0);
    assert_cause("storage", WEIR_CERTAINTY_LIKELY);
    set(f.main, 0.95, 0, 0, 0, 0);
    f.gpu_busy = 0.9;
    assert_cause("not-data-bound", WEIR_CERTAINTY_LIKELY);
}

/* ---- intervals ---- */

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
    weir_outside_add(&window, &(struct weir_outside_interval){&job, &machine, gpu_busy, gpu_busy * 1e9, 0});
}

Test(outside, means_over_intervals)
{
    begin_intervals();
    add(0.2);
    job.main.shares.of[WEIR_TASK_IDLE] = 0;
    job.main.shares.of[WEIR_TASK_ON_CORE] = 1;
    machine.throttled = 4;
    add(0.4);
    weir_outside_figures(&window, &f);
    cr_assert_float_eq(f.seconds, 2, 1e-9);
    cr_assert_float_eq(f.main[WEIR_TASK_IDLE], 0.5, 1e-9);
    cr_assert_float_eq(f.gpu_busy, 0.3, 1e-9);
    cr_assert_float_eq(f.to_gpu_bytes_per_s, 0.3e9, 1);
    cr_assert_float_eq(f.throttled, 0.25, 1e-9);
    cr_assert_float_eq(f.others_cores, 0.5, 1e-9);
    cr_assert_float_eq(f.job_cores, 1.5, 1e-9);
    cr_assert_eq(f.n_parked, 1, "the third worker belongs to another loader");
    cr_assert_eq(f.n_workers, 2);
    cr_assert_float_eq(f.workers[WEIR_TASK_ON_CORE], 0.8, 1e-9);
    cr_assert_float_eq(f.busiest, 0.9, 1e-9);
    cr_assert_eq(f.busiest_pid, 10);
    cr_assert_float_eq(f.rest, 0.7, 1e-9);
    cr_assert_float_eq(f.ready_threads, 0.8, 1e-9);
    cr_assert_not(f.has_pin);
}

Test(outside, only_the_last_intervals_count)
{
    begin_intervals();
    for (int i = 0; i < WEIR_OUTSIDE_INTERVALS; i++)
        add(-1);
    job.main.shares.of[WEIR_TASK_IDLE] = 0;
    for (int i = 0; i < WEIR_OUTSIDE_INTERVALS; i++)
        add(-1);
    weir_outside_figures(&window, &f);
    cr_assert_float_eq(f.seconds, WEIR_OUTSIDE_INTERVALS, 1e-9);
    cr_assert_float_eq(f.main[WEIR_TASK_IDLE], 0, 1e-9);
    cr_assert(f.gpu_busy < 0 && f.to_gpu_bytes_per_s < 0, "unknown");
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
    weir_outside_figures(&window, &f);
    cr_assert_eq(f.n_workers, 3, "%d", f.n_workers);
    cr_assert_eq(f.workers_begun, 30);
    cr_assert_float_eq(f.young, 1, 1e-9);
}

/* ---- output ---- */

Test(outside, text_and_json)
{
    char *text = NULL;
    size_t n;
    data_bound();
    judge();
    FILE *out = open_memstream(&text, &n);
    weir_diagnosis_print(out, &verdict.found, NULL, NULL);
    fclose(out);
    cr_assert_eq(strncmp(text, "verdict: There are too few workers (sure): ", 43), 0, "%s", text);
    cr_assert(strstr(text, "\n  num_workers=5 (now 2)    up to 2.5 x"), "%s", text);
    free(text);
    struct weir_json json;
    out = open_memstream(&text, &n);
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_outside_json(&json, &verdict);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fclose(out);
    cr_assert(strstr(text, "\"cause\":\"too-few-workers\""), "%s", text);
    cr_assert(strstr(text, "\"num_workers\":5"), "%s", text);
    free(text);
}
