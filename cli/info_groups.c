/* A folder of several datasets: each is opened and printed as if it lay in a folder of its own. */
#include "base/text.h"
#include "cli/info_print.h"
#include "pipeline/probe.h"
#include "pipeline/survey.h"

#include <stdio.h>

static int print_group(const struct weir_survey_group *group, const struct weir_dataset_config *config,
                       struct weir_json *json, struct weir_err *err)
{
    struct weir_dataset_config own = *config;
    struct weir_dataset *dataset;
    own.files = group->files.paths;
    own.n_files = group->files.n;
    own.index = NULL; /* it is of the folder as a whole */
    own.tolerant = true;
    own.progress = NULL;
    int rc = weir_dataset_open(&dataset, &own, err);
    if (rc == 0) /* locates frames, as for a folder of its own: the bytes per frame are the same then */
        rc = weir_probe_sizes_differ(dataset, err);
    rc = rc < 0 ? rc : 0;
    if (rc == 0 && !json)
        printf("\n");
    if (rc == 0)
        rc = weir_info_print(dataset, group->path, true, json, err);
    if (rc == 0 && !json && !group->alone)
        printf("not alone in its folder: %d files, the first %s; `weir run` needs them in a folder of their own\n",
               group->files.n, group->files.paths[0]);
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
    snprintf(shown, sizeof shown, "%s", config->path);
    weir_text_printable(shown);
    printf("%s\ndatasets: %d, in %d files; `weir run` loads one: give it the path of that one\n", shown, survey->n,
           survey->n_files);
    if (misfit)
        printf("not one dataset: %s\n", misfit);
    if (survey->bad.n > 0)
        printf("not opened: %d\n", survey->bad.n);
    for (int i = 0; i < survey->bad.n; i++)
        printf("  %s\n", survey->bad.paths[i]);
    return print_all(survey, config, NULL, err);
}

static int as_json(const struct weir_survey *survey, const struct weir_dataset_config *config, const char *misfit,
                   struct weir_err *err)
{
    struct weir_json json;
    weir_json_open(&json, stdout, true);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "path", config->path);
    weir_json_int(&json, "files", survey->n_files);
    weir_json_text(&json, "misfit", misfit);
    weir_json_array(&json, "not_opened");
    for (int i = 0; i < survey->bad.n; i++)
        weir_json_text(&json, NULL, survey->bad.paths[i]);
    weir_json_end(&json, ']');
    weir_json_array(&json, "datasets");
    int rc = print_all(survey, config, &json, err);
    weir_json_end(&json, ']');
    weir_json_end(&json, '}');
    weir_json_close(&json);
    return rc;
}

int weir_info_print_groups(const struct weir_dataset_config *config, const char *misfit, bool json,
                           struct weir_err *err)
{
    struct weir_survey survey;
    int rc = weir_survey_open(&survey, config, err);
    if (rc < 0)
        return rc;
    if (survey.n >= 2) {
        rc = json ? as_json(&survey, config, misfit, err) : as_text(&survey, config, misfit, err);
        if (rc == 0 && survey.bad.n > 0 && !config->tolerant)
            rc = weir_err_set(err, -1, "%s: %d files or folders cannot be opened, the first: %s", config->path,
                              survey.bad.n, survey.bad.paths[0]);
        rc = rc < 0 ? rc : 1;
    }
    weir_survey_close(&survey);
    return rc;
}
