/* The simulation, in cases with a known arithmetic answer, and the model: it reproduces the rate of the measured run,
 * predicts the effect of changes, and survives invalid reports. */
#include "analyze/prediction/model.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Four workers on four cores, batches of 16 tasks of 1 ms each, and a step of zero time: 4000 tasks/s. */
static struct weir_simulation four(void)
{
    return (struct weir_simulation){.workers = 4, .slots = 5, .tasks = 16, .cores = 4, .cpu_s = 1e-3};
}

static struct weir_simulated simulate(const struct weir_simulation *in)
{
    struct weir_simulated result;
    cr_assert_eq(weir_simulate(&result, in), 0);
    cr_assert(isfinite(result.batches_per_s));
    for (int i = 0; i < WEIR_RESOURCES; i++)
        cr_assert(result.busy[i] >= 0 && result.busy[i] <= 1);
    return result;
}

static double tasks_per_s(const struct weir_simulation *in)
{
    return simulate(in).batches_per_s * in->tasks;
}

static void assert_about(double value, double expected, double within)
{
    cr_assert_float_eq(value, expected, within * expected, "%g is not %g within %g %%", value, expected, 100 * within);
}

Test(simulate, one_limit_holds_everything)
{
    struct weir_simulation in = four();
    assert_about(tasks_per_s(&in), 4000, 0.02);
    cr_assert_eq(simulate(&in).busiest, WEIR_RESOURCE_CORES);
    in.cores = 2; /* four workers share two cores */
    assert_about(tasks_per_s(&in), 2000, 0.02);
    in.cores = 1.5;
    assert_about(tasks_per_s(&in), 1500, 0.02);
    in = four();
    in.cores = 16; /* four workers can use only four of them */
    assert_about(tasks_per_s(&in), 4000, 0.02);
    cr_assert_eq(simulate(&in).busiest, WEIR_RESOURCE_WORKERS);
    in = four();
    in.asleep_s = 3e-3; /* sleeps overlap, but only one per worker */
    assert_about(tasks_per_s(&in), 1000, 0.02);
    in = four();
    in.library_s = 1e-3; /* the library serves one worker at a time */
    assert_about(tasks_per_s(&in), 1000, 0.02);
    cr_assert_eq(simulate(&in).busiest, WEIR_RESOURCE_LIBRARY);
    in = four();
    in.step_s = 20e-3; /* one step per batch of 16 tasks */
    assert_about(tasks_per_s(&in), 800, 0.02);
    cr_assert_eq(simulate(&in).busiest, WEIR_RESOURCE_CONSUMER);
    in = four();
    in.feed_s = 10e-3;
    in.outputs = 3;
    assert_about(tasks_per_s(&in), 1600, 0.02);
    cr_assert_eq(simulate(&in).busiest, WEIR_RESOURCE_BUS);
}

Test(simulate, a_step_on_a_core_takes_it_from_the_workers)
{
    struct weir_simulation in = four();
    in.step_cpu_s = 4e-3; /* 16 ms of decoding plus 4 ms of step on four cores: 5 ms per batch */
    assert_about(tasks_per_s(&in), 3200, 0.1);
    in.workers = 16; /* The consumer is one of 17 threads that share the cores. The batch takes 4.25 ms, then the step
                        needs another 3 ms. */
    assert_about(tasks_per_s(&in), 16 / 7.25e-3, 0.02);
}

Test(simulate, without_workers_loading_and_step_take_turns)
{
    struct weir_simulation in = four();
    in.workers = 0;
    in.step_s = 4e-3;
    assert_about(tasks_per_s(&in), 16 / 20e-3, 1e-9);
}

/* Workers and consumer each need 4 ms per batch. With noise and a short queue, neither reaches that bound. */
Test(simulate, balanced_resources_stay_below_their_bounds)
{
    struct weir_simulation in = four();
    in.step_s = 4e-3;
    in.asleep_s = 1e-4;
    in.cpu_s = 9e-4;
    in.slow_part = 0.02;
    in.slow_times = 200;
    in.slots = 2;
    double shallow = simulate(&in).batches_per_s;
    in.slots = 40;
    double deep = simulate(&in).batches_per_s;
    cr_assert_lt(shallow, 0.9 * 250);
    cr_assert_gt(deep, 1.05 * shallow);
    cr_assert_leq(deep, 251);
}

/* With one single-task batch of prefetch, three of the four workers are idle while the consumer holds its slot. */
Test(simulate, few_slots_keep_workers_idle)
{
    struct weir_simulation in = four();
    in.tasks = 1;
    in.slots = 2;
    assert_about(tasks_per_s(&in), 2000, 0.05);
    in.slots = 8;
    assert_about(tasks_per_s(&in), 4000, 0.05);
}

/* With one slot and four workers, a batch takes 4 ms. In addition, first the consumer and then the workers must wake
 * up. */
Test(simulate, handing_over_takes_time)
{
    struct weir_simulation in = four();
    in.slots = 1;
    assert_about(tasks_per_s(&in), 16 / 4e-3, 0.02);
    in.handover_s = 0.5e-3;
    assert_about(tasks_per_s(&in), 16 / 5e-3, 0.02);
    in.slots = 20;
    assert_about(tasks_per_s(&in), 16 / 4e-3, 0.05);
}

/* One task in 500 has a read of 50 ms in addition to 1 ms of decoding. The mean load is small, but its batch must wait.
 */
Test(simulate, bursts_are_what_batches_ahead_are_for)
{
    struct weir_simulation in = four();
    in.tasks = 8;
    in.step_s = 4e-3;
    in.asleep_s = 0.1e-3;
    in.slow_part = 0.002;
    in.slow_times = 1000;
    in.slots = 2;
    double shallow = simulate(&in).batches_per_s;
    in.slots = 32;
    double deep = simulate(&in).batches_per_s;
    cr_assert_gt(deep, 1.1 * shallow);
}

Test(simulate, cpu_time_grows_with_threads)
{
    struct weir_simulation in = four();
    in.n_growth = 2;
    in.growth[0] = (struct weir_growth_point){1, 1};
    in.growth[1] = (struct weir_growth_point){4, 2};
    assert_about(tasks_per_s(&in), 2000, 0.03);
    in.workers = 1;
    assert_about(tasks_per_s(&in), 1000, 0.03);
    cr_assert_float_eq(weir_growth_at(in.growth, 2, 2.5), 1.5, 1e-9);
    cr_assert_float_eq(weir_growth_at(in.growth, 2, 0), 1, 1e-9);
    cr_assert_float_eq(weir_growth_at(in.growth, 2, 100), 2, 1e-9);
    cr_assert_float_eq(weir_growth_at(NULL, 0, 3), 1, 1e-9);
}

Test(simulate, the_same_twice_and_quickly_for_large_ones)
{
    struct weir_simulation in = {
        .workers = 512, .slots = 4097, .tasks = 65536 * 16, .cores = 64, .cpu_s = 1e-3, .spread = 0.3};
    struct weir_simulated once = simulate(&in), twice = simulate(&in);
    cr_assert_eq(once.batches_per_s, twice.batches_per_s);
    assert_about(once.batches_per_s * in.tasks, 64000, 0.1);
}

Test(simulate, nonsense_is_refused)
{
    const double bad[] = {-1, NAN, INFINITY, -INFINITY, 1e300};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct weir_simulation in[6] = {four(), four(), four(), four(), four(), four()};
        struct weir_simulated result;
        in[0].cpu_s = in[1].asleep_s = in[2].step_s = in[3].cores = in[4].feed_s = in[5].library_s = bad[i];
        for (int j = 0; j < 6; j++) {
            cr_assert_lt(weir_simulate(&result, &in[j]), 0);
            cr_assert_eq(result.batches_per_s, 0);
        }
    }
    struct weir_simulation nothing = four();
    nothing.cpu_s = 0;
    cr_assert_eq(simulate(&nothing).batches_per_s, 0);
}

/* ---- the model ---- */

struct made {
    struct weir_loader_report report;
    struct weir_report_worker workers[2];
    struct weir_demands demands;
    struct weir_model model;
};

/* A run of 1000 batches in 4.1 s: two workers on a two-core machine, 8 images per batch, 1 ms of CPU time per image,
 * and a step of 1 ms. */
static struct made *decoding(void)
{
    struct made *made = calloc(1, sizeof *made);
    struct weir_loader_report *report = &made->report;
    *report = (struct weir_loader_report){.final = true, .timing = true, .wall_s = 4.1, .cpu_s = 8.0, .queue_slots = 3};
    report->prof.workers = made->workers;
    report->prof.n_workers = 2;
    report->prof.machine = (struct weir_report_machine){.used = true, .cores = 2, .online = 2, .part = 2};
    report->setup =
        (struct weir_report_setup){.known = true, .workers = 2, .slots = 3, .batch_size = 4, .images_per_sample = 2};
    report->steps =
        (struct weir_report_steps){.train_batches = 1000, .images = 8000, .train_s = 4.1, .train_wait_s = 3.1};
    for (int i = 0; i < 2; i++)
        made->workers[i] = (struct weir_report_worker){.wall_s = 4.1, .cpu_s = 4, .core_wait_s = 0, .blocked_s = 0.1};
    report->prof.rows[report->prof.n_rows++] = (struct weir_report_row){.name = "03b_image_decode",
                                                                        .kind = WEIR_KIND_WORK,
                                                                        .side = WEIR_SIDE_WORKER,
                                                                        .count = 8000,
                                                                        .self_s = 8,
                                                                        .cpu_s = 8,
                                                                        .mean_s = 1e-3,
                                                                        .p50_s = 1e-3,
                                                                        .p90_s = 1.1e-3};
    report->prof.rows[report->prof.n_rows++] = (struct weir_report_row){
        .name = "09_wait_for_slot", .kind = WEIR_KIND_WAIT, .side = WEIR_SIDE_WORKER, .count = 100, .self_s = 0.2};
    return made;
}

static void make(struct made *made)
{
    weir_demands_make(&made->demands, &made->report);
    weir_model_make(&made->model, &made->demands, &made->report, NULL);
}

Test(model, has_the_rate_of_the_run)
{
    struct made *made = decoding();
    make(made);
    cr_assert(made->model.known);
    assert_about(made->model.simulated, 8000 / 4.1, 0.02);
    const struct weir_model_change none = WEIR_MODEL_AS_IT_IS;
    enum weir_resource limit = WEIR_RESOURCE_BUS;
    assert_about(weir_model_predict(&made->model, &none, &limit), 1, 1e-6);
    cr_assert_eq(limit, WEIR_RESOURCE_CORES);
    free(made);
}

Test(model, changes)
{
    struct made *made = decoding();
    make(made);
    struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
    change.workers = 1; /* uses one core */
    assert_about(weir_model_predict(&made->model, &change, NULL), 0.5, 0.05);
    change.workers = 8; /* still two cores */
    assert_about(weir_model_predict(&made->model, &change, NULL), 1, 0.05);
    change.cores = 4;
    assert_about(weir_model_predict(&made->model, &change, NULL), 2, 0.1);
    change = WEIR_MODEL_AS_IT_IS;
    change.cpu_times = 0.5;
    assert_about(weir_model_predict(&made->model, &change, NULL), 2, 0.1);
    change.cpu_times = 0.01; /* then the step is the limit: a batch takes 1 ms instead of 4.1 ms */
    enum weir_resource limit = WEIR_RESOURCE_BUS;
    assert_about(weir_model_predict(&made->model, &change, &limit), 4.1, 0.05);
    cr_assert_eq(limit, WEIR_RESOURCE_CONSUMER);
    change = WEIR_MODEL_AS_IT_IS;
    change.step_times = 0;
    assert_about(weir_model_predict(&made->model, &change, NULL), 1, 0.1);
    change.step_times = 8;
    assert_about(weir_model_predict(&made->model, &change, NULL), 4.1 / 8, 0.05);
    free(made);
}

/* Unexplained time (here images of 1 ms took 10 ms) must slow down loading only, never the step. Given a step that is
 * slower than loading, the step is the limit. */
Test(model, what_is_not_explained_is_loading)
{
    struct made *made = decoding();
    made->report.steps =
        (struct weir_report_steps){.train_batches = 100, .images = 800, .train_s = 4.1, .train_wait_s = 4.0};
    for (int i = 0; i < 2; i++)
        made->workers[i].cpu_s = 0.4;
    made->report.cpu_s = 0.8;
    make(made);
    cr_assert(made->model.known);
    assert_about(made->model.simulated, made->model.rate, 0.03);
    struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
    change.step_s = 0.082; /* twice the time of a batch */
    change.step_cpu_s = 0;
    assert_about(weir_model_predict(&made->model, &change, NULL), 0.5, 0.02);
    free(made);
}

/* This run was faster than the measured hand-over time allows, so its hand-overs were shorter. For a slower step, the
 * model must predict the step's rate, not that rate multiplied by the simulation's error. */
Test(model, hand_overs_do_not_make_a_run_slower_than_it_was)
{
    struct made *made = decoding();
    const struct weir_model_facts facts = {.handover_s = 50e-3}; /* although a batch took only 4.1 ms */
    weir_demands_make(&made->demands, &made->report);
    weir_model_make(&made->model, &made->demands, &made->report, &facts);
    cr_assert(made->model.known);
    assert_about(made->model.simulated, made->model.rate, 0.03);
    struct weir_model_change change = WEIR_MODEL_AS_IT_IS;
    change.step_s = 8.2e-3;
    change.step_cpu_s = 0;
    assert_about(weir_model_predict(&made->model, &change, NULL), 0.5, 0.03);
    free(made);
}

/* Predictions stay finite for any values in a log. */
Test(model, hostile_reports)
{
    const double bad[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e308, 1e-308};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int field = 0; field < 10; field++) {
            struct made *made = decoding();
            struct weir_loader_report *report = &made->report;
            double *fields[] = {&report->wall_s,
                                &report->cpu_s,
                                &report->steps.train_s,
                                &report->steps.train_wait_s,
                                &made->workers[0].wall_s,
                                &made->workers[0].cpu_s,
                                &made->workers[1].blocked_s,
                                &report->prof.rows[0].mean_s,
                                &report->prof.rows[0].p90_s,
                                &report->prof.consumer.wall_s};
            *fields[field] = bad[i];
            make(made);
            const struct weir_model_change none = WEIR_MODEL_AS_IT_IS;
            double ratio = weir_model_predict(&made->model, &none, NULL);
            cr_assert(isfinite(ratio) && ratio >= 0);
            free(made);
        }
    struct made *made = decoding();
    made->report.steps.train_batches = 0;
    make(made);
    cr_assert_not(made->model.known);
    made->report.steps.train_batches = 1000;
    made->report.setup.workers = 129; /* simulating this many workers would take seconds */
    make(made);
    cr_assert_not(made->model.known);
    made->report.setup.workers = 2;
    made->report.steps.images = UINT64_MAX / 2;
    make(made);
    cr_assert_not(made->model.known);
    made->report.steps.train_batches = UINT64_MAX;
    made->report.setup.workers = 1 << 30;
    make(made);
    const struct weir_model_change none = WEIR_MODEL_AS_IT_IS;
    cr_assert(isfinite(weir_model_predict(&made->model, &none, NULL)));
    free(made);
}
