/* child.h: runs a program as a child process and captures its output, builds its command line word by word, and handles
 * Ctrl-C in programs that run children. */
#ifndef WEIR_ANALYZE_TRIALS_CHILD_H
#define WEIR_ANALYZE_TRIALS_CHILD_H

#include "base/option.h"
#include "weir/base.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct weir_child_config {
    const char *program;                      /* path, or NULL = this program */
    char *const *argv;                        /* ends with NULL; not interpreted by a shell */
    double seconds;                           /* time limit, after which the child is killed */
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

/* ---- command lines ---- */

/* A command line. Zero-initialise. argv is owned and ends with NULL; it is NULL if there are no words. */
struct weir_words {
    char **argv;
    int n;
    bool failed; /* out of memory; argv is then NULL */
};
void weir_words_add(struct weir_words *words, const char *word);
/* Adds all words of a list that ends with NULL. argv can be NULL. */
void weir_words_add_all(struct weir_words *words, const char *const *argv);
/* Adds --name, followed by its value unless this is NULL. */
void weir_words_add_option(struct weir_words *words, const char *name, const char *value);
/* Adds the options of a table (base/option.h) that these commands have and whose values differ from their defaults. */
void weir_words_add_options(struct weir_words *words, const struct weir_opt *opts, unsigned users, const void *values);
/* Adds the options of weir run for a trial, which measures this many seconds and prints only the table of this time, as
 * JSON lines. */
void weir_words_add_measured(struct weir_words *words, double seconds);
void weir_words_free(struct weir_words *words);

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
