/* Prints figures per camera and per file, which distinguish a slow camera, a slow file and slow storage. */
#include "base/table.h"
#include "pipeline/report/report_parts_priv.h"

#include <inttypes.h>

static const double NOTHING_S = 1e-6; /* duration below which a call has no rate */
static const double NOTABLE = 2; /* a file is listed if its mean is at least this many times the median of all files */

double weir_source_bytes_per_s(const struct weir_report_source *source)
{
    return source->total_s > 0 ? (double)source->bytes / source->total_s : 0;
}

static void add_source(struct weir_table *table, const struct weir_report_source *source)
{
    char time[24];
    weir_table_cell(table, "%" PRIu64, source->count);
    weir_table_cell(table, "%s", source->count ? weir_report_time(time, source->p50_s) : "-");
    weir_table_cell(table, "%s", source->count ? weir_report_time(time, source->p99_s) : "-");
    /* Raw frames are read directly into the batch and need no decoding. */
    if (source->count > 0 && source->total_s > NOTHING_S * (double)source->count)
        weir_table_cell(table, "%.1f", weir_source_bytes_per_s(source) / 1e6);
    else
        weir_table_cell(table, "-");
}

static void print_cameras(FILE *out, const struct weir_report_sources *sources)
{
    static const struct weir_column columns[] = {
        {"camera", .left = true, .shrink_to = 16},
        {.heading = "reads"},
        {"p50", .priority = 1},
        {.heading = "p99"},
        {"MB/s", .priority = 2},
        {.heading = "decoded"},
        {"p50", .priority = 1},
        {.heading = "p99"},
        {"MB/s", .priority = 2},
    };
    struct weir_table table;
    weir_table_open(&table, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < sources->n_cameras; i++) {
        weir_table_cell(&table, "%s", sources->cameras[i].name);
        add_source(&table, &sources->cameras[i].read);
        add_source(&table, &sources->cameras[i].decode);
    }
    weir_table_print(out, &table);
}

static void print_files(FILE *out, const struct weir_report_sources *sources)
{
    static const struct weir_column columns[] = {
        {"", .width = 11}, {"", .left = true, .shrink_to = 24}, {"", .left = true}};
    struct weir_table table;
    char time[24];
    fprintf(out, "files by mean read time, the slowest of %" PRIu64 " (median %s):\n", sources->files_read,
            weir_report_time(time, sources->files_median_s));
    weir_table_open(&table, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < sources->n_files; i++) {
        const struct weir_report_file *file = &sources->files[i];
        weir_table_cell(&table, "%s", weir_report_time(time, file->mean_s));
        weir_table_cell(&table, "%s", file->name);
        weir_table_cell(&table, "%" PRIu64 " reads, max %s", file->count, weir_report_time(time, file->max_s));
    }
    weir_table_print(out, &table);
}

static void print_calls(FILE *out, const struct weir_report_sources *sources)
{
    static const struct weir_column columns[] = {{"", .width = 11},
                                                 {"", .left = true, .width = 6},
                                                 {"", .left = true, .shrink_to = 24},
                                                 {"", .left = true, .shrink_to = 24}};
    struct weir_table table;
    char time[24];
    fputs("slowest calls:\n", out);
    weir_table_open(&table, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < sources->n_calls && i < WEIR_REPORT_CALLS_SHOWN; i++) {
        const struct weir_report_call *call = &sources->calls[i];
        weir_table_cell(&table, "%s", weir_report_time(time, call->s));
        weir_table_cell(&table, "%s", call->decode ? "decode" : "read");
        weir_table_cell(&table, "%s", call->file);
        weir_table_cell(&table, "%s[%" PRId64 "]", call->camera, call->t);
    }
    weir_table_print(out, &table);
}

void weir_report_sources_print(FILE *out, const struct weir_loader_report *report)
{
    const struct weir_report_sources *sources = &report->sources;
    if (sources->n_cameras > 0)
        print_cameras(out, sources);
    if (sources->files_read > 1 && (report->final || sources->files[0].mean_s > NOTABLE * sources->files_median_s))
        print_files(out, sources);
    if (sources->n_calls > 0 && report->final)
        print_calls(out, sources);
}
