/* Writes the lines of a log. */
#include "pipeline/report/log_fields.h"
#include "pipeline/report/report_parts_priv.h"

void weir_start_json(struct weir_json *json, const struct weir_start_line *line)
{
    weir_fields_json(json, &weir_start_fields, line);
}

void weir_measured_json(struct weir_json *json, const struct weir_measured_line *line)
{
    weir_fields_json(json, &weir_measured_fields, line);
}

void weir_epoch_json(struct weir_json *json, const struct weir_epoch_line *line)
{
    weir_fields_json(json, &weir_epoch_fields, line);
}

void weir_loader_report_json(struct weir_json *json, const struct weir_loader_report *report)
{
    weir_fields_json(json, &weir_stages_fields, report);
}

static void begin_line(struct weir_json *json, FILE *log, const char *type, const struct weir_fields *fields,
                       const void *object)
{
    weir_json_open(json, log, false);
    weir_json_object(json, NULL);
    weir_json_text(json, "type", type);
    weir_fields_json(json, fields, object);
}

static void end_line(struct weir_json *json, FILE *log)
{
    weir_json_end(json, '}');
    weir_json_close(json);
    fflush(log);
}

static void write_line(FILE *log, const char *type, const struct weir_fields *fields, const void *object)
{
    struct weir_json json;
    begin_line(&json, log, type, fields, object);
    end_line(&json, log);
}

void weir_start_log(FILE *log, const struct weir_start_line *line)
{
    write_line(log, "start", &weir_start_fields, line);
}

void weir_epoch_log(FILE *log, const struct weir_epoch_line *line)
{
    write_line(log, "epoch", &weir_epoch_fields, line);
}

void weir_measured_log(FILE *log, const struct weir_measured_line *line)
{
    write_line(log, "measured", &weir_measured_fields, line);
}

void weir_report_line(FILE *log, const struct weir_loader_report *report, const struct weir_report_addition *addition)
{
    struct weir_json json;
    begin_line(&json, log, "stages", &weir_stages_fields, report);
    if (addition)
        addition->json(addition->user, &json, report);
    end_line(&json, log);
}

void weir_loader_report_log(FILE *log, const struct weir_loader_report *report)
{
    weir_report_line(log, report, NULL);
}
