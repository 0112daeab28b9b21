/* Names and row formatting, shared by tables and logs. */
#include "base/text.h"
#include "weir/profiler.h"

#include <math.h>
#include <string.h>

const char *weir_stage_kind_name(enum weir_stage_kind kind)
{
    static const char *const names[] = {
        [WEIR_KIND_WORK] = "work", [WEIR_KIND_INCLUSIVE] = "inclusive", [WEIR_KIND_SPAN] = "span",
        [WEIR_KIND_WAIT] = "wait", [WEIR_KIND_LOOP] = "loop",
    };
    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "work";
}

const char *weir_report_side_name(enum weir_report_side side)
{
    static const char *const names[WEIR_SIDES] = {"worker", "consumer", "helper", "gpu"};
    return side < WEIR_SIDES ? names[side] : names[WEIR_SIDE_WORKER];
}

void weir_report_row_name(const struct weir_report_row *row, char name[WEIR_REPORT_NAME])
{
    bool told = row->side == WEIR_SIDE_HELPER || row->side == WEIR_SIDE_GPU;
    const char *side = told ? weir_report_side_name(row->side) : "";
    snprintf(name, WEIR_REPORT_NAME, "%s%s%s%s", row->name, told ? " (" : "", side, told ? ")" : "");
}

void weir_report_row_fill(struct weir_report_row *row, const struct weir_stage_info *info,
                          const struct weir_stage_stats *stats)
{
    *row = (struct weir_report_row){.kind = info->kind,
                                    .side = info->consumer ? WEIR_SIDE_CONSUMER : WEIR_SIDE_WORKER,
                                    .cpu_s = -1,
                                    .preempted_s = -1,
                                    .cpu_over_wall = -1,
                                    .share = -1};
    snprintf(row->name, sizeof row->name, "%s", info->name);
    weir_text_printable(row->name);
    if (stats->count == 0)
        return;
    row->count = stats->count;
    row->total_s = (double)stats->total_ns / 1e9;
    row->self_s = info->kind == WEIR_KIND_SPAN ? 0 : (double)stats->self_ns / 1e9;
    row->mean_s = row->total_s / (double)stats->count;
    row->min_s = (double)stats->min_ns / 1e9;
    row->max_s = (double)stats->max_ns / 1e9;
    row->p50_s = weir_stage_quantile_ns(stats, 0.50) / 1e9;
    row->p90_s = weir_stage_quantile_ns(stats, 0.90) / 1e9;
    row->p99_s = weir_stage_quantile_ns(stats, 0.99) / 1e9;
    double cpu_ns = info->kind == WEIR_KIND_SPAN ? -1 : weir_stage_cpu_ns(stats);
    if (cpu_ns < 0)
        return;
    row->cpu_s = cpu_ns / 1e9;
    row->cpu_over_wall = stats->self_ns > 0 ? fmin(cpu_ns / (double)stats->self_ns, 1) : -1;
    if (stats->measured == stats->count)
        row->preempted_s = (double)stats->preempted_ns / 1e9;
}

const char *weir_report_time(char text[24], double seconds)
{
    struct weir_time_text time = weir_time(seconds);
    return memcpy(text, time.text, sizeof time.text);
}
