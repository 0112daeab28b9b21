#include "cli/commands.h"
#include "cli/whatif/whatif_options.h"

const struct weir_command *const weir_commands[WEIR_COMMANDS] = {
    &weir_cmd_run,    &weir_cmd_train,   &weir_cmd_scenario, &weir_cmd_motion, &weir_cmd_info,
    &weir_cmd_verify, &weir_cmd_convert, &weir_cmd_bench,    &weir_cmd_whatif, &weir_cmd_tune,
    &weir_cmd_synth,  &weir_cmd_report,  &weir_cmd_doctor,
};

void weir_commands_complete(void)
{
    weir_choices_list();
    weir_whatif_options_list();
    weir_tune_options_list();
    weir_train_options_list();
    weir_options_know(weir_commands, WEIR_COMMANDS);
}
