/* The classic Chinese table of stages, from a training program's log. */
#include "analyze/logs/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Adds a stage. Later ones of the same name are left out, because readers take them for the start of a table. */
static void add_stage(struct weir_report *report, const char *name, bool is_wait, double total_s, double calls)
{
    if (report->n_rows == WEIR_REPORT_ROWS || !(calls >= 1 && calls < 1e15) || !(total_s >= 0))
        return;
    for (int i = 0; i < report->n_rows; i++)
        if (strcmp(report->rows[i].name, name) == 0)
            return;
    struct weir_report_row *row = &report->rows[report->n_rows++];
    *row = (struct weir_report_row){.kind = is_wait ? WEIR_KIND_WAIT : WEIR_KIND_WORK,
                                    .side = WEIR_SIDE_CONSUMER,
                                    .count = (uint64_t)round(calls),
                                    .total_s = total_s,
                                    .mean_s = total_s / round(calls)};
    snprintf(row->name, sizeof row->name, "%s", name);
}

/* Adds each column that is a part of the step. */
static void add_columns(struct weir_report *report, const struct weir_trainer_log *log)
{
    for (int column = 0; column < WEIR_TRAINER_COLUMNS && log->trainer->columns[column].name; column++) {
        enum weir_trainer_role role = log->trainer->columns[column].role;
        double sum_s = 0, n = 0;
        for (size_t i = 0; i < log->n_rows; i++)
            if (!isnan(log->rows[i].values[column])) {
                sum_s += log->rows[i].values[column];
                n++;
            }
        if (role != WEIR_TRAINER_OTHER && n > 0)
            add_stage(report, role == WEIR_TRAINER_WAIT ? "08_wait_for_data" : log->trainer->columns[column].name,
                      role == WEIR_TRAINER_WAIT, log->steps_per_row * sum_s, log->steps_per_row * n);
    }
}

bool weir_trainer_stages_zh(FILE *out, const struct weir_trainer_log *log)
{
    struct weir_loader_report *report = calloc(1, sizeof *report);
    if (!report)
        return false;
    report->timing = true;
    double total_s, calls;
    for (size_t i = 0; i < log->n_rows && log->trainer->stage; i++)
        if (log->trainer->stage(&log->rows[i], &total_s, &calls))
            add_stage(&report->prof, log->rows[i].label, false, total_s, calls);
    if (!log->trainer->stage)
        add_columns(&report->prof, log);
    bool found = report->prof.n_rows > 0;
    if (found)
        weir_loader_report_loop_print(out, report, WEIR_LANG_ZH);
    free(report);
    return found;
}
