/* progress.h: the progress of opening a dataset, and of looking at all of it, on stderr: a line that is rewritten on a
 * terminal, a plain line every ten seconds elsewhere, nothing when it is over within a second. */
#ifndef WEIR_CLI_PROGRESS_H
#define WEIR_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct weir_index_progress {
    bool terminal, shown;
    uint64_t last_ns;
    const char *doing; /* of weir_rate_progress: since begin_ns, when begin_done were done */
    uint64_t begin_ns, begin_done;
};

void weir_index_progress_begin(struct weir_index_progress *progress);

/* Removes the line from a terminal, before something is printed there; the next call writes it anew. */
void weir_progress_clear(struct weir_index_progress *progress);

/* For weir_verify_config: the same for frames. */
void weir_verify_progress(void *user, uint64_t done, uint64_t total);

/* The same with frames a second, and how long it will take. doing: static text; another one begins anew. */
void weir_rate_progress(struct weir_index_progress *progress, const char *doing, uint64_t done, uint64_t total);

/* For weir_dataset_config and weir_loader_config: user is the struct. */
void weir_index_progress(void *user, int done, int total);

#endif
