/* run_session.h: executes a run from its options to its exit status, with signals, head, output files and the loop
 * (run_loop.h). */
#ifndef WEIR_CLI_RUN_RUN_SESSION_H
#define WEIR_CLI_RUN_RUN_SESSION_H

#include "cli/commands.h"
#include "cli/run/run_loop.h"
#include "cli/run/run_options.h"

/* All members are borrowed. */
struct weir_run_session {
    const struct weir_command *command;
    struct run_options *options; /* loader.format is completed by weir_run_session */
    const void *values;          /* the command's option values, for the log */
    const char *data;
    const struct weir_run_consumer *consumer; /* NULL for the simulated step of --step-ms */
};

/* Runs, prints the results, and returns the exit status. Call it only once per process, because it installs handlers
 * for SIGINT and SIGTERM. */
int weir_run_session(const struct weir_run_session *session);

#endif
