#include "cli/commands.h"
#include "cli/run/run_options.h"
#include "cli/run/run_session.h"

static int run_main(const struct weir_command *command, int argc, char **argv)
{
    struct run_options o;
    const char *data;
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &data, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    const struct weir_run_session session = {command, &o, &o, data, NULL};
    return weir_run_session(&session);
}

const struct weir_command weir_cmd_run = {
    .name = "run",
    .summary = "load a dataset like a training run, timing every stage",
    .group = WEIR_GROUP_MEASURE,
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_READ},
    .sets = (const struct weir_opt_set[])WEIR_RUN_SETS(0, WEIR_FOR_RUN),
    .takes_config = true,
    .examples = weir_run_examples,
    .notes = "DATA is a folder of episodes, or a single file. Ctrl-C ends the run and prints the table so far "
             "(exit status 130). A second Ctrl-C kills the process.",
    .run = run_main,
};
