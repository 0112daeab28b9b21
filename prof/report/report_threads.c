/* The part of a report that shows where the time of the workers and the consumer went. */
#include "base/resources.h"
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "prof/report/report_fields.h"
#include "weir/profiler.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the kernel's figures for a thread's time ---- */

/* Shares that apply to all threads of a window. */
struct shares {
    double throttled; /* throttled part of a thread's run delay, 0..1 */
    double steal;     /* stolen part of a thread's CPU time, 0..1; -1 = unknown */
};

/* Estimates how much of the threads' run delay was throttling. The kernel reports throttled time per run queue, but a
 * thread's run delay without its cause. If more threads are runnable than there are cores, several of them wait in each
 * throttled queue, so the queue's throttled time counts for each. All threads get the same fraction, at most 1. */
static struct shares shares_of(const struct weir_snapshot *snapshot)
{
    struct weir_cores cores;
    uint64_t delay_ns = 0, ready_ns = 0, wall_ns = 0;
    struct shares shares = {0, -1};
    if (snapshot->machine_busy > 0)
        shares.steal = (double)snapshot->machine_steal / (double)snapshot->machine_busy;
    for (int i = 0; i < snapshot->n_threads; i++) {
        const struct weir_thread_stats *thread = &snapshot->threads[i];
        delay_ns += thread->delay_ns;
        ready_ns += thread->delay_ns + thread->cpu_ns;
        wall_ns = thread->wall_ns > wall_ns ? thread->wall_ns : wall_ns;
    }
    if (snapshot->throttled_ns == 0 || delay_ns == 0 || wall_ns == 0)
        return shares;
    weir_cores_read(&cores, "");
    double a_core = fmax((double)ready_ns / (double)wall_ns / (double)cores.affinity, 1);
    shares.throttled = fmin((double)snapshot->throttled_ns * a_core / (double)delay_ns, 1);
    return shares;
}

static void fill(struct weir_report_worker *worker, const struct weir_thread_stats *thread, const struct shares *shares)
{
    snprintf(worker->name, sizeof worker->name, "%s", thread->name);
    weir_text_printable(worker->name);
    worker->wall_s = (double)thread->wall_ns / 1e9;
    worker->work_s = (double)thread->work_ns / 1e9;
    worker->wait_s = (double)thread->wait_ns / 1e9;
    worker->unattributed_s = (double)thread->unattributed_ns / 1e9;
    worker->cpu_s = (double)thread->cpu_ns / 1e9;
    worker->work_cpu_s = thread->cpu_known ? (double)thread->work_cpu_ns / 1e9 : -1;
    worker->wait_cpu_s = thread->cpu_known ? (double)thread->wait_cpu_ns / 1e9 : -1;
    worker->unattributed_cpu_s = thread->cpu_known ? (double)thread->unattributed_cpu_ns / 1e9 : -1;
    worker->steal_s = shares->steal >= 0 ? worker->cpu_s * shares->steal : -1;
    worker->throttled_s = worker->core_wait_s = worker->blocked_s = -1;
    if (!thread->delay_known)
        return;
    double delay_s = (double)thread->delay_ns / 1e9;
    worker->throttled_s = delay_s * shares->throttled;
    worker->core_wait_s = delay_s - worker->throttled_s;
    worker->blocked_s = fmax(worker->wall_s - worker->cpu_s - delay_s, 0);
}

/* Sorts threads, which join in any order, by name. Numbers within names are compared as numbers. */
static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct weir_report_worker *)a)->name, ((const struct weir_report_worker *)b)->name);
}

/* Without worker threads, the consumer does the workers' work, so it is shown as a worker. */
int weir_report_fill_threads(struct weir_report *report, const struct weir_snapshot *snapshot)
{
    enum weir_thread_role role = WEIR_ROLE_CONSUMER;
    struct shares shares = shares_of(snapshot);
    for (int i = 0; i < snapshot->n_threads; i++)
        if (snapshot->threads[i].role == WEIR_ROLE_WORKER)
            role = WEIR_ROLE_WORKER;
    free(report->workers);
    report->n_workers = 0;
    report->consumer = (struct weir_report_worker){0};
    report->workers = calloc((size_t)snapshot->n_threads + 1, sizeof *report->workers);
    if (!report->workers)
        return -ENOMEM;
    for (int i = 0; i < snapshot->n_threads; i++) {
        const struct weir_thread_stats *thread = &snapshot->threads[i];
        if (thread->role == role)
            fill(&report->workers[report->n_workers++], thread, &shares);
        else if (thread->role == WEIR_ROLE_CONSUMER && !report->consumer.name[0]) /* the first one runs the loop */
            fill(&report->consumer, thread, &shares);
    }
    qsort(report->workers, (size_t)report->n_workers, sizeof *report->workers, by_name);
    return 0;
}

/* ---- tables ---- */

enum { WORKERS_SHOWN = 16 }; /* unless --wide asks for all */

/* Explains spans that add up to more than the workers' time: spans of samples that workers process concurrently
 * overlap. Without this line, the total would look like an error. */
static void print_overlap(FILE *out, const struct weir_report *report)
{
    const struct weir_report_row *most = NULL;
    double wall_s = 0;
    for (int i = 0; i < report->n_workers; i++)
        wall_s += report->workers[i].wall_s;
    for (int i = 0; i < report->n_rows; i++)
        if (report->rows[i].kind == WEIR_KIND_SPAN && report->rows[i].total_s > (most ? most->total_s : wall_s))
            most = &report->rows[i];
    if (!most)
        return;
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    fprintf(text,
            "spans of %s overlap: they add up to %.3fs in %.3fs of the workers' time; the mean is the latency of one "
            "span\n",
            most->name, most->total_s, wall_s);
    weir_wrap_close(&wrap);
}

/* Returns the number of workers with a row before this one in a table by work time. */
static int work_rank(const struct weir_report *report, int worker)
{
    int rank = 0;
    for (int i = 0; i < report->n_workers; i++) {
        double work_s = report->workers[i].work_s, own_s = report->workers[worker].work_s;
        rank += work_s > own_s || (work_s == own_s && i < worker);
    }
    return rank;
}

void weir_report_threads_print(FILE *out, const struct weir_report *report)
{
    struct weir_table table;
    bool folds = weir_terminal_folds() && report->n_workers > WORKERS_SHOWN;
    if (report->n_workers == 0)
        return;
    print_overlap(out, report);
    weir_table_open_fields(&table, &weir_thread_fields);
    for (int i = 0; i < report->n_workers; i++)
        if (!folds || work_rank(report, i) < WORKERS_SHOWN)
            weir_table_row(&table, &weir_thread_fields, &report->workers[i]);
    if (report->consumer.name[0])
        weir_table_row(&table, &weir_thread_fields, &report->consumer);
    weir_table_print(out, &table);
    if (folds)
        fprintf(out, "%d more workers, which worked less: --wide\n", report->n_workers - WORKERS_SHOWN);
}
