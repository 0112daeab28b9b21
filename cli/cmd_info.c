#include "base/shortage.h"
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

static int describe_group(const struct weir_survey_group *group, const struct weir_dataset_config *config,
                          struct weir_document *document, struct weir_err *err)
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
    if (rc == 0)
        rc = weir_info_describe(document, dataset, group->path, true, true, err);
    if (rc == 0 && !group->alone)
        fprintf(weir_document_text(document, NULL, 2),
                "shares its folder with other datasets: %d files, the first is %s; move them to a separate folder to "
                "load them with weir run\n",
                group->files.n, group->files.paths[0]);
    weir_dataset_close(&dataset);
    return rc;
}

static int describe_survey(const struct weir_survey *survey, const struct weir_dataset_config *config,
                           const char *misfit, bool json, struct weir_err *err)
{
    struct weir_document document;
    weir_document_open(&document, json ? &weir_json_writer : &weir_terminal_writer, stdout);
    weir_document_path(&document, "path", "", config->path);
    fprintf(weir_document_text(&document, NULL, WEIR_WRAP_COLUMN),
            "datasets: %d, in %d files; weir run loads one dataset, so specify its path\n", survey->n, survey->n_files);
    weir_document_fact(&document, "files", survey->n_files);
    weir_document_line(&document, "misfit", "not a single dataset: ", misfit);
    weir_document_strings(&document, "not_opened", survey->bad.paths, survey->bad.n);
    FILE *text = weir_document_text(&document, NULL, WEIR_WRAP_COLUMN);
    if (survey->bad.n > 0)
        fprintf(text, "not opened: %d\n", survey->bad.n);
    for (int i = 0; i < survey->bad.n; i++)
        fprintf(text, "  %s\n", survey->bad.paths[i]);
    weir_document_begin(&document, "datasets", '[');
    int rc = 0;
    for (int i = 0; i < survey->n && rc == 0; i++)
        rc = describe_group(&survey->groups[i], config, &document, err);
    weir_document_end(&document, ']');
    weir_document_close(&document);
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
        rc = describe_survey(&survey, config, misfit, json, err);
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
    struct weir_document document;
    weir_document_open(&document, o->json ? &weir_json_writer : &weir_terminal_writer, stdout);
    int rc = weir_info_describe(&document, dataset, path, o->on_error != 0, false, err);
    if (rc == 0)
        weir_document_close(&document);
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
