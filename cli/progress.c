#include "cli/progress.h"
#include "weir/base.h"

#include <stdio.h>
#include <unistd.h>

void weir_index_progress_begin(struct weir_index_progress *progress)
{
    *progress = (struct weir_index_progress){.terminal = isatty(STDERR_FILENO), .last_ns = weir_clock_monotonic_ns()};
}

void weir_progress_clear(struct weir_index_progress *progress)
{
    if (progress->terminal && progress->shown)
        fputs("\r\033[K", stderr);
}

static void show(struct weir_index_progress *progress, const char *doing, const char *what, uint64_t done,
                 uint64_t total)
{
    uint64_t now_ns = weir_clock_monotonic_ns(), period_ns = 10000000000u;
    if (progress->terminal)
        period_ns = progress->shown ? 100000000u : 1000000000u;
    bool over = done == total;
    if (now_ns - progress->last_ns >= period_ns && !over) {
        progress->last_ns = now_ns;
        progress->shown = true;
        fprintf(stderr, progress->terminal ? "\r\033[K%s: %llu of %llu %s" : "%s: %llu of %llu %s\n", doing,
                (unsigned long long)done, (unsigned long long)total, what);
    }
    if (over)
        weir_progress_clear(progress);
}

void weir_index_progress(void *user, int done, int total)
{
    show(user, "indexing", "episodes", (uint64_t)done, (uint64_t)total);
}

void weir_verify_progress(void *user, uint64_t done, uint64_t total)
{
    show(user, "verifying", "frames", done, total);
}

void weir_rate_progress(struct weir_index_progress *progress, const char *doing, uint64_t done, uint64_t total)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    if (progress->doing != doing) {
        progress->doing = doing;
        progress->begin_ns = now_ns;
        progress->begin_done = done;
    }
    double seconds = (double)(now_ns - progress->begin_ns) / 1e9;
    double rate = seconds > 0 ? (double)(done - progress->begin_done) / seconds : 0;
    char what[96] = "frames";
    if (rate > 0) {
        uint64_t left = (uint64_t)((double)(total - done) / rate);
        snprintf(what, sizeof what, "frames, %.0f frames/s, %llu:%02llu left", rate, (unsigned long long)(left / 60),
                 (unsigned long long)(left % 60));
    }
    show(progress, doing, what, done, total);
}
