#include "analyze/live/metrics.h"
#include "base/resources.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- the table of metrics ---- */

enum type { GAUGE, COUNTER };

struct sink {
    FILE *out;
    enum weir_metrics_format format;
    const struct weir_metrics_process *process;
    const struct weir_metrics *metrics; /* of the loader whose samples are written; NULL = of the process */
    const struct family *family;
};

/* A metric: what it measures, and how its samples are found. Counters get the suffix _total. */
struct family {
    const char *name;
    enum type type;
    const char *unit; /* the last word of the name, if that is a unit */
    const char *help;
    void (*samples)(const struct sink *sink); /* NULL: one sample, value */
    enum { COUNT, INT, REAL } kind;           /* of the member at offset */
    size_t offset;
    bool own; /* only for Weir's own loader */
};

#define MEMBER(kind, member)     NULL, kind, offsetof(struct weir_metrics, member), false
#define OWN_MEMBER(kind, member) NULL, kind, offsetof(struct weir_metrics, member), true
#define SAMPLES(function)        function, REAL, 0, false
#define OWN_SAMPLES(function)    function, REAL, 0, true

static void escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"')
            fputc('\\', out);
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    }
}

static void label(const struct sink *sink, const char *name, const char *value, int *n)
{
    fprintf(sink->out, "%s%s=\"", (*n)++ ? "," : "{", name);
    escaped(sink->out, value);
    fputc('"', sink->out);
}

/* Writes a sample with up to three labels of its own, given as name and value, the last name followed by NULL. */
static void sample(const struct sink *sink, double value, const char *const *labels)
{
    int n = 0;
    if (!isfinite(value))
        return;
    fprintf(sink->out, "%s%s", sink->family->name, sink->family->type == COUNTER ? "_total" : "");
    if (sink->metrics)
        label(sink, "loader", sink->metrics->loader, &n);
    if (sink->process->world_size > 1) {
        char rank[16];
        snprintf(rank, sizeof rank, "%d", sink->process->rank);
        label(sink, "rank", rank, &n);
    }
    for (; labels && labels[0]; labels += 2)
        label(sink, labels[0], labels[1], &n);
    fprintf(sink->out, "%s %.15g\n", n ? "}" : "", value);
}

static void known(const struct sink *sink, double value, const char *const *labels)
{
    if (value >= 0)
        sample(sink, value, labels);
}

/* ---- samples of the loaders ---- */

static bool is_repeated(const struct weir_report_row *rows, int i)
{
    for (int k = 0; k < i; k++)
        if (rows[k].side == rows[i].side && strcmp(rows[k].name, rows[i].name) == 0)
            return true;
    return false;
}

static void stage(const struct sink *sink, const struct weir_report_row *row, double value)
{
    const char *const labels[] = {
        "stage", row->name, "kind", weir_stage_kind_name(row->kind), "thread", weir_report_side_name(row->side), NULL};
    if (row->count > 0)
        known(sink, value, labels);
}

static void stages(const struct sink *sink, double (*value)(const struct weir_report_row *row))
{
    const struct weir_report *prof = &sink->metrics->report.prof;
    const struct weir_report_gpu *gpu = &sink->metrics->report.gpu;
    for (int i = 0; i < prof->n_rows; i++)
        if (!is_repeated(prof->rows, i))
            stage(sink, &prof->rows[i], value(&prof->rows[i]));
    for (int i = 0; i < gpu->n_rows; i++)
        if (!is_repeated(gpu->rows, i))
            stage(sink, &gpu->rows[i], value(&gpu->rows[i]));
}

static double total_s(const struct weir_report_row *row)
{
    return row->total_s;
}

static double calls(const struct weir_report_row *row)
{
    return (double)row->count;
}

static double self_s(const struct weir_report_row *row)
{
    return row->kind == WEIR_KIND_SPAN ? -1 : row->self_s;
}

static double p50_s(const struct weir_report_row *row)
{
    return row->p50_s;
}

static double p99_s(const struct weir_report_row *row)
{
    return row->p99_s;
}

static double max_s(const struct weir_report_row *row)
{
    return row->max_s;
}

static void stage_seconds(const struct sink *sink)
{
    stages(sink, total_s);
}

static void stage_self_seconds(const struct sink *sink)
{
    stages(sink, self_s);
}

static void stage_calls(const struct sink *sink)
{
    stages(sink, calls);
}

static void stage_median(const struct sink *sink)
{
    stages(sink, p50_s);
}

static void stage_p99(const struct sink *sink)
{
    stages(sink, p99_s);
}

static void stage_max(const struct sink *sink)
{
    stages(sink, max_s);
}

static void by_split(const struct sink *sink, double train, double val)
{
    sample(sink, train, (const char *const[]){"split", "train", NULL});
    sample(sink, val, (const char *const[]){"split", "val", NULL});
}

static void batches(const struct sink *sink)
{
    const struct weir_report_steps *steps = &sink->metrics->report.steps;
    by_split(sink, (double)steps->train_batches, (double)steps->val_batches);
}

static void step_seconds(const struct sink *sink)
{
    const struct weir_report_steps *steps = &sink->metrics->report.steps;
    by_split(sink, steps->train_s, steps->val_s);
}

static void data_wait_seconds(const struct sink *sink)
{
    const struct weir_report_steps *steps = &sink->metrics->report.steps;
    by_split(sink, steps->train_wait_s, steps->val_wait_s);
}

/* As in the verdict: without the run's first batch, for which the pipeline fills. */
static void data_wait_ratio(const struct sink *sink)
{
    const struct weir_report_steps *steps = &sink->metrics->report.steps;
    double s = steps->train_s + steps->val_s - steps->first_wait_s;
    double wait_s = steps->train_wait_s + steps->val_wait_s - steps->first_wait_s;
    if (s > 0)
        sample(sink, fmin(fmax(wait_s / s, 0), 1), NULL);
}

static void worker_seconds(const struct sink *sink)
{
    const struct weir_report *prof = &sink->metrics->report.prof;
    double work_s = 0, wait_s = 0, rest_s = 0;
    for (int i = 0; i < prof->n_workers; i++) {
        work_s += prof->workers[i].work_s;
        wait_s += prof->workers[i].wait_s;
        rest_s += prof->workers[i].unattributed_s;
    }
    if (prof->n_workers == 0)
        return;
    sample(sink, work_s, (const char *const[]){"state", "work", NULL});
    sample(sink, wait_s, (const char *const[]){"state", "wait", NULL});
    sample(sink, rest_s, (const char *const[]){"state", "unattributed", NULL});
}

static void cache_bytes(const struct sink *sink)
{
    if (sink->metrics->report.cache.budget_bytes > 0)
        sample(sink, (double)sink->metrics->report.cache.used_bytes, NULL);
}

static void cache_lookups(const struct sink *sink)
{
    const struct weir_report_cache *cache = &sink->metrics->report.cache;
    if (cache->budget_bytes == 0)
        return;
    sample(sink, (double)cache->hits, (const char *const[]){"result", "hit", NULL});
    sample(sink, (double)cache->misses, (const char *const[]){"result", "miss", NULL});
}

static void gpu_busy(const struct sink *sink)
{
    if (sink->metrics->report.gpu.used)
        sample(sink, sink->metrics->report.gpu.busy, NULL);
}

static void gpu_memory(const struct sink *sink)
{
    if (sink->metrics->report.gpu.used_bytes > 0)
        sample(sink, (double)sink->metrics->report.gpu.used_bytes, NULL);
}

static const struct family families[] = {
    {"weir_run_seconds", COUNTER, "seconds", "Time since counting began.", MEMBER(REAL, report.wall_s)},
    {"weir_epochs", COUNTER, NULL, "Epochs completed.", MEMBER(REAL, epochs)},
    {"weir_batches", COUNTER, NULL, "Batches delivered.", SAMPLES(batches)},
    {"weir_images", COUNTER, NULL, "Images delivered; samples, where the loader is watched.",
     MEMBER(COUNT, report.steps.images)},
    {"weir_step_seconds", COUNTER, "seconds", "Duration of steps, from one request for a batch to the next.",
     SAMPLES(step_seconds)},
    {"weir_data_wait_seconds", COUNTER, "seconds", "Part of the steps spent waiting for data.",
     SAMPLES(data_wait_seconds)},
    {"weir_data_wait_ratio", GAUGE, "ratio", "Data wait over the duration of steps so far, without the first batch.",
     SAMPLES(data_wait_ratio)},
    {"weir_stage_seconds", COUNTER, "seconds", "Time in a stage of the stage table, summed over threads.",
     SAMPLES(stage_seconds)},
    {"weir_stage_self_seconds", COUNTER, "seconds", "Time in a stage without the stages inside it.",
     SAMPLES(stage_self_seconds)},
    {"weir_stage_calls", COUNTER, NULL, "Calls of a stage.", SAMPLES(stage_calls)},
    {"weir_stage_median_seconds", GAUGE, "seconds", "Median duration of a stage's calls so far.",
     SAMPLES(stage_median)},
    {"weir_stage_p99_seconds", GAUGE, "seconds", "99th percentile of the duration of a stage's calls so far.",
     SAMPLES(stage_p99)},
    {"weir_stage_max_seconds", GAUGE, "seconds", "Longest call of a stage so far.", SAMPLES(stage_max)},
    {"weir_worker_seconds", COUNTER, "seconds", "Worker time by state.", SAMPLES(worker_seconds)},
    {"weir_workers", GAUGE, NULL, "Worker threads, or processes.", MEMBER(INT, now.workers)},
    {"weir_workers_busy", GAUGE, NULL, "Workers that are loading at this moment.", MEMBER(INT, now.workers_busy)},
    {"weir_batches_ready", GAUGE, NULL, "Batches ready at this moment.", MEMBER(INT, now.batches_ready)},
    {"weir_batch_slots", GAUGE, NULL, "Batches that can be in memory.", MEMBER(INT, now.slots)},
    {"weir_reads", COUNTER, NULL, "Reads of files.", OWN_MEMBER(COUNT, report.reads)},
    {"weir_read_bytes", COUNTER, "bytes", "Bytes read from files.", OWN_MEMBER(COUNT, report.read_bytes)},
    {"weir_storage_read_bytes", COUNTER, "bytes", "Bytes that the process read from storage.",
     OWN_MEMBER(REAL, report.storage.device_bytes)},
    {"weir_cache_lookups", COUNTER, NULL, "Frames looked up in the decode cache.", OWN_SAMPLES(cache_lookups)},
    {"weir_cache_bytes", GAUGE, "bytes", "Memory of the decode cache.", OWN_SAMPLES(cache_bytes)},
    {"weir_warned_frames", COUNTER, NULL, "Frames decoded despite a harmless flaw.",
     OWN_MEMBER(COUNT, report.warned_frames)},
    {"weir_bad_frames", COUNTER, NULL, "Failed attempts to read or decode a frame.",
     OWN_MEMBER(COUNT, report.bad_frames)},
    {"weir_skipped_samples", COUNTER, NULL, "Samples skipped because of a bad frame.",
     OWN_MEMBER(COUNT, report.skipped_samples)},
    {"weir_substituted_frames", COUNTER, NULL, "Bad frames replaced by an earlier frame.",
     OWN_MEMBER(COUNT, report.substituted_frames)},
    {"weir_bad_episodes", GAUGE, NULL, "Episodes that could not be opened.", OWN_MEMBER(COUNT, report.bad_episodes)},
    {"weir_changed_files", COUNTER, NULL, "Files that changed while they were read.",
     OWN_MEMBER(COUNT, report.changed_files)},
    {"weir_gpu_busy_ratio", GAUGE, "ratio", "Fraction of the time in which the GPU ran a step or prepared a batch.",
     SAMPLES(gpu_busy)},
    {"weir_gpu_memory_bytes", GAUGE, "bytes", "GPU memory that all programs use.", SAMPLES(gpu_memory)},
    {"weir_cpu_seconds", COUNTER, "seconds", "CPU time of the process and its helpers.", MEMBER(REAL, report.cpu_s)},
    {"weir_others_cores", GAUGE, "cores", "Cores that other programs used, on average.",
     MEMBER(REAL, report.prof.machine.others_cores)},
    {"weir_throttled_seconds", COUNTER, "seconds", "Time for which the CPU quota stopped threads.",
     MEMBER(REAL, report.prof.machine.throttled_s)},
    {"weir_profiler_ratio", GAUGE, "ratio", "Fraction of the threads' time that measuring cost.",
     MEMBER(REAL, report.prof.profiler_share)},
};

/* ---- writing ---- */

static void head(const struct sink *sink, const char *type, const char *suffix)
{
    const struct family *family = sink->family;
    if (sink->format == WEIR_METRICS_OPENMETRICS)
        suffix = "";
    fprintf(sink->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, suffix, family->help, family->name, suffix,
            type);
    if (sink->format == WEIR_METRICS_OPENMETRICS && family->unit)
        fprintf(sink->out, "# UNIT %s %s\n", family->name, family->unit);
}

static void value(const struct sink *sink)
{
    const char *at = (const char *)sink->metrics + sink->family->offset;
    uint64_t count;
    double real;
    int number;
    switch (sink->family->kind) {
    case COUNT:
        memcpy(&count, at, sizeof count);
        known(sink, (double)count, NULL);
        break;
    case INT:
        memcpy(&number, at, sizeof number);
        known(sink, number, NULL);
        break;
    case REAL:
        memcpy(&real, at, sizeof real);
        known(sink, real, NULL);
    }
}

static void write_process(struct sink *sink)
{
    static const struct family build = {"weir_build", GAUGE, NULL, "Version of Weir, and what it measures.",
                                        NULL,         REAL,  0,    false},
                               info = {"weir_build_info", GAUGE, NULL, NULL, NULL, REAL, 0, false},
                               start = {"weir_start_time_seconds",
                                        GAUGE,
                                        "seconds",
                                        "When live figures were opened, in seconds since 1970.",
                                        NULL,
                                        REAL,
                                        0,
                                        false},
                               memory = {"weir_peak_memory_bytes",
                                         GAUGE,
                                         "bytes",
                                         "Largest resident memory of the process so far.",
                                         NULL,
                                         REAL,
                                         0,
                                         false};
    bool open = sink->format == WEIR_METRICS_OPENMETRICS;
    sink->metrics = NULL;
    sink->family = &build;
    head(sink, open ? "info" : "gauge", "_info");
    sink->family = &info;
    sample(sink, 1, (const char *const[]){"version", sink->process->version, "source", sink->process->source, NULL});
    sink->family = &start;
    head(sink, "gauge", "");
    sample(sink, sink->process->start_unix_s, NULL);
    sink->family = &memory;
    head(sink, "gauge", "");
    sample(sink, (double)weir_peak_rss_bytes(), NULL);
}

void weir_metrics_write(FILE *out, const struct weir_metrics *metrics, int n,
                        const struct weir_metrics_process *process, enum weir_metrics_format format)
{
    struct sink sink = {.out = out, .format = format, .process = process};
    write_process(&sink);
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        sink.family = &families[f];
        bool counter = sink.family->type == COUNTER;
        head(&sink, counter ? "counter" : "gauge", counter ? "_total" : "");
        for (int i = 0; i < n; i++) {
            sink.metrics = &metrics[i];
            if (sink.family->own && metrics[i].watched)
                continue;
            if (sink.family->samples)
                sink.family->samples(&sink);
            else
                value(&sink);
        }
    }
    if (format == WEIR_METRICS_OPENMETRICS)
        fputs("# EOF\n", out);
}

void weir_metrics_label(char label[64], const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t from = end;
    while (from > 0 && path[from - 1] != '/')
        from--;
    snprintf(label, 64, "%.*s", (int)(end - from), path + from);
    weir_text_printable(label);
}

const char *weir_metrics_media_type(enum weir_metrics_format format)
{
    return format == WEIR_METRICS_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                              : "text/plain; version=0.0.4; charset=utf-8";
}
