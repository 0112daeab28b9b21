/* child.h: runs a program as a child process, and takes what it prints. */
#ifndef WEIR_ANALYZE_TRIALS_CHILD_H
#define WEIR_ANALYZE_TRIALS_CHILD_H

#include "weir/base.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct weir_child_config {
    const char *program; /* its file: "/proc/self/exe" */
    char *const *argv;   /* ends with NULL; no shell sees it */
    double seconds;      /* the child is killed after so long */
    bool show_stderr;    /* the child's goes where ours goes; else its last line is kept for the error */
    const volatile sig_atomic_t *interrupted; /* not 0: the child is ended; may be NULL */
};

enum { WEIR_CHILD_OUTPUT_MAX = 16 << 20 };

struct weir_child {
    char *output; /* owned, weir_child_free; of stdout, ended by a zero byte that is not in length */
    size_t length;
};

/* Waits until the child has ended, whatever came of it. 0 when it exited with 0; -EINTR when interrupted, -ETIMEDOUT,
 * -E2BIG when it printed more than WEIR_CHILD_OUTPUT_MAX, -ECHILD when it failed: err then has the last line of its
 * stderr, or the signal. */
int weir_child_run(struct weir_child *child, const struct weir_child_config *config, struct weir_err *err);
void weir_child_free(struct weir_child *child);

#endif
