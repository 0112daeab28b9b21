/* tune_session.h: a call of weir tune: the machine and the dataset that it searches for, and the child processes that
 * measure its settings. */
#ifndef WEIR_CLI_TUNE_TUNE_SESSION_H
#define WEIR_CLI_TUNE_TUNE_SESSION_H

#include "base/gz_file.h"
#include "cli/tune/tune_options.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>

enum { TUNE_LINES = 128 };

struct tune_session {
    const struct tune_options *options;
    const char *data;
    FILE *out;                   /* where the path is printed as it is taken */
    FILE *log;                   /* NULL = none */
    struct weir_gz_file *config; /* of --out, open from the beginning: what cannot be written is known then */
    uint64_t begin_ns, end_ns;   /* weir_clock_monotonic_ns */
    const volatile sig_atomic_t *interrupted;
    double seconds;          /* of a turn: longer where batches are few */
    double cached;           /* of the files, in the page cache when it began; -1 = not known */
    int cores;               /* usable ones, of this process's part */
    char *lines[TUNE_LINES]; /* owned: the path */
    int n_lines;
    struct weir_tune tune;
};

/* Opens DATA for a moment, reads its files into the page cache where memory has room for them, and says what may be
 * tried. -EEXIST when an output is a file of DATA. 0 or negative. */
int tune_session_open(struct tune_session *session, const struct weir_command *command, struct weir_err *err);
void tune_session_close(struct tune_session *session);

#endif
