#include "base/text.h"
#include "prof/record/switches.h"
#include "prof/report/machine.h"
#include "prof/report/report_fields.h"
#include "weir/profiler.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void print_row(FILE *out, const struct weir_report_row *row, int width)
{
    char kind[24], total[24], mean[24], p50[24], p90[24], p99[24], max[24], cpu[24] = "-", share[24] = "-";
    bool worker = row->side == WEIR_SIDE_WORKER;
    snprintf(kind, sizeof kind, "%s%s%s", worker ? "" : weir_report_side_name(row->side), worker ? "" : "-",
             weir_stage_kind_name(row->kind));
    snprintf(total, sizeof total, "%.3fs", row->total_s);
    if (row->cpu_over_wall >= 0)
        snprintf(cpu, sizeof cpu, "%.2f", row->cpu_over_wall);
    if (row->share >= 0)
        snprintf(share, sizeof share, "%.1f%%", 100 * row->share);
    fprintf(out, "%s%*s  %-13s %9" PRIu64 " %11s %9s %9s %9s %9s %9s %8s %6s\n", row->name,
            width - weir_text_width(row->name), "", kind, row->count, total, weir_report_time(mean, row->mean_s),
            weir_report_time(p50, row->p50_s), weir_report_time(p90, row->p90_s), weir_report_time(p99, row->p99_s),
            weir_report_time(max, row->max_s), cpu, share);
}

void weir_report_stages_print(FILE *out, const struct weir_report *report, const struct weir_report_row *further,
                              int n_further)
{
    int width = 22, with_calls = 0;
    for (int i = 0; i < report->n_rows; i++) {
        const struct weir_report_row *row = &report->rows[i];
        with_calls += row->count > 0;
        if (row->count > 0 && weir_text_width(row->name) > width)
            width = weir_text_width(row->name);
    }
    for (int i = 0; i < n_further; i++)
        if (weir_text_width(further[i].name) > width)
            width = weir_text_width(further[i].name);
    if (with_calls == 0) {
        fputs("no stage was called\n", out);
        return;
    }
    fprintf(out, "%-*s  %-13s %9s %11s %9s %9s %9s %9s %9s %8s %6s\n", width, "stage", "kind", "calls", "total", "mean",
            "p50", "p90", "p99", "max", "CPU/wall", "share");
    for (int i = 0; i < report->n_rows; i++)
        if (report->rows[i].count > 0)
            print_row(out, &report->rows[i], width);
    for (int i = 0; i < n_further; i++)
        print_row(out, &further[i], width);
}

void weir_report_cost_print(FILE *out, const struct weir_report *report)
{
    fprintf(out,
            "profiler: %" PRIu64
            " zones x %.1f ns = %.3f s of %.2f s thread time (%.4f %%), clock calibrated to %.2f ppm, CPU time %s%s",
            report->zones, report->zone_cost_ns, (double)report->zones * report->zone_cost_ns / 1e9, report->thread_s,
            100 * report->profiler_share, report->clock_error_ppm,
            report->cpu_sampled[0] ? "sampled because of " : "from context switches", report->cpu_sampled);
    if (report->too_deep > 0)
        fprintf(out, ", %" PRIu64 " zones nested deeper than %d were dropped", report->too_deep, WEIR_ZONES_DEEP);
    fputc('\n', out);
}

void weir_report_print(FILE *out, const struct weir_report *report)
{
    weir_report_stages_print(out, report, NULL, 0);
    weir_report_threads_print(out, report);
    weir_report_machine_print(out, &report->machine);
    weir_report_cost_print(out, report);
}
