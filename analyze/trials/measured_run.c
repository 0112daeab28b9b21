#include "analyze/trials/measured_run.h"

#include "analyze/trials/trial.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OWN_ARGS = 8 };

/* The child prints no table before the last one: the last one alone is of the measured seconds. */
static int make_argv(const char *argv[], const struct weir_measured_run_config *config, const char *seconds)
{
    const char *const last[] = {"--seconds", seconds, "--every", "0", "--json"};
    int n = 0;
    argv[n++] = "weir";
    argv[n++] = "run";
    for (const char *const *arg = config->args; *arg; arg++) {
        if (n == WEIR_MEASURED_ARGS + 2)
            return -E2BIG;
        argv[n++] = *arg;
    }
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++)
        argv[n++] = last[i];
    argv[n] = NULL;
    return 0;
}

/* The record of the last table, as `weir report` reads it. */
static int read_report(struct weir_log_record *record, char *text, size_t length, struct weir_err *err)
{
    struct weir_lines lines;
    FILE *in = length > 0 ? fmemopen(text, length, "r") : NULL;
    if (!in)
        return length > 0 ? weir_err_set(err, -ENOMEM, "out of memory")
                          : weir_err_set(err, -EBADMSG, "it printed nothing");
    weir_lines_open(&lines, in);
    int rc = WEIR_LOG_RECORD;
    while (rc == WEIR_LOG_RECORD && !(record->type == WEIR_LOG_STAGES && record->report.final))
        rc = weir_log_next(&lines, record, err);
    weir_lines_close(&lines);
    fclose(in);
    if (rc == WEIR_LOG_RECORD)
        return 0;
    return rc < 0 ? rc : weir_err_set(err, -EBADMSG, "its output has no table of the whole run");
}

int weir_measured_run(struct weir_measured_run *run, const struct weir_measured_run_config *config,
                      struct weir_err *err)
{
    const char *argv[WEIR_MEASURED_ARGS + OWN_ARGS];
    char seconds[32];
    struct weir_trial trial;
    memset(run, 0, sizeof *run);
    snprintf(seconds, sizeof seconds, "%.9g", config->seconds);
    if (make_argv(argv, config, seconds) < 0)
        return weir_err_set(err, -E2BIG, "more than %d arguments for weir run", WEIR_MEASURED_ARGS);
    const struct weir_trial_config child = {.program = config->program ? config->program : "/proc/self/exe",
                                            .argv = (char *const *)argv,
                                            .seconds = config->patience_s,
                                            .interrupted = config->interrupted};
    int rc = weir_trial_run(&trial, &child, err);
    if (config->interrupted && *config->interrupted) /* Ctrl-C reaches the child, too: it ended early */
        rc = weir_err_set(err, -EINTR, "interrupted");
    if (rc == 0)
        rc = weir_turn_parse(&run->turn, trial.output, trial.length, err);
    if (rc == 0)
        rc = read_report(&run->record_, trial.output, trial.length, err);
    weir_trial_free(&trial);
    if (rc < 0)
        weir_measured_run_clear(run);
    return rc;
}

const struct weir_loader_report *weir_measured_report(const struct weir_measured_run *run)
{
    return &run->record_.report;
}

void weir_measured_run_clear(struct weir_measured_run *run)
{
    weir_log_record_clear(&run->record_);
    memset(run, 0, sizeof *run);
}
