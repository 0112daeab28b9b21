/* commands.h: the commands of weir; main.c holds the table. Exit status: 0 fine, 1 the run failed, 2 usage. */
#ifndef WEIR_CLI_COMMANDS_H
#define WEIR_CLI_COMMANDS_H

#include "cli/options.h"

extern const struct weir_command weir_cmd_run;
extern const struct weir_command weir_cmd_info;
extern const struct weir_command weir_cmd_synth;
extern const struct weir_command weir_cmd_report;
extern const struct weir_command weir_cmd_doctor;

/* Prints "weir COMMAND: TEXT" to stderr and returns 1. */
int weir_cli_fail(const struct weir_command *command, const struct weir_err *err);

#endif
