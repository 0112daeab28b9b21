/* Prints recorded figures as the commands print live ones, for tests/golden:
 *
 *     recorded FILE top|top-lines|top-json     the jobs of FILE, which is like the output of weir top --json
 *     recorded LOG metrics|openmetrics         the last stages line of a log
 *     recorded LOG page|page-zh                the page of a log
 *     recorded RESULT result                   the page of --json of weir bench, tune or compare
 *
 * Job figures that FILE omits are unknown, and of the threads' time 0. */
#include "analyze/live/metrics.h"
#include "analyze/logs/log_read.h"
#include "analyze/page/page.h"
#include "cli/top/top.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Stops at a member of the wrong type. */
#define UNPACK(object, ...)                                                                                            \
    do {                                                                                                               \
        json_error_t error_;                                                                                           \
        if (json_unpack_ex((json_t *)(object), &error_, 0, __VA_ARGS__) < 0)                                           \
            fail(error_.text);                                                                                         \
    } while (0)

static void fail(const char *why)
{
    fprintf(stderr, "recorded: %s\n", why);
    exit(1);
}

static void read_shares(struct weir_task_shares *shares, const json_t *time, double seconds)
{
    double *of = shares->of;
    shares->seconds = time ? seconds : 0;
    if (time)
        UNPACK(time, "{s?F s?F s?F s?F s?F s?F s?F}", "on_core", &of[WEIR_TASK_ON_CORE], "core_wait",
               &of[WEIR_TASK_CORE_WAIT], "storage", &of[WEIR_TASK_STORAGE], "lock", &of[WEIR_TASK_LOCK], "sleep",
               &of[WEIR_TASK_SLEEP], "idle", &of[WEIR_TASK_IDLE], "other", &of[WEIR_TASK_OTHER]);
}

static void read_process(struct weir_process_figures *figures, const json_t *process, double seconds)
{
    const json_t *time = NULL, *files = NULL;
    const char *name = "";
    *figures = (struct weir_process_figures){.age_s = -1,
                                             .n_threads = -1,
                                             .other_cores = -1,
                                             .ready_threads = -1,
                                             .storage_bytes_per_s = -1,
                                             .cached_bytes_per_s = -1,
                                             .pss_bytes = -1,
                                             .n_files = -1};
    UNPACK(process, "{s:i s?F s?s s?o s?F s?F s?F s?i s?F s?F s?i s?o}", "pid", &figures->pid, "age_s", &figures->age_s,
           "name", &name, "time", &time, "storage_bytes_per_s", &figures->storage_bytes_per_s,
           "cached_bytes_per_s_estimate", &figures->cached_bytes_per_s, "pss_bytes", &figures->pss_bytes, "threads",
           &figures->n_threads, "other_threads_cores", &figures->other_cores, "ready_threads", &figures->ready_threads,
           "dataset_files", &figures->n_files, "files", &files);
    snprintf(figures->name, sizeof figures->name, "%s", name);
    for (size_t i = 0; i < json_array_size(files) && i < WEIR_PROCESS_FILES; i++)
        snprintf(figures->files[i], sizeof figures->files[i], "%s", json_string_value(json_array_get(files, i)));
    read_shares(&figures->shares, time, seconds);
}

static void read_machine(struct top_job *job, double *throttled, double *other_jobs, const json_t *machine)
{
    struct weir_report_machine *to = &job->machine;
    *to = (struct weir_report_machine){.used = true, .others_cores = -1, .load_average = -1};
    UNPACK(machine, "{s:i s:i s?F s?F s:F s?F s?F s?F}", "cores", &to->cores, "online", &to->online, "quota_cores",
           &to->quota_cores, "throttled", throttled, "job_cores", &job->last.cores, "others_cores", &to->others_cores,
           "other_jobs_cores", other_jobs, "steal_cores", &to->steal_cores);
}

static void read_gpu(struct top_job *job, const json_t *gpu)
{
    struct weir_nvml_gpu *now = &job->gpu_now;
    const char *name;
    json_int_t used, all;
    job->has_gpu = true;
    UNPACK(gpu, "{s:i s:s s:F s:I s:I s:F s:F}", "index", &job->gpu, "name", &name, "busy", &now->busy,
           "memory_used_bytes", &used, "memory_bytes", &all, "to_gpu_bytes_per_s", &now->to_gpu_bytes_per_s,
           "from_gpu_bytes_per_s", &now->from_gpu_bytes_per_s);
    snprintf(now->name, sizeof now->name, "%s", name);
    now->memory_used_bytes = (uint64_t)used;
    now->memory_bytes = (uint64_t)all;
}

/* Fills the window with as many intervals of 1 s as the job is watched, all alike. */
static void judge(struct top_job *job, int seconds, double throttled, double other_jobs)
{
    enum { PERIODS = 10 }; /* of the quota, per second */
    job->machine.throttling = throttled >= 0;
    job->machine.periods = PERIODS;
    job->machine.throttled = throttled > 0 ? (uint64_t)(throttled * PERIODS) : 0;
    for (int i = 0; i < seconds; i++)
        top_judge(job, other_jobs);
}

static struct top_job *read_job(const json_t *from)
{
    struct top_job *job = calloc(1, sizeof *job);
    struct weir_job_figures *figures = &job->last;
    const char *command, *loader;
    const json_t *machine, *main_process, *gpu = NULL, *pin = NULL, *workers = NULL;
    int seconds, ended = 0, other_user = 0, torch = 1;
    double throttled = -1, other_jobs = 0;
    job->job = (struct weir_job){.rank = -1, .world_size = -1, .local_rank = -1};
    UNPACK(from, "{s:i s:s s:s s?b s?i s?i s?i s?b s?b s:i s:o s?o s:o s?F s?o s?i s?o}", "pid", &job->job.pid,
           "command", &command, "loader", &loader, "torch", &torch, "rank", &job->job.rank, "world_size",
           &job->job.world_size, "local_rank", &job->job.local_rank, "ended", &ended, "other_user", &other_user,
           "seconds", &seconds, "machine", &machine, "gpu", &gpu, "main", &main_process, "other_thread",
           &figures->other_thread, "pin_thread", &pin, "workers_begun", &figures->workers_begun, "workers", &workers);
    snprintf(job->job.command, sizeof job->job.command, "%s", command);
    job->ended = ended;
    job->job.foreign = other_user;
    job->job.weir = figures->weir = strcmp(loader, "weir") == 0;
    job->job.torch = figures->torch = torch;
    figures->seconds = 1;
    read_process(&figures->main, main_process, 1);
    figures->has_pin = pin;
    read_shares(&figures->pin, json_object_get(pin, "time"), 1);
    job->job.n_workers = figures->n_workers = (int)json_array_size(workers);
    for (int i = 0; i < figures->n_workers && i < WEIR_JOB_WORKERS; i++)
        read_process(&figures->workers[i], json_array_get(workers, (size_t)i), 1);
    read_machine(job, &throttled, &other_jobs, machine);
    job->gpu = -1;
    if (gpu)
        read_gpu(job, gpu);
    judge(job, seconds, throttled, other_jobs);
    for (int i = 0; i < seconds; i++)
        weir_job_figures_add(&job->total, figures);
    return job;
}

static void print_top(const char *form, const char *path)
{
    static struct top top = {.interval_s = 1};
    json_error_t error;
    json_t *recorded = json_load_file(path, 0, &error), *jobs = json_object_get(recorded, "jobs");
    if (!recorded)
        fail(error.text);
    for (size_t i = 0; i < json_array_size(jobs) && i < WEIR_JOBS; i++)
        top.jobs[top.n_jobs++] = read_job(json_array_get(jobs, i));
    UNPACK(recorded, "{s?b s?b s?i}", "collapsed", &top.collapsed, "totals", &top.totals, "order", &top.order);
    if (strcmp(form, "json") == 0) {
        struct weir_document document;
        struct weir_json json;
        weir_json_open(&json, stdout, true);
        weir_json_object(&json, NULL);
        weir_document_over(&document, NULL, &json);
        top_describe_json(&document, &top);
        weir_document_close(&document);
        weir_json_end(&json, '}');
        weir_json_close(&json);
    } else if (strcmp(form, "lines") == 0) {
        top.begun_ns = weir_clock_monotonic_ns();
        for (int i = 0; i < top.n_jobs; i++)
            top_print_line(stdout, &top, top.jobs[i]);
    } else {
        top_print(stdout, &top);
    }
    for (int i = 0; i < top.n_jobs; i++)
        free(top.jobs[i]);
    json_decref(recorded);
}

static void print_metrics(enum weir_metrics_format format, const char *path)
{
    static struct weir_metrics metrics = {
        .loader = "data",
        .epochs = 2,
        .now = {.slots = 8, .batches_ready = 3, .batches_begun = 5, .workers = 2, .workers_busy = 1}};
    const struct weir_metrics_process process = {
        .version = "0.0.0", .source = "run", .world_size = 1, .start_unix_s = 1700000000};
    struct weir_log_record record = {0};
    struct weir_lines lines;
    struct weir_err err;
    FILE *in = fopen(path, "r");
    int code;
    if (!in)
        fail(strerror(errno));
    weir_lines_open(&lines, in);
    while ((code = weir_log_next(&lines, &record, &err)) == WEIR_LOG_RECORD)
        if (record.type == WEIR_LOG_STAGES) {
            metrics.report = record.report;
            metrics.watched = record.watch;
            weir_metrics_write(stdout, &metrics, 1, &process, format);
        }
    if (code < 0)
        fail(err.text);
    weir_log_record_clear(&record);
    weir_lines_close(&lines);
    fclose(in);
}

static void print_page(const char *form, const char *path)
{
    static char text[1 << 20];
    struct weir_err err = WEIR_ERR_NONE;
    FILE *in = fopen(path, "r");
    if (!in)
        fail(strerror(errno));
    size_t n = fread(text, 1, sizeof text, in);
    fclose(in);
    int code = strcmp(form, "result") == 0
                   ? weir_page_of_result(stdout, text, n, &err)
                   : weir_page_of_log(stdout, text, n, strcmp(form, "page") ? WEIR_LANG_ZH : WEIR_LANG_EN, &err);
    if (code < 0)
        fail(*err.text ? err.text : strerror(-code));
}

int main(int argc, char **argv)
{
    if (argc != 3)
        fail("usage: recorded FILE FORM");
    if (strncmp(argv[2], "top", 3) == 0)
        print_top(argv[2][3] ? argv[2] + 4 : "", argv[1]);
    else if (strncmp(argv[2], "page", 4) == 0 || strcmp(argv[2], "result") == 0)
        print_page(argv[2], argv[1]);
    else
        print_metrics(strcmp(argv[2], "openmetrics") == 0 ? WEIR_METRICS_OPENMETRICS : WEIR_METRICS_CLASSIC, argv[1]);
}
