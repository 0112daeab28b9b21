#include "cli/progress.h"
#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

void weir_index_progress_begin(struct weir_index_progress *progress)
{
    *progress = (struct weir_index_progress){isatty(STDERR_FILENO), false, weir_clock_monotonic_ns()};
}

void weir_index_progress(void *user, int done, int total)
{
    struct weir_index_progress *progress = user;
    uint64_t now_ns = weir_clock_monotonic_ns(), period_ns = 10000000000u;
    if (progress->terminal)
        period_ns = progress->shown ? 100000000u : 1000000000u;
    bool over = done == total;
    if (now_ns - progress->last_ns >= period_ns && !over) {
        progress->last_ns = now_ns;
        progress->shown = true;
        fprintf(stderr, progress->terminal ? "\r\033[Kindexing: %d of %d episodes" : "indexing: %d of %d episodes\n",
                done, total);
    }
    if (over && progress->terminal && progress->shown)
        fputs("\r\033[K", stderr);
}
