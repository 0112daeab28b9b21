#include "base/files.h"
#include "cli/commands.h"
#include "cli/run/run_session.h"
#include "extras/train/cli/train_cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Becomes ACT's training script of the Python package. Modules in the current folder do not replace installed ones. */
static char starter[] =
    "import os, sys\n"
    "sys.path = [folder for folder in sys.path if folder]\n"
    "module, options = 'weir.examples.imitate_episodes', ['-P'] if sys.version_info >= (3, 11) else []\n"
    "try:\n"
    "    from importlib.util import find_spec\n"
    "    found = find_spec(module)\n"
    "except ImportError:\n"
    "    found = None\n"
    "if not found:\n"
    "    sys.exit('weir train: --policy-class ACT runs in PyTorch, but {0} has no package weir-loader; '\n"
    "             'run {0} -m pip install weir-loader torch numpy, or put the Python that has them first in PATH'\n"
    "             .format(sys.executable))\n"
    "os.execv(sys.executable, [sys.executable] + options + ['-m', module] + sys.argv[1:])\n";

enum { PYTHON_PATH = PATH_MAX + 128 };

/* Finds the Python of the package that pip installed together with this program: PREFIX/bin/pythonX.Y for
 * PREFIX/lib/pythonX.Y/site-packages/weir. Returns its name within path, or NULL. */
static char *package_python(char path[PYTHON_PATH])
{
    char package[PATH_MAX], *parts[5];
    if (weir_path_in_package(starter, "__init__.py", package) < 0)
        return NULL;
    for (int i = 0; i < 5; i++) {
        char *slash = strrchr(package, '/');
        if (!slash)
            return NULL;
        *slash = '\0';
        parts[i] = slash + 1;
    }
    if (strncmp(parts[3], "python3", strlen("python3")) != 0)
        return NULL;
    snprintf(path, PYTHON_PATH, "%s/bin/%.60s", package, parts[3]);
    return strrchr(path, '/') + 1;
}

/* Replaces this process by the Python script that trains ACT, with the same arguments. Returns only on failure. */
static int start_act(const struct weir_command *command, int argc, char **argv)
{
    char path[PYTHON_PATH];
    char *name = package_python(path);
    char *const pythons[] = {name ? path : NULL, name, "python3", "python"};
    char **words = calloc((size_t)argc + 3, sizeof *words);
    struct weir_err err = WEIR_ERR_NONE;
    errno = words ? ENOENT : ENOMEM;
    for (size_t i = 0; words && i < sizeof pythons / sizeof *pythons; i++) {
        if (!pythons[i])
            continue;
        words[0] = pythons[i];
        words[1] = "-c";
        words[2] = starter;
        memcpy(words + 3, argv + 1, (size_t)argc * sizeof *words); /* with the NULL at their end */
        weir_cli_exec(words);
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
            break;
    }
    weir_err_set(&err, -errno,
                 "--policy-class ACT runs in PyTorch, but Python cannot be started: %s; install Python 3.11 or later, "
                 "and run python3 -m pip install weir-loader torch numpy",
                 strerror(errno));
    free(words);
    return weir_cli_fail(command, &err);
}

static int run_train(const struct weir_command *command, int argc, char **argv)
{
    struct train_options options;
    const char *policy = weir_options_value(argc, argv, "policy-class"), *data = NULL;
    char path[TRAIN_PATH];
    int n;
    if (policy && strcmp(policy, "ACT") == 0)
        return start_act(command, argc, argv);
    enum weir_parse parse = weir_options_parse(command, &options, sizeof options, argc, argv, &data, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
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
    .refused = weir_train_refused,
    .takes_config = true,
    .sets = weir_train_sets,
    .examples = weir_train_examples,
    .notes = "The data is DATA, --dataset-dir, or $WEIR_DATASETS/TASK_NAME. --policy-class ACT starts python3 -m "
             "weir.examples.imitate_episodes with the same arguments, which has options of its own: weir train "
             "--policy-class ACT --help. Ctrl-C prints the table so far, saves a checkpoint and exits with status 130. "
             "A second Ctrl-C kills the program.",
    .run = run_train,
};
