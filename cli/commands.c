#include "cli/commands.h"

const struct weir_program weir_program = {
    .summary = "loads robot episodes for training and times every stage of it",
    .help = "explain a command: weir help run",
    .hint = "weir COMMAND --help lists the command's options; weir --version prints the version and the compiler.",
    .exit_status = "0 fine, 1 the run failed, 2 usage, 130 interrupted.",
};

/* The rows of a group stand together: weir --help prints the group's heading before its first row. */
const struct weir_command *const weir_commands[] = {
    &weir_cmd_run,   &weir_cmd_report, &weir_cmd_doctor,

    &weir_cmd_tune,  &weir_cmd_whatif, &weir_cmd_bench,

    &weir_cmd_info,  &weir_cmd_verify, &weir_cmd_convert,  &weir_cmd_synth,

    &weir_cmd_train, &weir_cmd_motion, &weir_cmd_scenario, NULL,
};

void weir_commands_complete(void)
{
    weir_choices_list();
    for (const struct weir_command *const *command = weir_commands; *command; command++)
        if ((*command)->complete)
            (*command)->complete();
    weir_options_register(weir_commands);
}
