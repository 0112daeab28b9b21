/* progress.h: progress on stderr while datasets are opened, verified or converted: a redrawn line on a terminal, else a
 * plain line every ten seconds; nothing within the first second. */
#ifndef WEIR_CLI_PROGRESS_H
#define WEIR_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct weir_index_progress {
    bool terminal, shown;
    uint64_t last_ns;
    const char *doing; /* for weir_rate_progress: activity since begin_ns, when begin_done units were done */
    uint64_t begin_ns, begin_done;
};

void weir_index_progress_begin(struct weir_index_progress *progress);

/* Removes the line from a terminal before other output; the next call redraws it. */
void weir_progress_clear(struct weir_index_progress *progress);

/* Callback of weir_verify_config: progress in frames. */
void weir_verify_progress(void *user, uint64_t done, uint64_t total);

/* Progress with frames per second and the remaining time. doing: static text; a new text restarts the rate. */
void weir_rate_progress(struct weir_index_progress *progress, const char *doing, uint64_t done, uint64_t total);

/* Callback of weir_dataset_config and weir_loader_config; user is a struct weir_index_progress. */
void weir_index_progress(void *user, int done, int total);

#endif
