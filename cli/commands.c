#include "cli/commands.h"
#include "base/extras.h"
#include "pipeline/loader_options.h"

const struct weir_program weir_program = {
    .summary = "a fast, self-profiling data loader for robot learning",
    .help = "print the help of a command, such as weir help run",
    .hint = "weir COMMAND --help lists options, --help-all all of them; weir -V (--version) prints the version and the "
            "compiler.",
};

#define EXIT_STATUS(name, status, meaning) {status, meaning},
const struct weir_exit_status weir_exit_statuses[] = {WEIR_EXIT_STATUSES(EXIT_STATUS){0, NULL}};

#define DECLARE(name) extern const struct weir_command weir_cmd_##name;
#define ROW(name)     &weir_cmd_##name,
WEIR_EXTRA_COMMANDS(DECLARE)

/* Commands of one group must be adjacent, because weir --help and the man page print the group's heading before the
 * first of them. */
const struct weir_command *const weir_commands[] = {
    &weir_cmd_run,
    &weir_cmd_report,
    &weir_cmd_compare,
    &weir_cmd_top,
    &weir_cmd_doctor,

    &weir_cmd_tune,
    &weir_cmd_whatif,
    &weir_cmd_bench,

    &weir_cmd_info,
    &weir_cmd_verify,
    &weir_cmd_convert,
    &weir_cmd_synth,

    WEIR_EXTRA_COMMANDS(ROW) NULL,
};

void weir_commands_complete(void)
{
    weir_loader_options_complete();
    weir_convert_list_formats();
    weir_options_register(weir_commands);
}
