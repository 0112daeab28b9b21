#include "analyze/watch/watch_figures.h"

#include <math.h>
#include <string.h>

static double sd_of(double n, double sum, double squares)
{
    double mean = n > 0 ? sum / n : 0;
    return n > 1 ? sqrt(fmax(squares / n - mean * mean, 0)) : 0;
}

static void fill_worker(struct weir_watch_worker *to, int worker, const struct weir_watch_worker_counts *from)
{
    double mean_s = from->batches > 0 ? from->busy_s / from->batches : 0;
    *to = (struct weir_watch_worker){.worker = worker,
                                     .wall_s = from->wall_s,
                                     .busy_s = from->busy_s,
                                     .wait_s = from->wait_s,
                                     .start_s = from->start_s,
                                     .batches = from->batches,
                                     .items = from->items,
                                     .batch_s = mean_s,
                                     .cpu_s = from->cpu_s,
                                     .delay_s = from->delay_s,
                                     .asked_of_s = from->asked_of_s};
    to->spread = mean_s > 0 ? sd_of(from->batches, from->busy_s, from->busy_squares) / mean_s : 0;
}

static void fill_loop(struct weir_watch_figures *to, const struct weir_watch_counts *from, double run_first_s)
{
    to->requests = from->requests;
    to->batches = from->batches;
    to->items = from->items;
    to->loop_s = from->loop_s;
    to->wait_s = fmin(from->wait_s, from->loop_s);
    to->run_first_s = fmin(run_first_s, to->wait_s);
    to->ready_known = from->ready_known;
    to->ready_mean = from->ready_known > 0 ? from->ready_sum / from->ready_known : 0;
    to->ready_none = from->ready_none;
    to->wait_none_s = from->wait_of_s[WEIR_WATCH_WAIT_NONE_READY];
    to->wait_order_s = from->wait_of_s[WEIR_WATCH_WAIT_OUT_OF_ORDER];
    to->wait_due_s = from->wait_of_s[WEIR_WATCH_WAIT_DUE_READY];
    to->wait_unknown_s = from->wait_of_s[WEIR_WATCH_WAIT_UNKNOWN];
    to->epochs = from->epochs;
    to->first_waits = from->first_waits;
    to->first_wait_s = fmin(from->first_wait_s, to->wait_s);
    to->startups = from->startups;
    to->startup_s = from->startup_s;
    to->windows = from->windows;
    to->given_up = from->given_up;
    to->held_s = from->held_s;
    to->window_batches = from->window_batches;
    to->window_s = from->window_s;
    to->window_sd_s = sd_of(from->window_batches, from->window_s, from->window_squares);
    to->rest_batches = from->rest_batches;
    to->rest_s = from->rest_s;
    to->rest_sd_s = sd_of(from->rest_batches, from->rest_s, from->rest_squares);
}

static void fill_slowest(struct weir_watch_figures *to, const struct weir_watch_reading *from)
{
    to->n_items = from->n_items;
    for (int i = 0; i < from->n_items; i++) {
        const struct weir_watch_item *item = &from->items[i];
        bool is_number = item->index >= 0 && item->index < (1ll << 49);
        to->slow_items[i] =
            (struct weir_watch_slow_item){is_number ? (double)item->index : -1, item->worker, item->s, ""};
        memcpy(to->slow_items[i].file, item->file, sizeof item->file);
    }
    to->n_files = from->n_files;
    for (int i = 0; i < from->n_files; i++) {
        const struct weir_watch_file *file = &from->files[i];
        double count = (double)file->count;
        to->slow_files[i] =
            (struct weir_watch_slow_file){"", count, count > 0 ? file->total_s / count : 0, file->max_s};
        memcpy(to->slow_files[i].name, file->name, sizeof file->name);
    }
    to->files_seen = (double)from->files_seen;
    to->files_mean_s = from->files_mean_s;
    for (int i = 0; i < WEIR_WATCH_WORKERS; i++) {
        to->paths_s += from->counts.workers[i].path_s;
        to->paths += from->counts.workers[i].path_count;
    }
    to->n_unseen = from->n_unseen;
    for (int i = 0; i < from->n_unseen; i++)
        memcpy(to->unseen[i].what, from->unseen[i], sizeof to->unseen[i].what);
}

void weir_watch_figures_make(struct weir_watch_figures *to, const struct weir_watch_reading *reading,
                             double run_first_s)
{
    memset(to, 0, sizeof *to);
    to->known = true;
    memcpy(to->name, reading->name, sizeof to->name);
    to->settings = reading->settings;
    fill_loop(to, &reading->counts, run_first_s);
    to->ready_min = reading->ready_min;
    to->ready_max = reading->ready_max;
    to->n_threads = to->others_in_worker = -1;
    for (int i = 0; i < reading->n_workers; i++)
        if (reading->counts.workers[i].batches > 0)
            fill_worker(&to->workers[to->n_workers++], i, &reading->counts.workers[i]);
    fill_slowest(to, reading);
}

/* ---- sums ---- */

static void add_shares(struct weir_watch_shares *to, const struct weir_watch_shares *from, double wall_s)
{
    to->seconds += from->seconds;
    to->storage += from->storage * wall_s;
    to->lock += from->lock * wall_s;
    to->sleep += from->sleep * wall_s;
    to->idle += from->idle * wall_s;
    to->other += from->other * wall_s;
}

/* A worker is busy or waits for an index, for which it is idle. So the other uses are parts of its busy time. */
void weir_watch_sum(struct weir_watch_sums *sums, const struct weir_watch_figures *figures)
{
    double squares = 0;
    *sums = (struct weir_watch_sums){0};
    for (int i = 0; i < figures->n_workers; i++) {
        const struct weir_watch_worker *worker = &figures->workers[i];
        sums->wall_s += worker->wall_s;
        sums->busy_s += worker->busy_s;
        sums->wait_s += worker->wait_s;
        sums->batches += worker->batches;
        sums->cpu_s += worker->cpu_s;
        sums->delay_s += fmax(worker->delay_s, 0);
        double sd_s = worker->spread * worker->batch_s;
        squares += worker->batches * (sd_s * sd_s + worker->batch_s * worker->batch_s);
        add_shares(&sums->shares, &worker->shares, worker->wall_s);
    }
    if (sums->batches <= 0 || sums->busy_s <= 0)
        return;
    sums->batch_s = sums->busy_s / sums->batches;
    sums->spread = sd_of(sums->batches, sums->busy_s, squares) / sums->batch_s;
    sums->on_core = fmin(sums->cpu_s / sums->busy_s, 1);
    sums->core_wait = fmin(sums->delay_s / sums->busy_s, 1 - sums->on_core);
    double *const parts[] = {&sums->shares.storage, &sums->shares.lock, &sums->shares.sleep, &sums->shares.other,
                             &sums->shares.idle};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        *parts[i] = fmin(*parts[i] / sums->busy_s, 1);
}

void weir_watch_sum_threads(struct weir_watch_sums *sums, const struct weir_watch_figures *figures,
                            const struct weir_watch_parts *parts)
{
    double pickling = parts->busy_s > 0 ? parts->pickle_s / parts->busy_s : 0;
    sums->threads = fmax(fmax(figures->others_in_worker, 0) * sums->on_core - pickling, 0);
    double waited = fmin(fmin(sums->threads, sums->shares.lock), fmax(1 - sums->on_core - sums->core_wait, 0));
    sums->threads -= waited;
    sums->shares.lock -= waited;
    sums->on_core += waited;
    sums->for_threads = waited;
}

/* ---- stages ---- */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static void add_row(struct weir_watch_parts *parts, const struct weir_report_row *row, double longest[2])
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

void weir_watch_parts_make(struct weir_watch_parts *parts, const struct weir_loader_report *report)
{
    double longest[2] = {0, 0};
    *parts = (struct weir_watch_parts){0};
    for (int i = 0; i < report->prof.n_rows; i++) {
        const struct weir_report_row *row = &report->prof.rows[i];
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
