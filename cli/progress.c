#include "cli/progress.h"
#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

void weir_index_progress_begin(struct weir_index_progress *progress)
{
    *progress = (struct weir_index_progress){isatty(STDERR_FILENO), false, weir_clock_monotonic_ns()};
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
