/* Prints figures per camera and per file, which distinguish a slow camera, a slow file and slow storage. */
#include "base/text.h"
#include "pipeline/report/report_parts_priv.h"

#include <inttypes.h>

static const double NOTHING_S = 1e-6; /* duration below which a call has no rate */
static const double NOTABLE = 2; /* a file is listed if its mean is at least this many times the median of all files */

double weir_source_bytes_per_s(const struct weir_report_source *source)
{
    return source->total_s > 0 ? (double)source->bytes / source->total_s : 0;
}

static void print_source(FILE *out, const struct weir_report_source *source)
{
    char p50[24], p99[24], rate[24] = "-"; /* raw frames are read directly into the batch and need no decoding */
    if (source->total_s > NOTHING_S * (double)source->count)
        snprintf(rate, sizeof rate, "%.1f", weir_source_bytes_per_s(source) / 1e6);
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
    fprintf(out, "files by mean read time, the slowest of %" PRIu64 " (median %s):", sources->files_read,
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
