#include "cli/run/run_live.h"
#include "base/terminal.h"
#include "cli/progress.h"
#include "pipeline/samples/sampler.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 256, LONG_WORDS = 100 /* columns from which the line has longer words */ };
static const uint64_t FIRST_NS = 1000000000u, PERIOD_NS = 500000000u, ESTIMATE_NS = 2000000000u;
static const double RECENT_S = 30; /* time over which the time per batch is averaged */

/* ---- the announcement ---- */

static void announce_epochs(struct weir_run_live *live)
{
    const struct weir_sampler *sampler = weir_loader_sampler(live->loader);
    uint64_t all = weir_sampler_total(sampler), left = all - weir_loader_position(live->loader);
    char total[WEIR_TIME_LEFT], each[WEIR_TIME_LEFT];
    double left_s = (double)left * live->batch_s, epoch_s = (double)all * live->batch_s / live->epochs;
    live->announced = true;
    weir_duration(left_s, total);
    weir_duration(epoch_s, each);
    if (left_s > WEIR_ANNOUNCE_S)
        fprintf(stderr, "%sabout %s: %d epoch%s of %s\n", weir_progress_erase(), total, live->epochs,
                live->epochs == 1 ? "" : "s", each);
}

static void announce_window(const struct weir_run_window *window)
{
    char total[WEIR_TIME_LEFT], measured[WEIR_TIME_LEFT];
    double all_s = weir_run_window_least(window);
    weir_duration(all_s, total);
    weir_duration(window->seconds, measured);
    if (all_s > WEIR_ANNOUNCE_S)
        fprintf(stderr, "about %s: %s measured%s\n", total, measured, window->no_warm_up ? "" : " after a warm-up");
}

void weir_run_live_begin(struct weir_run_live *live)
{
    live->terminal = weir_progress_on_terminal();
    live->announced = live->window->seconds > 0;
    if (live->announced)
        announce_window(live->window);
}

/* ---- the line ---- */

struct line {
    char text[LINE];
    int width, used;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a part if it fits. */
static void add(struct line *line, const char *format, ...)
{
    char part[LINE];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(part, sizeof part, format, args);
    va_end(args);
    int space = line->used ? 2 : 0;
    if (n < 0 || line->used + space + n > line->width || line->used + space + n >= LINE)
        return;
    line->used += snprintf(line->text + line->used, sizeof line->text - (size_t)line->used, "%*s%s", space, "", part);
}

static void add_window(struct line *line, const struct weir_run_window *window, uint64_t now_ns)
{
    double seconds = (double)(now_ns - window->begin_ns) / 1e9;
    char left[WEIR_TIME_LEFT];
    if (!window->open) {
        add(line, "warming up");
        return;
    }
    weir_time_left(window->seconds - seconds, left);
    add(line, "measuring %.0f %%", fmin(100 * seconds / window->seconds, 100));
    add(line, "%s left", left);
}

static void add_epochs(struct line *line, const struct weir_run_live *live, const struct weir_batch *batch)
{
    uint64_t all = weir_sampler_total(weir_loader_sampler(live->loader)), done = weir_loader_position(live->loader);
    char left[WEIR_TIME_LEFT];
    weir_time_left((double)(all - done) * live->batch_s, left);
    add(line, "epoch %d/%d %.0f %%", batch->plan.epoch + 1, live->epochs,
        all ? floor(100 * (double)done / (double)all) : 0);
    if (live->batch_s > 0)
        add(line, "%s left", left);
}

static void draw(const struct weir_run_live *live, const struct weir_batch *batch, uint64_t now_ns)
{
    struct weir_loader_now now;
    struct line line = {.width = weir_terminal_columns(stderr) - 1};
    bool words = line.width >= LONG_WORDS;
    double seconds = (double)(now_ns - live->since_ns) / 1e9;
    weir_loader_now(live->loader, &now);
    if (live->window->seconds > 0)
        add_window(&line, live->window, now_ns);
    else
        add_epochs(&line, live, batch);
    add(&line, "%.0f images/s", (double)live->images / seconds);
    if (live->has_step)
        add(&line, "data wait %.0f %%", fmin(100 * (double)live->wait_ns / 1e9 / seconds, 100));
    add(&line, words ? "%d of %d batches ready" : "ready %d/%d", now.batches_ready, now.slots);
    add(&line, words ? "%d of %d workers busy" : "busy %d/%d", now.workers_busy, now.workers);
    weir_progress_draw(line.text);
}

/* Returns when the next line, or the announcement, is due. */
static uint64_t next_due(const struct weir_run_live *live, uint64_t now_ns)
{
    return live->terminal ? now_ns + PERIOD_NS : live->announced ? UINT64_MAX : live->first_ns + ESTIMATE_NS;
}

void weir_run_live_update_(struct weir_run_live *live, const struct weir_batch *batch, uint64_t now_ns)
{
    WEIR_ZONE(WEIR_STAGE_REPORT);
    if (live->first_ns == 0) {
        live->first_ns = now_ns;
        live->due_ns = next_due(live, now_ns + FIRST_NS - PERIOD_NS);
    } else {
        double seconds = (double)(now_ns - live->since_ns) / 1e9, each_s = seconds / (double)live->batches;
        live->batch_s =
            live->batch_s > 0 ? live->batch_s + (each_s - live->batch_s) * fmin(seconds / RECENT_S, 1) : each_s;
        if (!live->announced && now_ns - live->first_ns >= ESTIMATE_NS)
            announce_epochs(live);
        if (live->terminal)
            draw(live, batch, now_ns);
        live->due_ns = next_due(live, now_ns);
    }
    live->since_ns = now_ns;
    live->batches = live->images = live->wait_ns = 0;
}
