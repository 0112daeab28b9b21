/* child.h: runs a program as a child process and captures its output, and handles Ctrl-C in programs that run children.
 */
#ifndef WEIR_ANALYZE_TRIALS_CHILD_H
#define WEIR_ANALYZE_TRIALS_CHILD_H

#include "weir/base.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct weir_child_config {
    const char *program; /* path, or NULL = this program */
    char *const *argv;   /* ends with NULL; not interpreted by a shell */
    double seconds;      /* time limit, after which the child is killed */
    bool show_stderr;    /* the child inherits stderr; otherwise err gets the last line of its stderr */
    const volatile sig_atomic_t *interrupted; /* if not 0, the child is ended; can be NULL */
};

enum { WEIR_CHILD_OUTPUT_MAX = 16 << 20 };

struct weir_child {
    char *output; /* stdout, owned (weir_child_free); a NUL byte follows, which length does not count */
    size_t length;
};

/* Runs the child and waits until it ends. Returns 0 if it exits with status 0. Otherwise returns -EINTR if interrupted,
 * -ETIMEDOUT, -E2BIG if it printed more than WEIR_CHILD_OUTPUT_MAX bytes, or -ECHILD if it failed; err then contains
 * the last line of its stderr, or the signal. */
int weir_child_run(struct weir_child *child, const struct weir_child_config *config, struct weir_err *err);
void weir_child_free(struct weir_child *child);

/* ---- Ctrl-C ---- */

/* After weir_catch_interrupts, set to the number of the first signal among SIGINT, SIGTERM and SIGHUP (sent when a
 * terminal closes; ignored under nohup). A second signal of the same kind ends the process, unless interrupts are held.
 */
extern volatile sig_atomic_t weir_interrupted;

void weir_catch_interrupts(void);

/* Keeps repeated signals from ending the process while there are files to remove. The caller has to end soon after
 * weir_interrupted is set. */
void weir_hold_interrupts(bool hold);

#endif
