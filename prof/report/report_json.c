/* The profiler's members of a log line. */
#include "prof/report/machine.h"
#include "prof/report/report_priv.h"

void weir_report_json(struct weir_json *json, const struct weir_report *report)
{
    weir_json_array(json, "stages");
    for (int i = 0; i < report->n_rows; i++)
        if (report->rows[i].count > 0)
            weir_report_row_json(json, &report->rows[i]);
    weir_json_end(json, ']');
    weir_report_threads_json(json, report);
    weir_report_machine_json(json, &report->machine);
}

void weir_report_cost_json(struct weir_json *json, const struct weir_report *report)
{
    weir_json_object(json, "profiler");
    weir_json_uint(json, "zones", report->zones);
    weir_json_double(json, "zone_cost_ns", report->zone_cost_ns);
    weir_json_double(json, "thread_s", report->thread_s);
    weir_json_double(json, "share", report->profiler_share);
    weir_json_double(json, "clock_error_ppm", report->clock_error_ppm);
    if (report->too_deep > 0)
        weir_json_uint(json, "zones_too_deep", report->too_deep);
    weir_json_text(json, "cpu_sampled", report->cpu_sampled[0] ? report->cpu_sampled : NULL);
    weir_json_end(json, '}');
}
