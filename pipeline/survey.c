#include "pipeline/survey.h"
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/open_dataset.h"
#include "datasets/scan_remote.h"
#include "pipeline/samples/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_MAX = WEIR_CAMERAS_MAX * (WEIR_NAME_MAX + 32) + 128 };

/* ---- a file's kind ---- */

static int describe(struct weir_dataset *dataset, char kind[KIND_MAX], struct weir_err *err)
{
    struct weir_camera_probe probes[WEIR_CAMERAS_MAX];
    struct weir_err why = WEIR_ERR_NONE;
    int rc = weir_probe_cameras(dataset, true, -1, probes, &why);
    bool probed = rc == 0;
    if (weir_is_shortage(rc))
        return weir_err_set(err, rc, "%s", why.text);
    int n = snprintf(kind, KIND_MAX, "%s %d %d", weir_dataset_layout(dataset, 0), weir_dataset_qpos_dim(dataset),
                     weir_dataset_action_dim(dataset));
    for (int c = 0; c < weir_dataset_cameras(dataset); c++) {
        const struct weir_camera *camera = weir_dataset_camera(dataset, c);
        n += snprintf(kind + n, KIND_MAX - (size_t)n, ", %s %s %dx%d", camera->name, weir_frame_kind_name(camera->kind),
                      probed ? probes[c].width : 0, probed ? probes[c].height : 0);
    }
    return 0;
}

/* traits: of the file (datasets/open_dataset.h) */
static struct weir_survey_group *group_of(struct weir_survey *survey, const char *kind, const char *traits)
{
    char differences[128];
    for (int i = 0; i < survey->n; i++) {
        struct weir_survey_group *group = &survey->groups[i];
        if (strcmp(group->kind, kind) == 0 &&
            !weir_traits_differ(traits, group->traits, differences, sizeof differences))
            return weir_traits_merge(&group->traits, traits, NULL) == 0 ? group : NULL;
    }
    if (!weir_grow(&survey->groups, (size_t)survey->n, sizeof *survey->groups))
        return NULL;
    struct weir_survey_group *group = &survey->groups[survey->n++];
    *group = (struct weir_survey_group){.kind = strdup(kind), .traits = traits ? strdup(traits) : NULL};
    return group->kind && (!traits || group->traits) ? group : NULL;
}

static int look_at(struct weir_survey *survey, const struct weir_dataset_config *config, char *path,
                   struct weir_err *err)
{
    struct weir_dataset_config one = *config;
    struct weir_err why = WEIR_ERR_NONE;
    struct weir_dataset *dataset;
    char kind[KIND_MAX];
    one.files = &path;
    one.n_files = 1;
    one.index = NULL;
    one.tolerant = true;
    one.progress = NULL;
    int rc = weir_dataset_open(&dataset, &one, &why);
    if (weir_is_shortage(rc))
        return weir_err_set(err, rc, "%s", why.text);
    if (rc < 0)
        return weir_path_list_add(&survey->bad, strdup(why.text)) < 0 ? weir_no_memory(err) : 0;
    rc = describe(dataset, kind, err);
    struct weir_survey_group *group = rc == 0 ? group_of(survey, kind, weir_dataset_traits(dataset)) : NULL;
    weir_dataset_close(&dataset);
    if (rc < 0)
        return rc;
    return group && weir_path_list_add(&group->files, strdup(path)) == 0 ? 0 : weir_no_memory(err);
}

/* ---- folders of groups ---- */

/* Returns the length of the common folder of the group's files, including the final slash. */
static size_t common_folder(const struct weir_path_list *files)
{
    size_t common = (size_t)(strrchr(files->paths[0], '/') ? strrchr(files->paths[0], '/') - files->paths[0] + 1 : 0);
    for (int i = 1; i < files->n; i++)
        while (strncmp(files->paths[i], files->paths[0], common) != 0)
            do
                common--;
            while (common > 0 && files->paths[0][common - 1] != '/');
    return common;
}

static bool is_alone(const struct weir_survey *survey, const struct weir_survey_group *group, size_t common)
{
    const char *folder = group->files.paths[0];
    for (int i = 0; i < survey->n; i++)
        for (int k = 0; k < survey->groups[i].files.n && &survey->groups[i] != group; k++)
            if (strncmp(survey->groups[i].files.paths[k], folder, common) == 0)
                return false;
    return true;
}

static int find_pattern(const struct weir_survey *survey, struct weir_survey_group *group)
{
    const char *first = group->files.paths[0];
    size_t common = common_folder(&group->files);
    group->alone = group->files.n == 1 || is_alone(survey, group, common);
    group->path = group->files.n == 1 ? strdup(first)
                  : common < 2        ? strdup(common ? "/" : ".")
                                      : strndup(first, common - 1);
    return group->path ? 0 : -ENOMEM;
}

/* ---- survey ---- */

int weir_survey_open(struct weir_survey *survey, const struct weir_dataset_config *config, struct weir_err *err)
{
    *survey = (struct weir_survey){0};
    struct weir_path_list files;
    int rc = weir_scan_config(config, &files, &survey->bad, err);
    if (rc == 0 && (rc = weir_choose_split(&files, config->path, config->split, err)) < 0)
        weir_path_list_free(&files);
    if (rc < 0)
        return rc;
    survey->n_files = files.n;
    for (int i = 0; i < files.n && rc == 0; i++) {
        rc = look_at(survey, config, files.paths[i], err);
        if (config->progress)
            config->progress(config->user, i + 1, files.n);
    }
    weir_path_list_free(&files);
    for (int i = 0; i < survey->n && rc == 0; i++)
        rc = find_pattern(survey, &survey->groups[i]) < 0 ? weir_no_memory(err) : 0;
    if (rc < 0)
        weir_survey_close(survey);
    return rc;
}

void weir_survey_close(struct weir_survey *survey)
{
    for (int i = 0; i < survey->n; i++) {
        free(survey->groups[i].kind);
        free(survey->groups[i].traits);
        free(survey->groups[i].path);
        weir_path_list_free(&survey->groups[i].files);
    }
    free(survey->groups);
    weir_path_list_free(&survey->bad);
    *survey = (struct weir_survey){0};
}
