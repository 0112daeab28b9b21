#include "analyze/jobs/dataloader.h"

#include <math.h>
#include <string.h>

double weir_standard_deviation(double n, double sum, double squares)
{
    double mean = n > 0 ? sum / n : 0;
    return n > 1 ? sqrt(fmax(squares / n - mean * mean, 0)) : 0;
}

/* A worker is busy or waits for an index, for which it is idle. So the other uses are parts of its busy time. */
void weir_dataloader_sum(struct weir_thread_figures *sum, const struct weir_dataloader_figures *figures)
{
    double squares = 0, *of = sum->shares.of;
    *sum = (struct weir_thread_figures){0};
    for (int i = 0; i < figures->n_workers; i++) {
        const struct weir_thread_figures *worker = &figures->workers[i];
        sum->wall_s += worker->wall_s;
        sum->busy_s += worker->busy_s;
        sum->wait_s += worker->wait_s;
        /* From outside batches are not seen, and count as one second each. */
        double batches = worker->batches < 0 ? worker->busy_s : worker->batches;
        double batch_s = worker->batches < 0 ? 1 : worker->batch_s;
        sum->batches += batches;
        sum->cpu_s += worker->cpu_s;
        sum->delay_s += fmax(worker->delay_s, 0);
        double sd_s = worker->spread * batch_s;
        squares += batches * (sd_s * sd_s + batch_s * batch_s);
        for (int use = WEIR_TASK_STORAGE; use < WEIR_TASK_USES; use++)
            of[use] += worker->shares.of[use] * worker->wall_s;
    }
    if (sum->batches <= 0 || sum->busy_s <= 0)
        return;
    sum->batch_s = sum->busy_s / sum->batches;
    sum->spread = weir_standard_deviation(sum->batches, sum->busy_s, squares) / sum->batch_s;
    of[WEIR_TASK_ON_CORE] = fmin(sum->cpu_s / sum->busy_s, 1);
    of[WEIR_TASK_CORE_WAIT] = fmin(sum->delay_s / sum->busy_s, 1 - of[WEIR_TASK_ON_CORE]);
    for (int use = WEIR_TASK_STORAGE; use < WEIR_TASK_USES; use++)
        of[use] = fmin(of[use] / sum->busy_s, 1);
}

/* ---- stages ---- */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static void add_row(struct weir_dataloader_stages *parts, const struct weir_report_row *row, double longest[2])
{
    bool opens = strcmp(row->name, "02_open") == 0;
    if (strcmp(row->name, "01_getitem") == 0) {
        parts->own_s += row->self_s;
    } else if (opens || strcmp(row->name, "03_read") == 0) {
        parts->open_s += opens ? row->self_s : 0;
        parts->opens += opens ? (double)row->count : 0;
        parts->read_s += row->self_s;
        parts->read_cpu_s += row->cpu_s >= 0 ? row->cpu_s : row->self_s;
    } else if (strcmp(row->name, "03b_image_decode") == 0 || strcmp(row->name, "03j_video_decode") == 0) {
        parts->decode_s += row->self_s;
    } else if (begins(row->name, "05_transform")) {
        parts->transform_s += row->self_s;
        if (row->self_s > longest[0])
            snprintf(parts->transform, sizeof parts->transform, "%s", row->name);
        longest[0] = fmax(longest[0], row->self_s);
    } else if (strcmp(row->name, "06_collate") == 0) {
        parts->collate_s += row->self_s;
    } else if (!weir_watch_is_stage(row->name) && row->kind == WEIR_KIND_WORK) {
        parts->named_s += row->self_s;
        if (row->self_s > longest[1])
            snprintf(parts->named, sizeof parts->named, "%s", row->name);
        longest[1] = fmax(longest[1], row->self_s);
    }
}

void weir_dataloader_add_report(struct weir_dataloader_figures *figures, const struct weir_loader_report *report)
{
    struct weir_dataloader_stages *parts = &figures->stages;
    const struct weir_report *prof = &report->prof;
    /* A loop that loads itself is the only worker. */
    bool loads = !prof->consumer.name[0] && prof->n_workers > 0;
    const struct weir_report_worker *loop = loads ? prof->workers : &prof->consumer;
    double longest[2] = {0, 0};
    *parts = (struct weir_dataloader_stages){0};
    figures->machine = prof->machine;
    figures->wall_s = report->wall_s;
    figures->cpu_s = report->cpu_s;
    figures->loop.wall_s = loop->wall_s;
    figures->loop.cpu_s = loop->cpu_s;
    figures->loop.delay_s = fmax(loop->core_wait_s, 0);
    for (int i = 0; i < prof->n_rows; i++) {
        const struct weir_report_row *row = &prof->rows[i];
        if (strcmp(row->name, "00_TOTAL_batch") == 0)
            parts->busy_s += row->total_s;
        else if (strcmp(row->name, "06b_pickle") == 0)
            parts->pickle_s += row->self_s;
        else if (strcmp(row->name, "07_h2d_copy") == 0)
            parts->h2d_s += row->self_s;
        else if (strcmp(row->name, "07c_pin_memory") == 0)
            parts->pin_s += row->self_s;
        else if (strcmp(row->name, "20_step") == 0)
            parts->step_s += row->total_s;
        else if (row->side == WEIR_SIDE_WORKER)
            add_row(parts, row, longest);
    }
}
