/* The figures of jobs as tables and lines. */
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/top/top.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells ---- */

static const struct weir_column columns[] = {
    {.heading = "process", .left = true},
    {.heading = "pid", .priority = 1},
    {.heading = "on core"},
    {.heading = "core-wait"},
    {.heading = "storage", .priority = 2},
    {.heading = "lock", .priority = 2},
    {.heading = "sleep", .priority = 2},
    {.heading = "idle"},
    {.heading = "other", .priority = 6},
    {.heading = "disk/s", .priority = 3},
    {.heading = "cached/s~", .priority = 5},
    {.heading = "PSS", .priority = 3},
    {.heading = "threads", .priority = 4},
    {.heading = "ready", .priority = 4},
    {.heading = "files", .left = true, .priority = 5, .shrink_to = 16},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void put_shares(struct weir_table *table, const struct weir_task_shares *shares)
{
    for (int use = 0; use < WEIR_TASK_USES; use++) {
        if (shares->seconds <= 0)
            weir_table_cell(table, "-");
        else
            weir_table_cell(table, "%.0f%%", 100 * shares->of[use]);
    }
}

static void put_bytes(struct weir_table *table, double bytes)
{
    if (bytes < 0)
        weir_table_cell(table, "-");
    else
        weir_table_cell(table, "%s", weir_size_short(bytes).text);
}

static void put_files(struct weir_table *table, const struct weir_process_figures *figures)
{
    if (figures->n_files <= 0)
        weir_table_cell(table, "%s", figures->n_files < 0 ? "-" : "");
    else if (figures->n_files == 1)
        weir_table_cell(table, "%s", figures->files[0]);
    else
        weir_table_cell(table, "%d: %s ..", figures->n_files, figures->files[0]);
}

static void put_process(struct weir_table *table, const char *name, const struct weir_process_figures *figures)
{
    weir_table_cell(table, "%s", name);
    if (figures->pid > 0)
        weir_table_cell(table, "%d", (int)figures->pid);
    else
        weir_table_cell(table, "%s", "");
    put_shares(table, &figures->shares);
    put_bytes(table, figures->storage_bytes_per_s);
    put_bytes(table, figures->cached_bytes_per_s);
    put_bytes(table, figures->pss_bytes);
    if (figures->n_threads < 0)
        weir_table_cell(table, "-");
    else
        weir_table_cell(table, "%d", figures->n_threads);
    if (figures->ready_threads < 0)
        weir_table_cell(table, "-");
    else
        weir_table_cell(table, "%.1f", figures->ready_threads);
    put_files(table, figures);
}

static void put_pin(struct weir_table *table, const struct weir_task_shares *shares)
{
    weir_table_cell(table, "pin thread");
    weir_table_cell(table, "%s", "");
    put_shares(table, shares);
    for (int column = 2 + WEIR_TASK_USES; column < COLUMNS; column++)
        weir_table_cell(table, "%s", "");
}

/* ---- workers ---- */

struct worker_row {
    int number;
    const struct weir_process_figures *figures;
    double key;
};

static int descending(const void *a, const void *b)
{
    const struct worker_row *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key) - (x->key > y->key) : x->number - y->number;
}

static double key_of(const struct weir_process_figures *figures, enum top_order order)
{
    switch (order) {
    case TOP_BY_CPU:
        return figures->shares.of[WEIR_TASK_ON_CORE];
    case TOP_BY_MEMORY:
        return figures->pss_bytes;
    case TOP_BY_READS:
        return figures->storage_bytes_per_s + figures->cached_bytes_per_s;
    case TOP_BY_PROCESS:
        break;
    }
    return 0;
}

static void put_workers(struct weir_table *table, const struct top *top, const struct weir_job_figures *figures)
{
    struct worker_row rows[WEIR_JOB_WORKERS];
    char name[32];
    for (int i = 0; i < figures->n_workers; i++)
        rows[i] = (struct worker_row){i, &figures->workers[i], key_of(&figures->workers[i], top->order)};
    if (figures->n_workers > 0)
        qsort(rows, (size_t)figures->n_workers, sizeof *rows, descending);
    for (int i = 0; i < figures->n_workers; i++) {
        snprintf(name, sizeof name, "worker %d", rows[i].number);
        put_process(table, rows[i].figures->name[0] ? rows[i].figures->name : name, rows[i].figures);
    }
}

static void add_known(double *sum, double more)
{
    if (more >= 0)
        *sum = (*sum < 0 ? 0 : *sum) + more;
}

/* One row: means of the shares, and sums of the rest. */
static void put_all_workers(struct weir_table *table, const struct weir_job_figures *figures)
{
    char name[32];
    struct weir_process_figures all = {
        .storage_bytes_per_s = -1, .cached_bytes_per_s = -1, .pss_bytes = -1, .ready_threads = -1};
    for (int i = 0; i < figures->n_workers; i++) {
        const struct weir_process_figures *worker = &figures->workers[i];
        for (int use = 0; use < WEIR_TASK_USES; use++)
            all.shares.of[use] += worker->shares.of[use] / figures->n_workers;
        all.shares.seconds += worker->shares.seconds;
        add_known(&all.storage_bytes_per_s, worker->storage_bytes_per_s);
        add_known(&all.cached_bytes_per_s, worker->cached_bytes_per_s);
        add_known(&all.pss_bytes, worker->pss_bytes);
        add_known(&all.ready_threads, worker->ready_threads);
        all.n_threads += worker->n_threads > 0 ? worker->n_threads : 0;
        all.n_files += worker->n_files > 0 ? worker->n_files : 0;
        if (worker->n_files > 0 && !all.files[0][0])
            memcpy(all.files[0], worker->files[0], sizeof all.files[0]);
    }
    snprintf(name, sizeof name, "%d workers", figures->n_workers);
    put_process(table, name, &all);
}

/* ---- a job ---- */

static const struct weir_job_figures *figures_of(const struct top *top, const struct top_job *job)
{
    return top->totals || job->ended ? &job->total : &job->last;
}

static void print_title(FILE *out, const struct top_job *job)
{
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    if (job->job.rank >= 0)
        fprintf(text, "rank %d of %d, ", job->job.rank, job->job.world_size);
    fprintf(text, "process %d%s: %s\n", (int)job->job.pid, job->ended ? " (has ended)" : "", job->job.command);
    if (job->job.weir)
        fprintf(text, "Weir's loader: the %s\n",
                job->job.n_workers > 0 ? "workers are threads of this process" : "consumer's thread does all the work");
    if (job->job.foreign)
        fprintf(text, "another user's process: only times on and off cores can be read\n");
    if (job->job.more_workers)
        fprintf(text, "only the first %d workers are shown\n", WEIR_JOB_WORKERS);
    weir_wrap_close(&wrap);
}

static void print_gpu(FILE *out, const struct top_job *job)
{
    const struct weir_nvml_gpu *gpu = &job->gpu_now;
    struct weir_wrap wrap;
    if (!job->has_gpu)
        return;
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    fprintf(text, "GPU %d:   %s", job->gpu, gpu->name);
    if (gpu->busy >= 0)
        fprintf(text, "; busy %.0f %%", 100 * gpu->busy);
    if (gpu->memory_bytes > 0)
        fprintf(text, "; memory %s of %s", weir_size((double)gpu->memory_used_bytes).text,
                weir_size((double)gpu->memory_bytes).text);
    if (gpu->to_gpu_bytes_per_s >= 0)
        fprintf(text, "; PCIe %s/s to it, %s/s from it", weir_size(gpu->to_gpu_bytes_per_s).text,
                weir_size(gpu->from_gpu_bytes_per_s).text);
    fputc('\n', text);
    weir_wrap_close(&wrap);
}

static void print_table(FILE *out, const struct top *top, const struct top_job *job)
{
    const struct weir_job_figures *figures = figures_of(top, job);
    struct weir_table table;
    weir_table_open(&table, columns, COLUMNS);
    put_process(&table, job->job.weir ? "consumer" : "main", &figures->main);
    if (figures->has_pin)
        put_pin(&table, &figures->pin);
    if (top->collapsed && figures->n_workers > 1)
        put_all_workers(&table, figures);
    else
        put_workers(&table, top, figures);
    weir_table_print(out, &table);
}

void top_print_verdict(FILE *out, const struct top *top, const struct top_job *job)
{
    int left = (int)ceil(WEIR_OUTSIDE_INTERVALS * top->interval_s - job->figures.loop_s);
    if (!job->verdict.ready)
        fprintf(out, "verdict: %s\n", job->ended ? "the job ended too early" : "measuring");
    else
        weir_diagnosis_print(out, &job->verdict.found, NULL, NULL);
    if (job->verdict.ready && left > 0 && !top->totals && !job->ended)
        fprintf(out, "         (after %.0f s; figures of %.0f s make it more certain)\n", job->figures.loop_s,
                WEIR_OUTSIDE_INTERVALS * top->interval_s);
}

static void print_ranks(FILE *out, const struct top *top)
{
    struct weir_wrap wrap;
    double least = 0, median = 0;
    int slowest = top_slowest_rank(top, &least, &median);
    if (slowest < 0)
        return;
    const struct weir_job *job = &top->jobs[slowest]->job;
    fprintf(weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL),
            "ranks:   rank %d (process %d) waits least for the others, %.0f %% of the time (median %.0f %%), so it is "
            "likely to slow them down\n",
            job->rank, (int)job->pid, 100 * least, 100 * median);
    weir_wrap_close(&wrap);
}

void top_print(FILE *out, const struct top *top)
{
    for (int i = 0; i < top->n_jobs; i++) {
        const struct top_job *job = top->jobs[i];
        if (i > 0)
            fputc('\n', out);
        print_title(out, job);
        weir_report_machine_print(out, &job->machine);
        print_gpu(out, job);
        if (figures_of(top, job)->seconds > 0)
            print_table(out, top, job);
        top_print_verdict(out, top, job);
    }
    print_ranks(out, top);
}

/* ---- one line ---- */

static double mean_share(const struct weir_job_figures *figures, enum weir_task_use use)
{
    double sum = 0;
    for (int i = 0; i < figures->n_workers; i++)
        sum += figures->workers[i].shares.of[use];
    return figures->n_workers ? sum / figures->n_workers : 0;
}

static void add_shares(FILE *out, const char *what, const double of[WEIR_TASK_USES])
{
    fprintf(out, "  %s:", what);
    for (int use = 0; use < WEIR_TASK_USES; use++)
        if (of[use] >= 0.005)
            fprintf(out, " %s %.0f%%", weir_task_use_name(use), 100 * of[use]);
}

void top_print_line(FILE *out, const struct top *top, const struct top_job *job)
{
    double seconds = (double)(weir_clock_monotonic_ns() - top->begun_ns) / 1e9, workers[WEIR_TASK_USES];
    char what[32];
    fprintf(out, "%4.0f s ", seconds);
    if (job->job.rank >= 0)
        fprintf(out, " rank %d", job->job.rank);
    fprintf(out, " process %d", (int)job->job.pid);
    add_shares(out, job->job.weir ? "consumer" : "main", job->last.main.shares.of);
    for (int use = 0; use < WEIR_TASK_USES; use++)
        workers[use] = mean_share(&job->last, use);
    snprintf(what, sizeof what, "%d worker%s", job->last.n_workers, job->last.n_workers == 1 ? "" : "s");
    if (job->last.n_workers > 0)
        add_shares(out, what, workers);
    else
        fprintf(out, "  no workers");
    if (job->has_gpu && job->gpu_now.busy >= 0)
        fprintf(out, "  GPU %d: %.0f%%", job->gpu, 100 * job->gpu_now.busy);
    fputc('\n', out);
}
