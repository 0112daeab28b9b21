/* A measured run in its own process, over real files: its figures and its report. */
#include "analyze/trials/child.h"
#include "analyze/trials/trial.h"
#include "analyze/verdict/verdict.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(measured_run, .init = fixture_open, .fini = fixture_close);

static struct weir_trial trial;
static struct weir_log_record record; /* too large for the stack */

static int measure(const char *data, const char *const *options, volatile sig_atomic_t *interrupted,
                   struct weir_err *err)
{
    const char *const begin[] = {"weir", "run", data, NULL};
    struct weir_words words = {0};
    weir_words_add_all(&words, begin);
    weir_words_add_all(&words, options);
    weir_words_add_measured(&words, 0.05);
    const struct weir_child_config command = {
        .program = getenv("WEIR_PROGRAM"), .argv = words.argv, .seconds = 120, .interrupted = interrupted};
    *err = WEIR_ERR_NONE;
    int rc = weir_trial_run(&trial, &record, &command, err);
    weir_words_free(&words);
    return rc;
}

Test(measured_run, figures_and_report_are_of_the_same_seconds)
{
    static const char *const options[] = {"--num-workers", "2", "--batch-size", "4", "--num-epochs", "1", NULL};
    const char *data = fixture_synth("episodes", "act-jpeg", 2, 30, 64, 48, "top,wrist");
    struct weir_demands demands;
    struct weir_verdict verdict;
    struct weir_err err;
    cr_assert_eq(measure(data, options, NULL, &err), 0, "%s", err.text);
    const struct weir_loader_report *report = &record.report;
    cr_assert(report->final && report->prof.n_workers == 2 && report->setup.batch_size == 4);
    cr_assert(trial.measured.images > 0 && trial.measured.seconds >= 0.05 && trial.used.workers == 2);
    weir_demands_make(&demands, report);
    cr_assert(demands.known && demands.workers == 2 && demands.bound_rate > 0);
    cr_expect(fabs(report->cpu_s - trial.cpu_s) < 1e-6, "%g %g", report->cpu_s, trial.cpu_s);
    weir_verdict_make(&verdict, report, NULL);
    cr_expect(verdict.found.n_causes > 0);
    weir_log_record_clear(&record);
    weir_log_record_clear(&record); /* clearing twice is safe */
}

Test(measured_run, passes_any_number_of_arguments)
{
    enum { MANY = 300 };
    const char *options[MANY + 1] = {NULL}, *data = fixture_synth("many", "act-jpeg", 2, 30, 64, 48, "top");
    for (int i = 0; i < MANY; i++)
        options[i] = "--allow-ragged";
    struct weir_err err;
    cr_assert_eq(measure(data, options, NULL, &err), 0, "%s", err.text);
    weir_log_record_clear(&record);
}

Test(measured_run, failures_have_a_line)
{
    static const char *const unknown[] = {"--no-such-option", NULL};
    volatile sig_atomic_t interrupted = 1;
    struct weir_err err;
    cr_assert_eq(measure("/not/there", NULL, NULL, &err), -ECHILD);
    cr_expect(strstr(err.text, "/not/there"), "%s", err.text);
    cr_assert(trial.measured.images == 0 && record.parsed_ == NULL, "a failed trial has figures");
    cr_assert_eq(measure("/not/there", unknown, NULL, &err), -ECHILD);
    cr_assert_eq(measure("/not/there", NULL, &interrupted, &err), -EINTR);
    cr_expect_str_eq(err.text, "interrupted");

    /* With --help the child exits with status 0, but its output is not that of a run. */
    static const char *const help[] = {"--help", NULL};
    cr_assert_eq(measure("/not/there", help, NULL, &err), -EBADMSG);
}
