#include "cli/commands.h"
#include "cli/run/run_session.h"
#include "extras/train/cli/train_cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Prints a space and the word, quoted for the shell if necessary. */
static void print_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        fprintf(stderr, " %s", word);
        return;
    }
    fputs(" '", stderr);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (const char[]){*word, '\0'}, stderr);
    fputc('\'', stderr);
}

/* Prints the command that trains ACT in PyTorch with the same options. */
static int print_act(const struct weir_command *command, int argc, char **argv)
{
    fprintf(stderr, "weir %s: --policy-class ACT is trained in PyTorch; use this command instead:\n", command->name);
    fputs("python3 examples/imitate_episodes.py", stderr);
    for (int i = 1; i < argc; i++)
        print_word(argv[i]);
    fputc('\n', stderr);
    return WEIR_EXIT_USAGE;
}

static int run_train(const struct weir_command *command, int argc, char **argv)
{
    struct train_options options;
    const char *data = NULL;
    char path[TRAIN_PATH];
    int n;
    enum weir_parse parse = weir_options_parse(command, &options, sizeof options, argc, argv, &data, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    if (strcmp(options.policy_class, "ACT") == 0)
        return print_act(command, argc, argv);
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_train_options_check(&options, &err);
    data = rc == 0 ? weir_train_data(&options, data, path, &err) : NULL;
    if (!data) {
        weir_cli_fail(command, &err);
        return WEIR_EXIT_USAGE;
    }
    struct train train = {.options = &options};
    const struct weir_run_consumer consumer = weir_train_consumer(&train);
    const struct weir_run_session session = {command, &options.run, &options, data, &consumer};
    return weir_run_session(&session);
}

const struct weir_command weir_cmd_train = {
    .name = "train",
    .summary = "train a small CNN policy and show where each step's time goes",
    .group = WEIR_GROUP_EXTRAS,
    .args = "[DATA]",
    .min_args = 0,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_READ},
    .opts = weir_train_opts,
    .n_opts = TRAIN_OPTS,
    .takes_config = true,
    .sets = weir_train_sets,
    .examples = weir_train_examples,
    .notes = "The data is DATA, --dataset-dir, or $WEIR_DATASETS/TASK_NAME. All options of ACT's "
             "imitate_episodes are accepted. Ctrl-C prints the table so far, saves a checkpoint and exits "
             "with status 130. A second Ctrl-C kills the program.",
    .run = run_train,
};
