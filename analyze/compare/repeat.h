/* repeat.h: runs two commands in turns and measures each run as a whole. */
#ifndef WEIR_ANALYZE_COMPARE_REPEAT_H
#define WEIR_ANALYZE_COMPARE_REPEAT_H

#include "analyze/compare/compared.h"
#include "weir/base.h"

#include <signal.h>

enum { WEIR_REPEAT_SIDES = 2 };

struct weir_repeat_config {
    int runs;                                   /* of each command */
    const char *const *argv[WEIR_REPEAT_SIDES]; /* each ends with NULL */
    const volatile sig_atomic_t *interrupted;
    void (*done)(void *user, int run, int side, double seconds); /* called after each run; run counts from 0 */
    void *user;
};

/* Runs the commands in turns; every other round begins with the second one. A run is one measurement: the medians of
 * what it prints, if that is a log or a result that weir compare reads, on standard output or else on standard error;
 * otherwise its duration. Returns 0 or -errno; the error of a command that fails is its last line on standard error.
 * sides[i].path is the command, owned by the caller, who also frees the sides, also after an error. */
int weir_repeat_run(struct weir_compared sides[WEIR_REPEAT_SIDES], char *commands[WEIR_REPEAT_SIDES],
                    const struct weir_repeat_config *config, struct weir_err *err);

#endif
