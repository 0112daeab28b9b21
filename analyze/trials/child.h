/* child.h: runs a program as a child process and captures its output; Ctrl-C in programs that do. */
#ifndef WEIR_ANALYZE_TRIALS_CHILD_H
#define WEIR_ANALYZE_TRIALS_CHILD_H

#include "weir/base.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct weir_child_config {
    const char *program;                      /* path: "/proc/self/exe" */
    char *const *argv;                        /* ends with NULL; not passed through a shell */
    double seconds;                           /* time limit, then the child is killed */
    bool show_stderr;                         /* the child inherits stderr; otherwise its last line goes to err */
    const volatile sig_atomic_t *interrupted; /* not 0: end the child; may be NULL */
};

enum { WEIR_CHILD_OUTPUT_MAX = 16 << 20 };

struct weir_child {
    char *output; /* stdout; owned: weir_child_free; ends with a zero byte that length excludes */
    size_t length;
};

/* Runs the child and waits for its end. 0 when it exited with 0; -EINTR when interrupted, -ETIMEDOUT, -E2BIG when it
 * printed more than WEIR_CHILD_OUTPUT_MAX, -ECHILD when it failed: err then has the last line of its stderr, or the
 * signal. */
int weir_child_run(struct weir_child *child, const struct weir_child_config *config, struct weir_err *err);
void weir_child_free(struct weir_child *child);

/* ---- Ctrl-C ---- */

/* Set by SIGINT, SIGTERM and SIGHUP (a closed terminal; not under nohup) after weir_catch_interrupts. A second signal
 * of the same kind ends the process unless interrupts are held. */
extern volatile sig_atomic_t weir_interrupted;

void weir_catch_interrupts(void);

/* Holds interrupts while there are files to remove; the caller then has to end soon once weir_interrupted is set. */
void weir_hold_interrupts(bool hold);

#endif
