/* commands.h: the table of the program's commands. */
#ifndef WEIR_CLI_COMMANDS_H
#define WEIR_CLI_COMMANDS_H

#include "cli/options.h"

extern const struct weir_command weir_cmd_run;
extern const struct weir_command weir_cmd_top;
extern const struct weir_command weir_cmd_info;
extern const struct weir_command weir_cmd_verify;
extern const struct weir_command weir_cmd_convert;
extern const struct weir_command weir_cmd_bench;
extern const struct weir_command weir_cmd_whatif;
extern const struct weir_command weir_cmd_tune;
extern const struct weir_command weir_cmd_synth;
extern const struct weir_command weir_cmd_report;
extern const struct weir_command weir_cmd_compare;
extern const struct weir_command weir_cmd_doctor;

/* All commands, followed by NULL. Programs must call weir_commands_complete once before they use the option tables. */
extern const struct weir_command *const weir_commands[];
void weir_commands_complete(void);

/* Completes the notes of weir convert with the formats, one line each. */
void weir_convert_list_formats(void);

/* Strings that describe the program in help and man pages. */
struct weir_program {
    const char *summary; /* printed after the program's name */
    const char *help;    /* summary of the command "help" */
    const char *hint;    /* advice on further help, one line */
};
extern const struct weir_program weir_program;

/* WEIR_EXIT_STATUSES as a table that ends with a row without a meaning. */
struct weir_exit_status {
    int status;
    const char *meaning;
};
extern const struct weir_exit_status weir_exit_statuses[];

/* Implements weir --generate man|bash|zsh DIR, which writes man pages or a completion script to a folder. argv[0] is
 * "--generate". Returns the exit status. */
int weir_generate(int argc, char **argv);

/* Replaces this process by a program in PATH, or with this path. Resets the signals that main ignores. Returns only on
 * failure, with errno set. */
void weir_cli_exec(char *const *argv);

/* Prints "weir COMMAND: TEXT" to stderr and returns 1. */
int weir_cli_fail(const struct weir_command *command, const struct weir_err *err);

#endif
