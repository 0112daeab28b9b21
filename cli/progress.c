#include "cli/progress.h"
#include "base/terminal.h"
#include "base/text.h"
#include "weir/base.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char ERASE[] = "\r\033[K";
static const uint64_t LINE_NS = 10000000000u, FIRST_NS = 1000000000u, REDRAW_NS = 100000000u;
static const double ESTIMATE_S = 2; /* time before a duration is estimated */

/* ---- the line of the terminal ---- */

static atomic_bool drawn; /* the terminal shows a line */

bool weir_progress_on_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

const char *weir_progress_erase(void)
{
    return atomic_exchange_explicit(&drawn, false, memory_order_relaxed) ? ERASE : "";
}

void weir_progress_clear(void)
{
    fputs(weir_progress_erase(), stderr);
}

void weir_progress_draw(const char *text)
{
    size_t n = weir_text_fitting(text, weir_terminal_columns(stderr) - 1);
    atomic_store_explicit(&drawn, true, memory_order_relaxed);
    fprintf(stderr, "%s%.*s", ERASE, (int)n, text);
}

void weir_time_left(double seconds, char text[WEIR_TIME_LEFT])
{
    uint64_t s = seconds < 1 ? 0 : seconds > 1e9 ? 1000000000u : (uint64_t)(seconds + 0.5);
    if (s < 3600)
        snprintf(text, WEIR_TIME_LEFT, "%d:%02d", (int)(s / 60), (int)(s % 60));
    else
        snprintf(text, WEIR_TIME_LEFT, "%d:%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
}

void weir_duration(double seconds, char text[WEIR_TIME_LEFT])
{
    if (seconds < 9.95)
        snprintf(text, WEIR_TIME_LEFT, "%.2g s", seconds);
    else if (seconds < 90)
        snprintf(text, WEIR_TIME_LEFT, "%.0f s", seconds);
    else if (seconds < 90 * 60)
        snprintf(text, WEIR_TIME_LEFT, "%.0f min", seconds / 60);
    else
        snprintf(text, WEIR_TIME_LEFT, "%.3g h", seconds / 3600);
}

/* ---- trials ---- */

void weir_trial_progress_begin(struct weir_trial_progress *progress, int total, uint64_t end_ns, const char *limit)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    double seconds = end_ns > now_ns ? (double)(end_ns - now_ns) / 1e9 : 0;
    char text[WEIR_TIME_LEFT];
    *progress = (struct weir_trial_progress){
        .terminal = weir_progress_on_terminal(), .begin_ns = now_ns, .end_ns = end_ns, .total = total};
    weir_duration(seconds, text);
    if (total == 0 && seconds > WEIR_ANNOUNCE_S)
        fprintf(stderr, "at most about %s (%s)\n", text, limit);
}

void weir_trial_progress(struct weir_trial_progress *progress, const char *text)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    double left_s = progress->end_ns > now_ns ? (double)(progress->end_ns - now_ns) / 1e9 : 0;
    double each_s = (double)(now_ns - progress->begin_ns) / 1e9 / ++progress->done;
    bool known = progress->done <= progress->total;
    char line[256], total[24] = "", left[WEIR_TIME_LEFT];
    if (!progress->terminal)
        return;
    if (known) {
        left_s = fmin(left_s, (progress->total - progress->done) * each_s);
        snprintf(total, sizeof total, " of %d", progress->total);
    }
    weir_time_left(left_s, left);
    snprintf(line, sizeof line, "trial %d%s, %s%s left: %s", progress->done, total, known ? "" : "at most ", left,
             text);
    weir_progress_draw(line);
}

/* ---- counted work ---- */

void weir_progress_begin(struct weir_progress *progress)
{
    *progress = (struct weir_progress){.terminal = weir_progress_on_terminal(), .last_ns = weir_clock_monotonic_ns()};
}

static void show(struct weir_progress *progress, const char *doing, const char *what, uint64_t done, uint64_t total)
{
    uint64_t now_ns = weir_clock_monotonic_ns(), period_ns = LINE_NS;
    char text[256];
    if (progress->terminal)
        period_ns = progress->shown ? REDRAW_NS : FIRST_NS;
    if (done == total) {
        weir_progress_clear();
        return;
    }
    if (now_ns - progress->last_ns < period_ns)
        return;
    progress->last_ns = now_ns;
    progress->shown = true;
    snprintf(text, sizeof text, "%s: %llu of %llu %s", doing, (unsigned long long)done, (unsigned long long)total,
             what);
    if (progress->terminal)
        weir_progress_draw(text);
    else
        fprintf(stderr, "%s\n", text);
}

void weir_index_progress(void *user, int done, int total)
{
    show(user, "indexing", "episodes", (uint64_t)done, (uint64_t)total);
}

/* Announces the duration once it can be estimated. */
static void announce(struct weir_progress *progress, const char *doing, double seconds, double rate, uint64_t total)
{
    char text[WEIR_TIME_LEFT];
    double all_s = rate > 0 ? (double)(total - progress->begin_done) / rate : 0;
    if (progress->announced || seconds < ESTIMATE_S)
        return;
    progress->announced = true;
    weir_duration(all_s, text);
    if (all_s > WEIR_ANNOUNCE_S)
        fprintf(stderr, "%s%s: about %s for %llu frames\n", weir_progress_erase(), doing, text,
                (unsigned long long)total);
}

void weir_rate_progress(struct weir_progress *progress, const char *doing, uint64_t done, uint64_t total)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    if (progress->doing != doing) {
        progress->doing = doing;
        progress->begin_ns = now_ns;
        progress->begin_done = done;
        progress->announced = false;
    }
    double seconds = (double)(now_ns - progress->begin_ns) / 1e9;
    double rate = seconds > 0 ? (double)(done - progress->begin_done) / seconds : 0;
    char what[96] = "frames", left[WEIR_TIME_LEFT];
    if (rate > 0) {
        weir_time_left((double)(total - done) / rate, left);
        snprintf(what, sizeof what, "frames, %.0f frames/s, %s left", rate, left);
    }
    announce(progress, doing, seconds, rate, total);
    show(progress, doing, what, done, total);
}
