/* run_session.h: one run of a loader from checked options to the exit status: signals, the head, the files that are
 * written, the loop (run_loop.h). What weir run is. */
#ifndef WEIR_CLI_RUN_RUN_SESSION_H
#define WEIR_CLI_RUN_RUN_SESSION_H

#include "cli/commands.h"
#include "cli/run/run_loop.h"
#include "cli/run/run_options.h"

/* All borrowed. */
struct weir_run_session {
    const struct weir_command *command;
    struct run_options *options; /* loader.format is completed here */
    const void *values;          /* of the command's options, which the log repeats */
    const char *data;
    const struct weir_run_consumer *consumer; /* NULL: the stand-in of --step-ms */
};

/* Prints, and returns the exit status. Once a process: it catches SIGINT and SIGTERM. */
int weir_run_session(const struct weir_run_session *session);

#endif
