/* run_session.h: a run from its options to the exit status: signals, head, output files and the loop (run_loop.h). */
#ifndef WEIR_CLI_RUN_RUN_SESSION_H
#define WEIR_CLI_RUN_RUN_SESSION_H

#include "cli/commands.h"
#include "cli/run/run_loop.h"
#include "cli/run/run_options.h"

/* All members are borrowed. */
struct weir_run_session {
    const struct weir_command *command;
    struct run_options *options; /* loader.format is completed here */
    const void *values;          /* the command's option values, for the log */
    const char *data;
    const struct weir_run_consumer *consumer; /* NULL: the stand-in of --step-ms */
};

/* Runs, prints, and returns the exit status. Catches SIGINT and SIGTERM: call once per process. */
int weir_run_session(const struct weir_run_session *session);

#endif
