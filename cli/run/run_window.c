#include "cli/run/run_live.h"

static const double WARM_UP = 0.2; /* min duration of the warm-up, as a fraction of the measured time */

static void open_window(struct weir_run_window *window, uint64_t now_ns)
{
    window->open = true;
    window->begin_ns = window->end_ns = now_ns;
}

void weir_run_window_begin(struct weir_run_window *window, uint64_t now_ns)
{
    window->run_ns = now_ns;
    if (window->no_warm_up)
        open_window(window, now_ns);
}

static bool is_warm(const struct weir_run_window *window, bool ends_epoch, uint64_t now_ns)
{
    if (window->whole_epoch)
        return ends_epoch;
    double seconds = (double)(now_ns - window->run_ns) / 1e9;
    return seconds >= WARM_UP * window->seconds && window->batches >= (uint64_t)window->slots;
}

bool weir_run_window_batch(struct weir_run_window *window, const struct weir_batch *batch, int images_per_sample,
                           bool ends_epoch, uint64_t now_ns)
{
    if (window->seconds <= 0 || window->over)
        return false;
    if (!window->open) {
        window->batches++;
        if (!is_warm(window, ends_epoch, now_ns))
            return false;
        open_window(window, now_ns);
        return true;
    }
    window->line.batches++;
    window->line.samples += (uint64_t)batch->n;
    window->line.images += (uint64_t)batch->n * (uint64_t)images_per_sample;
    window->wait_ns += batch->wait_ns;
    window->end_ns = now_ns;
    window->over = (double)(now_ns - window->begin_ns) >= window->seconds * 1e9;
    return false;
}

double weir_run_window_least(const struct weir_run_window *window)
{
    return window->seconds * (window->no_warm_up ? 1 : 1 + WARM_UP);
}

void weir_run_window_finish(struct weir_run_window *window, struct weir_measured_line *line)
{
    *line = window->line;
    line->seconds = (double)(window->end_ns - window->begin_ns) / 1e9;
    line->warm_up_s = window->open ? (double)(window->begin_ns - window->run_ns) / 1e9 : 0;
    if (line->seconds <= 0)
        return;
    line->samples_per_s = (double)line->samples / line->seconds;
    line->images_per_s = (double)line->images / line->seconds;
    line->data_wait_fraction = (double)window->wait_ns / 1e9 / line->seconds;
}
