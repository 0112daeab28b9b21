/* Figures of a watched loader from a reading of its segment. */
#include "analyze/watch/watch_figures.h"

#include <math.h>
#include <string.h>

static void fill_worker(struct weir_thread_figures *worker, int number)
{
    worker->id = number;
    worker->batch_s = worker->busy_s / worker->batches;
    double sd_s = weir_standard_deviation(worker->batches, worker->busy_s, worker->busy_squares);
    worker->spread = worker->batch_s > 0 ? sd_s / worker->batch_s : 0;
}

static void fill_loop(struct weir_dataloader_figures *to, const struct weir_watch_counts *from, double run_first_s)
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
    to->window_sd_s = weir_standard_deviation(from->window_batches, from->window_s, from->window_squares);
    to->rest_batches = from->rest_batches;
    to->rest_s = from->rest_s;
    to->rest_sd_s = weir_standard_deviation(from->rest_batches, from->rest_s, from->rest_squares);
}

void weir_watch_figures_make(struct weir_dataloader_figures *to, const struct weir_watch_reading *reading,
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
        if (reading->counts.workers[i].batches > 0) {
            to->workers[to->n_workers] = reading->counts.workers[i];
            fill_worker(&to->workers[to->n_workers++], i);
        }
    to->slowest = reading->slowest;
    to->paths = reading->counts.paths;
    to->paths_s = reading->counts.paths_s;
}
