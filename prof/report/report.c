#include "base/table.h"
#include "base/terminal.h"
#include "prof/record/switches.h"
#include "prof/report/machine.h"
#include "prof/report/report_fields.h"
#include "weir/profiler.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double SMALL = 0.001; /* rows with a smaller part of the time are folded into one line */

static bool has_share(const struct weir_report_row *row)
{
    return row->kind == WEIR_KIND_WORK && row->side == WEIR_SIDE_WORKER;
}

static void fill_rows(struct weir_report *report, const struct weir_snapshot *snapshot)
{
    double work_s = 0;
    report->n_rows = 0;
    for (int stage = 0; stage < snapshot->n_stages && stage < WEIR_STAGE_MAX; stage++) {
        const struct weir_stage_info *info = weir_stage_info(stage);
        if (!info || info->kind == WEIR_KIND_LOOP)
            continue;
        struct weir_report_row *row = &report->rows[report->n_rows++];
        weir_report_row_fill(row, info, &snapshot->stages[stage]);
        if (has_share(row))
            work_s += row->self_s;
        if (snapshot->others[stage].count == 0)
            continue;
        weir_report_row_fill(++row, info, &snapshot->others[stage]);
        row->side = WEIR_SIDE_HELPER;
        report->n_rows++;
    }
    for (int i = 0; i < report->n_rows; i++)
        if (has_share(&report->rows[i]) && work_s > 0)
            report->rows[i].share = report->rows[i].self_s / work_s;
}

int weir_report_from_snapshot(struct weir_report *report, const struct weir_snapshot *snapshot)
{
    fill_rows(report, snapshot);
    int code = weir_report_fill_threads(report, snapshot);
    if (code < 0)
        return code;
    report->zones = report->too_deep = 0;
    report->thread_s = 0;
    for (int i = 0; i < snapshot->n_threads; i++) {
        report->zones += snapshot->threads[i].zones;
        report->too_deep += snapshot->threads[i].too_deep;
        report->thread_s += (double)snapshot->threads[i].wall_ns / 1e9;
    }
    report->zone_cost_ns = weir_zone_cost_ns();
    report->profiler_share = 0;
    if (report->thread_s > 0)
        report->profiler_share = (double)report->zones * report->zone_cost_ns / 1e9 / report->thread_s;
    report->clock_error_ppm = weir_clock.error_ppm;
    report->cpu_sampled[0] = '\0';
    if (snapshot->switches_error)
        weir_switches_why(snapshot->switches_error, report->cpu_sampled, sizeof report->cpu_sampled);
    return 0;
}

void weir_report_free(struct weir_report *report)
{
    free(report->workers);
    report->workers = NULL;
    report->n_workers = 0;
}

/* ---- the stage table ---- */

enum { KIND = 1 };

static void print_name(FILE *out, const void *row)
{
    char name[WEIR_REPORT_NAME];
    weir_report_row_name(row, name);
    fputs(name, out);
}

/* Returns the time that a row without a share is compared with. */
static double side_wall_s(const struct weir_report *report, enum weir_report_side side)
{
    double wall_s = 0;
    if (side == WEIR_SIDE_CONSUMER && report->consumer.name[0])
        return report->consumer.wall_s;
    for (int i = 0; i < report->n_workers; i++)
        wall_s += report->workers[i].wall_s;
    return wall_s;
}

/* Returns whether the row is too small to be shown. The consumer's waits are always shown, because the absence of waits
 * is a result. */
static bool is_small(const struct weir_report *report, const struct weir_report_row *row)
{
    if (!weir_terminal_folds() || (row->side == WEIR_SIDE_CONSUMER && row->kind == WEIR_KIND_WAIT))
        return false;
    if (row->share >= 0)
        return row->share < SMALL;
    return row->total_s < SMALL * side_wall_s(report, row->side);
}

/* small: number of small rows; a single one is shown. sides: append the side to names that several rows can have,
 * because the table has no column "kind". */
static void add_rows(struct weir_table *table, const struct weir_report *report, int small,
                     const struct weir_report_row *further, int n_further, bool sides)
{
    weir_table_open_fields(table, &weir_row_fields);
    table->own[0].print = sides ? print_name : NULL;
    for (int i = 0; i < report->n_rows; i++)
        if (report->rows[i].count > 0 && (small == 1 || !is_small(report, &report->rows[i])))
            weir_table_row(table, &weir_row_fields, &report->rows[i]);
    for (int i = 0; i < n_further; i++)
        weir_table_row(table, &weir_row_fields, &further[i]);
}

void weir_report_stages_print(FILE *out, const struct weir_report *report, const struct weir_report_row *further,
                              int n_further)
{
    struct weir_table table;
    int with_calls = 0, small = 0;
    for (int i = 0; i < report->n_rows; i++) {
        with_calls += report->rows[i].count > 0;
        small += report->rows[i].count > 0 && is_small(report, &report->rows[i]);
    }
    if (with_calls == 0) {
        fputs("no stage was called\n", out);
        return;
    }
    add_rows(&table, report, small, further, n_further, false);
    if (!weir_table_shows(&table, out, KIND)) {
        weir_table_free(&table);
        add_rows(&table, report, small, further, n_further, true);
    }
    weir_table_print(out, &table);
    if (small > 1)
        fprintf(out, "%d more stages under %.1f %%: --wide\n", small, 100 * SMALL);
}

void weir_report_cost_print(FILE *out, const struct weir_report *report)
{
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    fprintf(text,
            "profiler: %" PRIu64
            " zones x %.1f ns = %.3f s of %.2f s thread time (%.4f %%), clock calibrated to %.2f ppm, CPU time %s%s",
            report->zones, report->zone_cost_ns, (double)report->zones * report->zone_cost_ns / 1e9, report->thread_s,
            100 * report->profiler_share, report->clock_error_ppm,
            report->cpu_sampled[0] ? "sampled because of " : "from context switches", report->cpu_sampled);
    if (report->too_deep > 0)
        fprintf(text, ", %" PRIu64 " zones nested deeper than %d were dropped", report->too_deep, WEIR_ZONES_DEEP);
    fputc('\n', text);
    weir_wrap_close(&wrap);
}

void weir_report_print(FILE *out, const struct weir_report *report)
{
    weir_report_stages_print(out, report, NULL, 0);
    weir_report_threads_print(out, report);
    weir_report_machine_print(out, &report->machine);
    weir_report_cost_print(out, report);
}
