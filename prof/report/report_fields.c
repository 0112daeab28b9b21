#include "prof/report/report_fields.h"

#include "base/field_rows.h"

static const char *kind_name(int kind)
{
    return weir_stage_kind_name((enum weir_stage_kind)kind);
}

static const char *side_name(int side)
{
    return weir_report_side_name((enum weir_report_side)side);
}

/* The kind, after the side unless that is the workers'. */
static void print_kind(FILE *out, const void *object)
{
    const struct weir_report_row *row = object;
    bool worker = row->side == WEIR_SIDE_WORKER;
    fprintf(out, "%s%s%s", worker ? "" : side_name((int)row->side), worker ? "" : "-", kind_name((int)row->kind));
}

/* A zone around other zones has CPU time of its own, next to a total that contains theirs. */
static void print_cpu_over_wall(FILE *out, const void *object)
{
    const struct weir_report_row *row = object;
    if (row->cpu_over_wall >= 0 && row->kind != WEIR_KIND_INCLUSIVE)
        fprintf(out, "%.2f", row->cpu_over_wall);
    else
        putc('-', out);
}

#define S struct weir_report_row
static const struct weir_field row[] = {
    PLAIN("name", name, COLUMN("stage", .left = true, .width = 22, .shrink_to = 23)),
    {.key = "kind",
     .type = WEIR_FIELD_NAME,
     .flags = WEIR_FIELD_STRICT,
     WEIR_FIELD_AT(S, kind),
     .name = kind_name,
     .names = WEIR_KIND_LOOP + 1,
     COLUMN("kind", .priority = 5, .left = true, .print = print_kind)},
    {.key = "side", .type = WEIR_FIELD_NAME, WEIR_FIELD_AT(S, side), .name = side_name, .names = WEIR_SIDES},
    PLAIN("count", count, COLUMN("calls", .priority = 1)),
    PLAIN("total_s", total_s, SECONDS("total", 3)),
    PLAIN("self_s", self_s),
    PLAIN("mean_s", mean_s, TIME("mean", .priority = 1)),
    PLAIN("min_s", min_s),
    PLAIN("p50_s", p50_s, TIME("p50", .priority = 7)),
    PLAIN("p90_s", p90_s, TIME("p90", .priority = 8)),
    PLAIN("p99_s", p99_s, TIME("p99", .priority = 3)),
    PLAIN("max_s", max_s, TIME("max", .priority = 6)),
    KNOWN("cpu_s", cpu_s),
    KNOWN("preempted_s", preempted_s),
    KNOWN("cpu_over_wall", cpu_over_wall, COLUMN("CPU/wall", .priority = 4, .print = print_cpu_over_wall)),
    KNOWN("share", share, PERCENT("share", 1)),
};
WEIR_FIELDS(weir_row_fields, row);
#undef S

#define S             struct weir_report_worker
#define PART(text, p) PERCENT(text, 1, .priority = (p), .whole = offsetof(S, wall_s))
static const struct weir_field thread[] = {
    PLAIN("name", name, COLUMN("worker", .left = true)),
    PLAIN("wall_s", wall_s, SECONDS("wall", 2)),
    PLAIN(NULL, work_s, PART("work", 0)),
    PLAIN("work_s", work_s, SECONDS("work_s", 2, .priority = 4)),
    PLAIN(NULL, wait_s, PART("waits", 0)),
    PLAIN("wait_s", wait_s, SECONDS("wait_s", 2, .priority = 4)),
    PLAIN(NULL, unattributed_s, PART("unattributed", 3)),
    PLAIN("unattributed_s", unattributed_s, .older = "other_s", SECONDS("unattributed_s", 2, .priority = 6)),
    PLAIN("cpu_s", cpu_s, SECONDS("CPU", 2, .priority = 5)),
    PLAIN(NULL, cpu_s, PART("on-CPU", 1)),
    KNOWN("work_cpu_s", work_cpu_s),
    KNOWN("wait_cpu_s", wait_cpu_s),
    KNOWN("unattributed_cpu_s", unattributed_cpu_s, .older = "other_cpu_s"),
    KNOWN("throttled_s", throttled_s, PART("throttled", 1)),
    KNOWN("core_wait_s", core_wait_s, PART("core-wait", 0)),
    KNOWN("blocked_s", blocked_s, PART("blocked", 1)),
    KNOWN("steal_s", steal_s, PART("steal", 2)),
};
WEIR_FIELDS(weir_thread_fields, thread);
#undef PART
#undef S

#define S struct weir_report_machine
static const struct weir_field throttling[] = {
    PLAIN("periods", periods),
    PLAIN("throttled_periods", throttled),
    PLAIN("throttled_s", throttled_s),
};
static WEIR_FIELDS(throttling_fields, throttling);
static const struct weir_field machine[] = {
    PLAIN("cores_usable", cores),
    PLAIN("cores_online", online),
    PLAIN("cores_part", part),
    OMIT("quota_cores", quota_cores),
    {.type = WEIR_FIELD_GROUP, .inner = &throttling_fields, WEIR_FIELD_PRESENT(S, throttling)},
    OMIT("memory_limit_bytes", memory_limit_bytes),
    WEIR_FIELD(S, "others_cores", others_cores, WEIR_FIELD_KNOWN | WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "steal_cores", steal_cores, WEIR_FIELD_KNOWN | WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "load_average_at_start", load_average, WEIR_FIELD_KNOWN | WEIR_FIELD_OMIT),
};
static WEIR_FIELDS(machine_fields, machine);
#undef S

#define S struct weir_report
static const struct weir_field prof[] = {
    {.key = "stages",
     .type = WEIR_FIELD_ARRAY,
     .offset = offsetof(S, rows),
     .size = sizeof(struct weir_report_row),
     .inner = &weir_row_fields,
     WEIR_FIELD_PRESENT(struct weir_report_row, count),
     .count = offsetof(S, n_rows),
     .max = WEIR_REPORT_ROWS},
    {.key = "workers",
     .type = WEIR_FIELD_ARRAY,
     .flags = WEIR_FIELD_OWNED,
     .offset = offsetof(S, workers),
     .size = sizeof(struct weir_report_worker),
     .inner = &weir_thread_fields,
     .count = offsetof(S, n_workers),
     .max = WEIR_REPORT_WORKERS_MAX},
    MEMBER_IF("consumer", weir_thread_fields, consumer, name),
    MEMBER_IF("machine", machine_fields, machine, used),
};
WEIR_FIELDS(weir_prof_fields, prof);

static const struct weir_field cost[] = {
    PLAIN("zones", zones),
    PLAIN("zone_cost_ns", zone_cost_ns),
    PLAIN("thread_s", thread_s),
    PLAIN("share", profiler_share),
    PLAIN("clock_error_ppm", clock_error_ppm),
    OMIT("zones_too_deep", too_deep),
    WEIR_FIELD(S, "cpu_sampled", cpu_sampled, WEIR_FIELD_OPTIONAL),
};
static WEIR_FIELDS(inner_cost_fields, cost);
static const struct weir_field profiler[] = {
    {.key = "profiler", .type = WEIR_FIELD_OBJECT, .inner = &inner_cost_fields},
};
WEIR_FIELDS(weir_cost_fields, profiler);

void weir_report_json(struct weir_json *json, const struct weir_report *report)
{
    weir_fields_json(json, &weir_prof_fields, report);
}

void weir_report_cost_json(struct weir_json *json, const struct weir_report *report)
{
    weir_fields_json(json, &weir_cost_fields, report);
}

void weir_report_row_json(struct weir_json *json, const struct weir_report_row *report_row)
{
    weir_fields_object(json, NULL, &weir_row_fields, report_row);
}
