#include "base/fields.h"
#include "base/shortage.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/info_print.h"
#include "cli/progress.h"
#include "pipeline/samples/probe.h"
#include "pipeline/survey.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

struct info_options {
    bool json;
    struct weir_loader_config loader;
    int on_error; /* index into "fail|skip" */
};

#define FIELD(field) .offset = offsetof(struct info_options, field)

static const struct weir_opt info_opts[] = {
    {"on-error", WEIR_OPT_ENUM, FIELD(on_error), "fail|skip", "fail", "treatment of bad episodes",
     .details = "With skip, bad episodes are left out and listed, and bad frames are ignored."},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object"},
};

/* ---- a folder of several datasets ---- */

static int print_group(const struct weir_survey_group *group, const struct weir_dataset_config *config,
                       struct weir_json *json, struct weir_err *err)
{
    struct weir_dataset_config own = *config;
    struct weir_dataset *dataset;
    own.files = group->files.paths;
    own.n_files = group->files.n;
    own.index = NULL; /* the index covers the whole folder */
    own.tolerant = true;
    own.progress = NULL;
    int rc = weir_dataset_open(&dataset, &own, err);
    /* Locates the frames, so that bytes per frame are the same as if the folder contained only this dataset. */
    if (rc == 0)
        rc = weir_probe_sizes_differ(dataset, err);
    rc = rc < 0 ? rc : 0;
    if (rc == 0 && !json)
        printf("\n");
    if (rc == 0)
        rc = weir_info_print(dataset, group->path, true, json, err);
    if (rc == 0 && !json && !group->alone) {
        struct weir_wrap wrap;
        FILE *out = weir_wrap_open(&wrap, stdout, 2, NULL);
        fprintf(out,
                "shares its folder with other datasets: %d files, the first is %s; move them to a separate folder to "
                "load them with weir run\n",
                group->files.n, group->files.paths[0]);
        weir_wrap_close(&wrap);
    }
    weir_dataset_close(&dataset);
    return rc;
}

static int print_all(const struct weir_survey *survey, const struct weir_dataset_config *config, struct weir_json *json,
                     struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < survey->n && rc == 0; i++)
        rc = print_group(&survey->groups[i], config, json, err);
    return rc;
}

static int as_text(const struct weir_survey *survey, const struct weir_dataset_config *config, const char *misfit,
                   struct weir_err *err)
{
    char shown[4096];
    struct weir_wrap wrap;
    snprintf(shown, sizeof shown, "%s", config->path);
    weir_text_printable(shown);
    printf("%s\n", shown);
    FILE *out = weir_wrap_open(&wrap, stdout, WEIR_WRAP_COLUMN, NULL);
    fprintf(out, "datasets: %d, in %d files; weir run loads one dataset, so specify its path\n", survey->n,
            survey->n_files);
    if (misfit)
        fprintf(out, "not a single dataset: %s\n", misfit);
    if (survey->bad.n > 0)
        fprintf(out, "not opened: %d\n", survey->bad.n);
    for (int i = 0; i < survey->bad.n; i++)
        fprintf(out, "  %s\n", survey->bad.paths[i]);
    weir_wrap_close(&wrap);
    return print_all(survey, config, NULL, err);
}

static int as_json(const struct weir_survey *survey, const struct weir_dataset_config *config, const char *misfit,
                   struct weir_err *err)
{
    struct weir_json json;
    weir_cli_json_open(&json, stdout);
    weir_json_text(&json, "path", config->path);
    weir_json_int(&json, "files", survey->n_files);
    weir_json_text(&json, "misfit", misfit);
    weir_strings_json(&json, "not_opened", survey->bad.paths, survey->bad.n);
    weir_json_array(&json, "datasets");
    int rc = print_all(survey, config, &json, err);
    weir_json_end(&json, ']');
    weir_cli_json_close(&json);
    return rc;
}

/* Prints the datasets below config->path, where each dataset is a group of files that can be loaded together, and the
 * files that cannot be opened. misfit is the reason why the files are not a single dataset, or NULL. Returns 1 after
 * printing, 0 without output if there are fewer than two datasets, or a negative code with err after printing the
 * readable datasets. */
static int print_groups(const struct weir_dataset_config *config, const char *misfit, bool json, struct weir_err *err)
{
    struct weir_survey survey;
    int rc = weir_survey_open(&survey, config, err);
    if (rc < 0)
        return rc;
    if (survey.n >= 2) {
        rc = json ? as_json(&survey, config, misfit, err) : as_text(&survey, config, misfit, err);
        if (rc == 0 && survey.bad.n > 0 && !config->tolerant)
            rc = weir_err_set(err, -1, "%s: %d files or folders cannot be opened; the first is %s", config->path,
                              survey.bad.n, survey.bad.paths[0]);
        rc = rc < 0 ? rc : 1;
    }
    weir_survey_close(&survey);
    return rc;
}

/* ---- the command ---- */

static int print_one(struct weir_dataset *dataset, const struct info_options *o, const char *path, struct weir_err *err)
{
    if (!o->json)
        return weir_info_print(dataset, path, o->on_error != 0, NULL, err);
    struct weir_json json;
    weir_json_open(&json, stdout, true);
    return weir_info_print(dataset, path, o->on_error != 0, &json, err);
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
    struct weir_progress progress;
    weir_progress_begin(&progress);
    struct weir_dataset_config config = {.size = sizeof config,
                                         .path = path,
                                         .tolerant = o.on_error != 0,
                                         .list_unused = true,
                                         .progress = weir_index_progress,
                                         .user = &progress};
    weir_loader_options_dataset(&o.loader, &config);
    int rc = weir_dataset_open(&dataset, &config, &err);
    struct weir_err why = WEIR_ERR_NONE;
    int several = rc == 0 ? weir_probe_sizes_differ(dataset, &why) : rc != -EINVAL && !weir_is_shortage(rc);
    int printed = several > 0 ? print_groups(&config, rc == -ENOKEY ? err.text : NULL, o.json, &why) : several;
    if (printed == 0 && rc == 0)
        rc = print_one(dataset, &o, path, &err);
    weir_dataset_close(&dataset);
    if (printed == 0)
        return rc < 0 ? weir_cli_fail(command, &err) : 0;
    return printed < 0 ? weir_cli_fail(command, &why) : 0;
}

const struct weir_command weir_cmd_info = {
    .name = "info",
    .summary = "describe a dataset and its storage",
    .group = WEIR_GROUP_DATASETS,
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_READ},
    .opts = info_opts,
    .n_opts = sizeof info_opts / sizeof info_opts[0],
    .sets = (const struct weir_opt_set[])WEIR_DATASET_SETS(offsetof(struct info_options, loader)),
    .takes_config = true,
    .notes = "DATA is a folder of episodes, or a single file. If the folder contains several datasets, each "
             "is described. Mean and std are computed over all episodes.",
    .run = info_main,
};
