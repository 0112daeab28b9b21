/* Verdicts: rules that hold for all reports, and facts that logs do not have. tests/golden has a situation for every
 * cause and every piece of advice. */
#include "analyze/verdict/verdict_priv.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_MAX = 16 };

struct made {
    struct weir_loader_report report;
    struct weir_report_worker workers[WORKERS_MAX];
    struct weir_verdict_facts facts;
};

/* Appends a row of 1000 calls. */
static struct weir_report_row *add_row(struct made *made, const char *name, enum weir_stage_kind kind,
                                       enum weir_report_side side, double self_s, double cpu_s)
{
    struct weir_report_row *row = &made->report.prof.rows[made->report.prof.n_rows++];
    *row = (struct weir_report_row){.kind = kind,
                                    .side = side,
                                    .count = 1000,
                                    .total_s = self_s,
                                    .self_s = self_s,
                                    .mean_s = self_s / 1000,
                                    .p50_s = self_s / 1000,
                                    .p90_s = self_s / 1000,
                                    .p99_s = self_s / 1000,
                                    .max_s = self_s / 500,
                                    .cpu_s = cpu_s,
                                    .preempted_s = 0,
                                    .share = -1};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

/* Sets how each worker spends its 10 s: seconds on a core, waiting for a core, asleep in reads, and idle. */
static void set_workers(struct made *made, int n, double cpu_s, double core_wait_s, double read_s, double idle_s)
{
    struct weir_loader_report *report = &made->report;
    report->setup.workers = report->prof.n_workers = n;
    for (int i = 0; i < n; i++) {
        made->workers[i] = (struct weir_report_worker){.wall_s = 10,
                                                       .work_s = 10 - idle_s,
                                                       .wait_s = idle_s,
                                                       .cpu_s = cpu_s,
                                                       .work_cpu_s = cpu_s,
                                                       .core_wait_s = core_wait_s,
                                                       .blocked_s = 10 - cpu_s - core_wait_s,
                                                       .steal_s = -1};
        snprintf(made->workers[i].name, sizeof made->workers[i].name, "weir-w%d", i % WORKERS_MAX);
    }
    report->prof.n_rows = 0;
    add_row(made, "03b_image_decode", WEIR_KIND_WORK, WEIR_SIDE_WORKER, n * (0.95 * cpu_s + core_wait_s),
            n * 0.95 * cpu_s)
        ->preempted_s = n * core_wait_s;
    add_row(made, "03c_read_bytes", WEIR_KIND_WORK, WEIR_SIDE_WORKER, n * (0.05 * cpu_s + read_s), n * 0.05 * cpu_s);
    add_row(made, "09_wait_for_slot", WEIR_KIND_WAIT, WEIR_SIDE_WORKER, n * idle_s, 0);
    add_row(made, "20_train_forward_pass", WEIR_KIND_WORK, WEIR_SIDE_CONSUMER, 2, 0);
    report->cpu_s = n * cpu_s + 0.1;
}

/* Makes two workers wait 7.9 s for a server that answers after 50 ms. limit, most: of the requests in flight. */
static void add_server(struct made *made, double in_flight, int limit, int most)
{
    set_workers(made, 2, 2, 0, 7.9, 0.1);
    struct weir_report_row *row = add_row(made, "03l_first_byte", WEIR_KIND_SPAN, WEIR_SIDE_HELPER, 16000 * 0.05, -1);
    row->count = 16000;
    row->min_s = 0.045;
    made->report.server = (struct weir_report_server){.requests = 16000,
                                                      .bytes = 480000000,
                                                      .wait_s = 0.05,
                                                      .transfer_s = 0.001,
                                                      .in_flight = in_flight,
                                                      .limit = limit,
                                                      .limit_most = most,
                                                      .limit_fixed = limit == most,
                                                      .host = "a.example"};
}

/* Sets how many of the 10 s of training were spent waiting for data. */
static void set_wait(struct made *made, double wait_s)
{
    made->report.steps = (struct weir_report_steps){
        .train_batches = 1000, .images = 16000, .train_s = 10, .train_wait_s = wait_s, .first_wait_s = 0};
}

/* Two cores, two workers that decode all the time, and a consumer that waits for them. */
static struct made *make_decoding(void)
{
    struct made *made = calloc(1, sizeof *made);
    struct weir_loader_report *report = &made->report;
    *report = (struct weir_loader_report){
        .epoch_first = 1, .epoch_last = 3, .epoch_count = 3, .final = true, .timing = true, .wall_s = 10};
    report->prof.workers = made->workers;
    report->prof.machine = (struct weir_report_machine){
        .used = true, .cores = 2, .online = 4, .part = 2, .others_cores = 0, .steal_cores = 0, .load_average = -1};
    report->setup = (struct weir_report_setup){.known = true,
                                               .slots = 3,
                                               .batch_size = 8,
                                               .images_per_sample = 2,
                                               .device = -1,
                                               .width = 640,
                                               .height = 480,
                                               .out_width = 640,
                                               .out_height = 480,
                                               .encoded = true,
                                               .kind = WEIR_FRAME_JPEG,
                                               .frames_bytes = 900000000,
                                               .memory_free_bytes = 20000000000,
                                               .cached_at_start = 1,
                                               .copy_bytes_per_s = 1e10};
    report->queue_slots = 3;
    report->reads = 16000;
    report->read_bytes = 1600000000;
    snprintf(report->setup.io, sizeof report->setup.io, "pread");
    report->sources.n_cameras = 2;
    report->sources.files_read = 12;
    for (int i = 0; i < 2; i++) {
        struct weir_report_camera *camera = &report->sources.cameras[i];
        snprintf(camera->name, sizeof camera->name, "cam%d", i);
        camera->read = (struct weir_report_source){8000, 800000000, 0.4, 50e-6, 60e-6, 1e-3};
    }
    set_workers(made, 2, 9.8, 0, 0, 0.1);
    set_wait(made, 7.1);
    return made;
}

/* ---- rules for all reports ---- */

static uint32_t seed = 1;

static double some(double most)
{
    seed = seed * 1664525u + 1013904223u;
    return most * (seed >> 8) / (1 << 24);
}

static struct made *make_any(void)
{
    struct made *made = make_decoding();
    double on_core = some(10), core_wait = some(10 - on_core), reading = some(10 - on_core - core_wait);
    if (some(1) < 0.2)
        add_server(made, 1 + some(90), 1 + (int)some(90), 100);
    else
        set_workers(made, 1 + (int)some(WORKERS_MAX), on_core, core_wait, reading, 10 - on_core - core_wait - reading);
    made->report.prof.machine.cores = made->report.prof.machine.part = 1 + (int)some(16);
    made->report.prof.machine.others_cores = some(1) < 0.5 ? 0 : some(made->report.prof.machine.cores);
    made->report.prof.machine.steal_cores = some(1) < 0.8 ? 0 : some(2);
    if (some(1) < 0.3)
        add_row(made, "05_to_tensor_normalize", WEIR_KIND_WORK, WEIR_SIDE_WORKER, some(20), some(20));
    made->report.gpu.used = some(1) < 0.3;
    made->report.gpu.busy = some(1);
    set_wait(made, some(10));
    return made;
}

static void check_gains(const struct weir_verdict *verdict)
{
    double step = verdict->demands.bound[WEIR_RESOURCE_CONSUMER];
    for (int i = 0; i < verdict->found.n_advices; i++) {
        const struct weir_advice *a = &verdict->found.advices[i];
        bool other = a->kind == WEIR_ADVICE_FASTER_STEP || a->kind == WEIR_ADVICE_MORE_BATCHES || a->measured;
        if (a->ratio > 1 && !other && step > 0)
            cr_expect_leq(a->ratio * verdict->demands.bound_rate, step * 1.0001, "%s passes the step", a->setting);
    }
    for (int i = 1; i < verdict->found.n_causes; i++) {
        const struct weir_diagnosis_cause *before = &verdict->found.causes[i - 1], *cause = &verdict->found.causes[i];
        cr_expect(before->gain <= 0 || cause->gain <= 0 || before->gain >= cause->gain - 1e-9, "%s %f before %s %f",
                  weir_cause_name(WEIR_SUBJECT_LOADER, before->cause), before->gain,
                  weir_cause_name(WEIR_SUBJECT_LOADER, cause->cause), cause->gain);
    }
}

Test(verdict, gains_end_at_the_step_and_text_is_clean)
{
    struct weir_verdict verdict;
    for (int round = 0; round < 2000; round++) {
        struct made *made = make_any();
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        weir_verdict_make(&verdict, &made->report, &made->facts);
        weir_verdict_lines(out, &verdict);
        fclose(out);
        check_gains(&verdict);
        cr_expect_eq(strncmp(text, "verdict: ", 9), 0, "%s", text);
        cr_expect_null(strstr(text, "耗时:"), "only epoch lines may match grep 耗时:");
        cr_expect_null(strstr(text, "nan"), "%s", text);
        cr_expect_null(strstr(text, "inf "), "%s", text);
        free(text);
        free(made);
    }
}

/* ---- facts that a run measures for its verdict ---- */

static bool advised(const struct weir_verdict *verdict, enum weir_advice_kind kind)
{
    for (int i = 0; i < verdict->found.n_advices; i++)
        if (verdict->found.advices[i].kind == kind)
            return true;
    return false;
}

Test(verdict, cpu_time_that_grows_with_threads)
{
    struct weir_verdict verdict;
    struct made *made = make_decoding();
    made->facts.cpu_growth = 1.4;
    weir_verdict_make(&verdict, &made->report, &made->facts);
    cr_assert_eq(verdict.found.n_causes, 2);
    cr_expect_eq(verdict.found.causes[0].cause, WEIR_CAUSE_DECODE);
    cr_expect_eq(verdict.found.causes[1].cause, WEIR_CAUSE_MEMORY_BANDWIDTH);
    made->facts.cpu_growth = 1.2;
    weir_verdict_make(&verdict, &made->report, &made->facts);
    cr_expect_eq(verdict.found.n_causes, 1);
    free(made);
}

Test(verdict, a_run_with_more_workers_can_refute_the_advice)
{
    struct made *made = make_decoding();
    struct weir_verdict verdict;
    set_workers(made, 1, 9.8, 0, 0, 0.1);
    made->facts.more_workers = 1.06;
    weir_verdict_make(&verdict, &made->report, &made->facts);
    cr_expect(weir_diagnosis_has(&verdict.found, WEIR_CAUSE_TOO_FEW_WORKERS));
    cr_expect(advised(&verdict, WEIR_ADVICE_MORE_WORKERS));
    made->facts.more_workers = 1.04;
    weir_verdict_make(&verdict, &made->report, &made->facts);
    cr_expect_not(weir_diagnosis_has(&verdict.found, WEIR_CAUSE_TOO_FEW_WORKERS));
    cr_expect_not(advised(&verdict, WEIR_ADVICE_MORE_WORKERS));
    set_workers(made, 2, 2, 0, 7.9, 0.1); /* slow reads */
    weir_verdict_make(&verdict, &made->report, &made->facts);
    cr_expect_not(advised(&verdict, WEIR_ADVICE_MORE_WORKERS));
    made->facts.more_workers = 0; /* not measured */
    weir_verdict_make(&verdict, &made->report, &made->facts);
    cr_expect(advised(&verdict, WEIR_ADVICE_MORE_WORKERS));
    free(made);
}

/* ---- parts of verdicts ---- */

/* Sizes are rounded up by at most a tenth. Rounding 1.3 GB up to 2G could exceed the free memory. */
Test(verdict, bytes_as_they_are_typed)
{
    static const struct {
        double bytes;
        const char *flag, *text;
    } budgets[] = {{0, "1M", "1 MiB"},          {859 << 20, "859M", "859 MiB"}, {1.3e9, "1240M", "1240 MiB"},
                   {10e9, "9537M", "9537 MiB"}, {10737418240, "10G", "10 GiB"}, {11e9, "11G", "11 GiB"}};
    char text[24];
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        weir_cache_bytes_text(text, budgets[i].bytes, true);
        cr_expect_str_eq(text, budgets[i].flag);
        weir_cache_bytes_text(text, budgets[i].bytes, false);
        cr_expect_str_eq(text, budgets[i].text);
    }
}

/* image_bytes takes precedence over the output size, since cameras may differ in size. */
Test(verdict, bytes_of_an_image)
{
    struct weir_report_setup setup = {.out_width = 4, .out_height = 2, .normalised = true};
    cr_expect_float_eq(weir_setup_image_bytes(&setup), 4 * 2 * 3 * 4, 0);
    setup.image_bytes = 1000;
    cr_expect_float_eq(weir_setup_image_bytes(&setup), 1000, 0);
}

Test(verdict, idle_workers_could_have_more_of_the_cores_that_others_share)
{
    struct made *made = make_decoding();
    struct weir_demands demands;
    set_workers(made, 2, 0.5, 1.5, 0, 7.9);
    made->report.prof.machine.others_cores = 1.5;
    weir_demands_make(&demands, &made->report);
    cr_expect_float_eq(demands.reachable, 0.5, 1e-9, "two workers: 0.5 s on a core and 2 s waiting for one");
    free(made);
}
