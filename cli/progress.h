/* progress.h: shows progress on stderr while datasets are opened, verified or converted. A terminal shows one line that
 * is redrawn, starting after one second. Otherwise a new line is printed every ten seconds. */
#ifndef WEIR_CLI_PROGRESS_H
#define WEIR_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct weir_index_progress {
    bool terminal, shown;
    uint64_t last_ns;
    const char *doing; /* for weir_rate_progress: the activity that began at begin_ns, after begin_done units */
    uint64_t begin_ns, begin_done;
};

void weir_index_progress_begin(struct weir_index_progress *progress);

/* Clears the progress line of a terminal, so that other output can be printed. The next call draws it again. */
void weir_progress_clear(struct weir_index_progress *progress);

/* Callback for weir_verify_config, which counts progress in frames. */
void weir_verify_progress(void *user, uint64_t done, uint64_t total);

/* Shows progress with frames per second and the remaining time. doing is a static string that names the activity. A
 * different pointer restarts the rate. */
void weir_rate_progress(struct weir_index_progress *progress, const char *doing, uint64_t done, uint64_t total);

/* Callback for weir_dataset_config and weir_loader_config. user is a struct weir_index_progress. */
void weir_index_progress(void *user, int done, int total);

#endif
