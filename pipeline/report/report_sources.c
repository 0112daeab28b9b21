/* Prints figures per camera and file, to tell apart a slow camera, a slow file and slow storage. */
#include "base/text.h"
#include "pipeline/report/report_parts_priv.h"

#include <inttypes.h>

static const double NOTHING_S = 1e-6; /* a shorter call has no rate */
static const double NOTABLE = 2;      /* ratio to the median of all files above which a file gets a line */

static double bytes_per_s(const struct weir_report_source *source)
{
    return source->total_s > 0 ? (double)source->bytes / source->total_s : 0;
}

static void print_source(FILE *out, const struct weir_report_source *source)
{
    char p50[24], p99[24], rate[24] = "-"; /* raw frames, read straight into the batch, have no decoding */
    if (source->total_s > NOTHING_S * (double)source->count)
        snprintf(rate, sizeof rate, "%.1f", bytes_per_s(source) / 1e6);
    if (source->count == 0)
        fprintf(out, " %9d %9s %9s %9s", 0, "-", "-", "-");
    else
        fprintf(out, " %9" PRIu64 " %9s %9s %9s", source->count, weir_report_time(p50, source->p50_s),
                weir_report_time(p99, source->p99_s), rate);
}

static void print_cameras(FILE *out, const struct weir_report_sources *sources)
{
    int width = 22;
    for (int i = 0; i < sources->n_cameras; i++)
        if (weir_text_width(sources->cameras[i].name) > width)
            width = weir_text_width(sources->cameras[i].name);
    fprintf(out, "%-*s %9s %9s %9s %9s %9s %9s %9s %9s\n", width, "camera", "reads", "p50", "p99", "MB/s", "decoded",
            "p50", "p99", "MB/s");
    for (int i = 0; i < sources->n_cameras; i++) {
        const struct weir_report_camera *camera = &sources->cameras[i];
        fprintf(out, "%s%*s", camera->name, width - weir_text_width(camera->name), "");
        print_source(out, &camera->read);
        print_source(out, &camera->decode);
        fputc('\n', out);
    }
}

static void print_files(FILE *out, const struct weir_report_sources *sources)
{
    char mean[24], max[24];
    fprintf(out, "files by mean read, the slowest of %" PRIu64 " (median %s):", sources->files_read,
            weir_report_time(mean, sources->files_median_s));
    for (int i = 0; i < sources->n_files; i++) {
        const struct weir_report_file *file = &sources->files[i];
        fprintf(out, "%s %s %s (%" PRIu64 " reads, max %s)", i ? "," : "", file->name,
                weir_report_time(mean, file->mean_s), file->count, weir_report_time(max, file->max_s));
    }
    fputc('\n', out);
}

static void print_calls(FILE *out, const struct weir_report_sources *sources)
{
    char text[24];
    fputs("slowest calls:\n", out);
    for (int i = 0; i < sources->n_calls && i < WEIR_REPORT_CALLS_SHOWN; i++) {
        const struct weir_report_call *call = &sources->calls[i];
        fprintf(out, "  %9s %-6s %s %s[%" PRId64 "]\n", weir_report_time(text, call->s),
                call->decode ? "decode" : "read", call->file, call->camera, call->t);
    }
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

/* ---- JSON ---- */

static void write_source(struct weir_json *json, const char *key, const struct weir_report_source *source)
{
    weir_json_object(json, key);
    weir_json_uint(json, "count", source->count);
    weir_json_uint(json, "bytes", source->bytes);
    weir_json_double(json, "total_s", source->total_s);
    weir_json_double(json, "bytes_per_s", bytes_per_s(source));
    weir_json_double(json, "p50_s", source->p50_s);
    weir_json_double(json, "p99_s", source->p99_s);
    weir_json_double(json, "max_s", source->max_s);
    weir_json_end(json, '}');
}

static void write_files(struct weir_json *json, const struct weir_report_sources *sources)
{
    weir_json_object(json, "files");
    weir_json_uint(json, "read", sources->files_read);
    weir_json_double(json, "median_s", sources->files_median_s);
    weir_json_array(json, "slowest");
    for (int i = 0; i < sources->n_files; i++) {
        const struct weir_report_file *file = &sources->files[i];
        weir_json_object(json, NULL);
        weir_json_text(json, "name", file->name);
        weir_json_uint(json, "count", file->count);
        weir_json_double(json, "mean_s", file->mean_s);
        weir_json_double(json, "max_s", file->max_s);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    weir_json_end(json, '}');
}

static void write_calls(struct weir_json *json, const struct weir_report_sources *sources)
{
    weir_json_array(json, "slowest_calls");
    for (int i = 0; i < sources->n_calls; i++) {
        const struct weir_report_call *call = &sources->calls[i];
        weir_json_object(json, NULL);
        weir_json_text(json, "what", call->decode ? "decode" : "read");
        weir_json_double(json, "s", call->s);
        weir_json_text(json, "file", call->file);
        weir_json_text(json, "camera", call->camera);
        weir_json_int(json, "t", call->t);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

void weir_report_sources_json(struct weir_json *json, const struct weir_report_sources *sources)
{
    if (sources->n_cameras == 0)
        return;
    weir_json_array(json, "cameras");
    for (int i = 0; i < sources->n_cameras; i++) {
        weir_json_object(json, NULL);
        weir_json_text(json, "name", sources->cameras[i].name);
        write_source(json, "read", &sources->cameras[i].read);
        write_source(json, "decode", &sources->cameras[i].decode);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    write_files(json, sources);
    write_calls(json, sources);
}
