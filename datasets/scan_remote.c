#include "datasets/scan_remote.h"
#include "base/shortage.h"
#include "datasets/format_ops.h"
#include "datasets/index.h"
#include "origin/origin.h"
#include "origin/remote.h"
#include "origin/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int weir_remote_origin(const struct weir_dataset_config *config, struct weir_origin **origin, struct weir_err *err)
{
    const char *path = config->n_files > 0 ? config->files[0] : config->path;
    const struct weir_remote_config remote = {
        .endpoint = config->endpoint, .anonymous = config->anonymous, .cache = config->cache};
    *origin = NULL;
    if (!weir_url_is(path) && config->cache)
        return weir_err_set(err, -EINVAL, "%s: --cache is for URLs; the files are on this machine, so omit it", path);
    if (!weir_url_is(path))
        return 0;
    int rc = weir_remote_open(origin, path, &remote, err);
    if (rc == 0)
        weir_remote_watch(*origin, config->interrupted, config->user);
    return rc;
}

void weir_remote_opened(struct weir_origin *origin)
{
    if (origin)
        weir_remote_watch(origin, NULL, NULL);
}

void weir_dataset_watch(const struct weir_dataset *dataset, bool (*interrupted)(void *user), void *user)
{
    if (dataset->origin)
        weir_remote_watch(dataset->origin, interrupted, user);
}

struct found {
    struct weir_path_list *files, *left_out;
};

static bool is_episode(const char *name)
{
    return weir_format_of(name) != NULL;
}

static int take(void *user, const char *url, const char *why_not)
{
    const struct found *found = user;
    char *text = NULL;
    if (!why_not)
        return weir_path_list_add(found->files, strdup(url));
    if (asprintf(&text, "%s: %s", url, why_not) < 0)
        return -ENOMEM;
    return weir_path_list_add(found->left_out, text);
}

int weir_scan_remote(struct weir_origin *origin, const char *url, struct weir_path_list *files,
                     struct weir_path_list *left_out, struct weir_err *err)
{
    struct found found = {files, left_out};
    const char *slash = strrchr(url, '/');
    struct weir_err why = WEIR_ERR_NONE;
    *files = *left_out = (struct weir_path_list){0};
    int rc = slash && is_episode(slash + 1) ? weir_path_list_add(files, strdup(url))
                                            : weir_remote_list(origin, url, is_episode, take, &found, &why);
    weir_path_list_sort(files);
    weir_path_list_sort(left_out);
    if (rc == 0 && files->n == 0 && left_out->n == 0)
        rc = weir_err_set(&why, -ENOENT,
                          "no episode files (HDF5, TFRecord, packed) in this list; choose the folder that "
                          "contains the episodes");
    if (rc == 0 && files->n == 0)
        rc = weir_err_set(&why, -ENOENT, "none of the episode files can be used: %s", left_out->paths[0]);
    if (rc == 0)
        return 0;
    weir_path_list_free(files);
    weir_path_list_free(left_out);
    if (strncmp(why.text, url, strlen(url)) == 0) /* names the list that failed */
        return weir_err_set(err, rc, "%s", why.text);
    return weir_err_set(err, rc, "%s: %s", url, why.code ? why.text : strerror(-rc));
}

int weir_scan_config(const struct weir_dataset_config *config, struct weir_path_list *files,
                     struct weir_path_list *left_out, struct weir_err *err)
{
    struct weir_origin *origin;
    *files = *left_out = (struct weir_path_list){0};
    int rc = weir_remote_origin(config, &origin, err);
    if (rc < 0)
        return rc;
    rc = origin ? weir_scan_remote(origin, config->path, files, left_out, err)
                : weir_scan(config->path, files, left_out, err);
    weir_origin_close(&origin);
    return rc;
}
