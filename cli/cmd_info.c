#include "base/shortage.h"
#include "cli/commands.h"
#include "cli/info_print.h"
#include "cli/progress.h"
#include "pipeline/probe.h"

#include <errno.h>
#include <stddef.h>

struct info_options {
    bool json;
    struct weir_loader_config loader;
    int on_error; /* 1: skip */
};

#define FIELD(field) .offset = offsetof(struct info_options, field)

static const struct weir_opt info_opts[] = {
    {"on-error", WEIR_OPT_ENUM, FIELD(on_error), "fail|skip", "fail", "treatment of bad episodes",
     .details = "skip leaves them out and lists them, and ignores bad frames."},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output"},
};

static int print_one(struct weir_dataset *dataset, const struct info_options *o, const char *path, struct weir_err *err)
{
    if (!o->json)
        return weir_info_print(dataset, path, o->on_error != 0, NULL, err);
    struct weir_json json;
    weir_json_open(&json, stdout, true);
    int rc = weir_info_print(dataset, path, o->on_error != 0, &json, err);
    if (rc == 0)
        weir_json_close(&json);
    return rc;
}

static int info_main(const struct weir_command *command, int argc, char **argv)
{
    struct info_options o;
    const char *path;
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &path, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset *dataset;
    struct weir_index_progress progress;
    weir_index_progress_begin(&progress);
    struct weir_dataset_config config = {.size = sizeof config,
                                         .path = path,
                                         .tolerant = o.on_error != 0,
                                         .progress = weir_index_progress,
                                         .user = &progress};
    weir_loader_options_dataset(&o.loader, &config);
    int rc = weir_dataset_open(&dataset, &config, &err);
    struct weir_err why = WEIR_ERR_NONE;
    int several = rc == 0 ? weir_probe_sizes_differ(dataset, &why) : rc != -EINVAL && !weir_is_shortage(rc);
    int printed =
        several > 0 ? weir_info_print_groups(&config, rc == -ENOKEY ? err.text : NULL, o.json, &why) : several;
    if (printed == 0 && rc == 0)
        rc = print_one(dataset, &o, path, &err);
    weir_dataset_close(&dataset);
    if (printed == 0)
        return rc < 0 ? weir_cli_fail(command, &err) : 0;
    return printed < 0 ? weir_cli_fail(command, &why) : 0;
}

const struct weir_command weir_cmd_info = {
    .name = "info",
    .summary = "say what is in a dataset and how it is stored",
    .group = WEIR_GROUP_DATA,
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_READ},
    .opts = info_opts,
    .n_opts = sizeof info_opts / sizeof info_opts[0],
    .sets = (const struct weir_opt_set[])WEIR_DATASET_SETS(offsetof(struct info_options, loader)),
    .takes_config = true,
    .notes =
        "DATA is a folder of episodes or one file of them; of a folder of several datasets each is printed. Mean and "
        "std are over all episodes.",
    .run = info_main,
};
