#include "analyze/trials/trial.h"
#include "analyze/logs/log_read.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Which of the required records have been read. */
struct seen {
    bool run, measured, stages;
};

static void add_rows(struct weir_trial *trial, const struct weir_report_row *rows, int n)
{
    for (int i = 0; i < n && trial->n_stages < WEIR_TRIAL_STAGES; i++)
        trial->stages[trial->n_stages++] = rows[i];
}

static void take_report(struct weir_trial *trial, const struct weir_loader_report *report)
{
    trial->cpu_s = report->cpu_s;
    trial->read_bytes = (double)report->read_bytes;
    trial->others_cores = report->prof.machine.others_cores;
    trial->workers_wall_s = 0;
    for (int i = 0; i < report->prof.n_workers; i++)
        trial->workers_wall_s += report->prof.workers[i].wall_s;
    trial->n_stages = 0;
    add_rows(trial, report->prof.rows, report->prof.n_rows);
    add_rows(trial, report->gpu.rows, report->gpu.n_rows);
}

/* Takes the figures from a record. Moves the record with the final table to *last, unless last is NULL. */
static void take_record(struct weir_trial *trial, struct seen *seen, struct weir_log_record *record,
                        struct weir_log_record *last)
{
    if (record->type == WEIR_LOG_RUN) {
        trial->used = record->used;
        seen->run = record->used.known;
    } else if (record->type == WEIR_LOG_MEASURED) {
        trial->measured = record->measured;
        seen->measured = true;
    } else if (record->type == WEIR_LOG_STAGES) {
        take_report(trial, &record->report);
        seen->stages = true;
        if (last && record->report.final) {
            weir_log_record_clear(last);
            *last = *record;
            *record = (struct weir_log_record){0};
        }
    }
}

static int check(struct weir_trial *trial, const struct seen *seen, struct weir_err *err)
{
    const struct weir_measured_line *m = &trial->measured;
    if (!seen->run || !seen->measured || !seen->stages)
        return weir_err_set(err, -EBADMSG, "its output has no line \"%s\"",
                            !seen->run       ? "run"
                            : seen->measured ? "stages"
                                             : "measured");
    if (m->seconds <= 0 || m->images == 0 || m->images_per_s < 0 || m->samples_per_s < 0)
        return weir_err_set(err, -EBADMSG, "it ended before anything was measured");
    trial->wait_p99_s = -1;
    for (int i = 0; i < trial->n_stages; i++)
        if (strncmp(trial->stages[i].name, "08_", 3) == 0)
            trial->wait_p99_s = fmax(trial->wait_p99_s, trial->stages[i].p99_s);
    return 0;
}

int weir_trial_parse(struct weir_trial *trial, struct weir_log_record *last, const char *text, size_t length,
                     struct weir_err *err)
{
    struct weir_log_record record = {0};
    struct weir_lines lines;
    struct seen seen = {false, false, false};
    *trial = (struct weir_trial){.others_cores = -1};
    FILE *in = length > 0 ? fmemopen((void *)(uintptr_t)text, length, "r") : NULL;
    if (!in)
        return length > 0 ? weir_err_set(err, -ENOMEM, "out of memory") : check(trial, &seen, err);
    int rc;
    weir_lines_open(&lines, in);
    while ((rc = weir_log_next(&lines, &record, err)) == WEIR_LOG_RECORD)
        take_record(trial, &seen, &record, last);
    weir_lines_close(&lines);
    weir_log_record_clear(&record);
    fclose(in);
    if (rc >= 0 && last && !last->parsed_)
        return weir_err_set(err, -EBADMSG, "its output has no table of the whole run");
    return rc < 0 ? rc : check(trial, &seen, err);
}

/* ---- the limiting stage ---- */

static bool is(const struct weir_report_row *stage, const char *number)
{
    return strncmp(stage->name, number, strlen(number)) == 0;
}

/* Whether the stage is a slot wait (09) or an idle wait (09b), which do not slow down the worker. */
static bool is_idle(const struct weir_report_row *stage)
{
    return is(stage, "09_") || is(stage, "09b_");
}

static bool is_worker(const struct weir_report_row *stage)
{
    return stage->side == WEIR_SIDE_WORKER && (stage->kind == WEIR_KIND_WORK || stage->kind == WEIR_KIND_WAIT);
}

static bool is_consumer(const struct weir_report_row *stage)
{
    bool own =
        is(stage, "24_") || is(stage, "25_"); /* weir run's checksums and reports, which are not part of training */
    return stage->side == WEIR_SIDE_CONSUMER && !own && (stage->kind == WEIR_KIND_WORK || is(stage, "08b_"));
}

const struct weir_report_row *weir_trial_bound(const struct weir_trial *trial, double *part)
{
    const struct weir_report_row *busiest = NULL, *taking = NULL;
    double ahead_s = 0, all_s = 0;
    for (int i = 0; i < trial->n_stages; i++) {
        const struct weir_report_row *stage = &trial->stages[i];
        if (is_worker(stage))
            all_s += stage->self_s;
        if (is_worker(stage) && is(stage, "09_"))
            ahead_s += stage->self_s;
        if (is_worker(stage) && !is_idle(stage) && (!busiest || stage->self_s > busiest->self_s))
            busiest = stage;
        if (is_consumer(stage) && (!taking || stage->self_s > taking->self_s))
            taking = stage;
    }
    all_s = trial->workers_wall_s > all_s ? trial->workers_wall_s : all_s;
    if (taking && all_s > 0 && ahead_s > all_s / 2) { /* the workers mostly wait for the consumer */
        *part = trial->measured.seconds > 0 ? fmin(taking->self_s / trial->measured.seconds, 1) : 0;
        return taking;
    }
    *part = busiest && all_s > 0 ? busiest->self_s / all_s : 0;
    return busiest;
}

/* ---- running ---- */

int weir_trial_run(struct weir_trial *trial, struct weir_log_record *last, const struct weir_child_config *command,
                   struct weir_err *err)
{
    struct weir_child child = {0};
    int rc = weir_child_run(&child, command, err);
    if (rc == 0)
        rc = weir_trial_parse(trial, last, child.output, child.length, err);
    if (rc < 0)
        *trial = (struct weir_trial){0};
    weir_child_free(&child);
    return rc;
}
