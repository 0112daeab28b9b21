#include "datasets/scan_remote.h"
#include "base/shortage.h"
#include "base/text.h"
#include "datasets/format_ops.h"
#include "datasets/index.h"
#include "origin/origin.h"
#include "origin/remote.h"
#include "origin/source.h"
#include "origin/url.h"

#include <errno.h>
#include <stddef.h>
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

int weir_remote_text(const struct weir_dataset_config *config, char **text, size_t *n, struct weir_err *err)
{
    struct weir_origin *origin;
    *text = NULL;
    int rc = weir_remote_origin(config, &origin, err);
    if (rc < 0)
        return rc;
    rc = weir_source_text(origin, config->path, 64 << 20, text, n, err);
    weir_origin_close(&origin);
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

/* ---- the search ---- */

struct found {
    struct weir_origin *origin;
    struct weir_path_list *files, *left_out;
};

/* Finds the first component of a name that is a file or a folder of episodes by its own name, or that contains the file
 * that stands for such a folder. */
static int episode_part(const char *name, bool is_folder)
{
    for (const char *at = name; *at;) {
        size_t n = strcspn(at, "/");
        char one[WEIR_URL_NAME_MAX + 1];
        bool is_last = at[n] == '\0';
        snprintf(one, sizeof one, "%.*s", (int)(n < WEIR_URL_NAME_MAX ? n : WEIR_URL_NAME_MAX), at);
        const struct weir_format_ops *format = weir_format_of(one);
        bool names_folder = format && format->mark && format->mark(one);
        if (format && names_folder == (!is_last || is_folder))
            return (int)(at - name + (ptrdiff_t)n);
        if (!is_folder && weir_format_of_mark(at))
            return (int)(at - name) - (at > name);
        at += n + !is_last;
    }
    return -1;
}

static bool is_dataset(void *user, const char *url)
{
    return weir_format_of_url(((struct found *)user)->origin, url) != NULL;
}

static int take(void *user, const char *url, const char *why_not)
{
    const struct found *found = user;
    const struct weir_path_list *files = found->files;
    char *text = NULL;
    if (!why_not && files->n > 0 && strcmp(files->paths[files->n - 1], url) == 0)
        return 0;
    if (!why_not)
        return weir_path_list_add(found->files, strdup(url));
    if (asprintf(&text, "%s: %s", url, why_not) < 0)
        return -ENOMEM;
    return weir_path_list_add(found->left_out, text);
}

/* Sorts the contents of a folder directly after it: a slash comes first. */
static int by_folder(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    while (*left && *left == *right)
        left++, right++;
    int l = *left == '/' ? 1 : (unsigned char)*left, r = *right == '/' ? 1 : (unsigned char)*right;
    return l - r;
}

/* Drops paths that were found before, and those in a folder that was found. */
static void drop_inner(struct weir_path_list *files)
{
    int kept = 0;
    if (files->n > 1)
        qsort(files->paths, (size_t)files->n, sizeof *files->paths, by_folder);
    for (int i = 0; i < files->n; i++) {
        size_t n = kept ? strlen(files->paths[kept - 1]) : 0;
        const char *path = files->paths[i];
        if (kept && strncmp(path, files->paths[kept - 1], n) == 0 && (path[n] == '\0' || path[n] == '/'))
            free(files->paths[i]);
        else
            files->paths[kept++] = files->paths[i];
    }
    files->n = kept;
}

static bool is_list(const char *name)
{
    return weir_text_ends(name, ".json") || weir_text_ends(name, ".txt");
}

static int search(struct found *found, const char *url, struct weir_err *err)
{
    const char *name = strrchr(url, '/') + 1;
    if (weir_format_of(name) || (!is_list(name) && weir_format_of_url(found->origin, url)))
        return weir_path_list_add(found->files, strdup(url));
    int rc = weir_remote_list(
        found->origin, url,
        &(struct weir_remote_search){
            .part = episode_part, .hint = "meta", .is_whole = is_dataset, .found = take, .user = found},
        err);
    drop_inner(found->files);
    weir_path_list_sort(found->files);
    weir_path_list_sort(found->left_out);
    return rc;
}

int weir_scan_remote(struct weir_origin *origin, const char *given, struct weir_path_list *files,
                     struct weir_path_list *left_out, struct weir_err *err)
{
    struct found found = {origin, files, left_out};
    struct weir_err why = WEIR_ERR_NONE;
    size_t n = strlen(given);
    while (n > 8 && given[n - 1] == '/' && given[n - 2] != '/')
        n--;
    char *url = strndup(given, n);
    *files = *left_out = (struct weir_path_list){0};
    int rc = url ? search(&found, url, &why) : weir_no_memory(&why);
    if (rc == 0 && files->n == 0 && left_out->n == 0)
        rc = weir_err_set(&why, -ENOENT,
                          "no episode files (HDF5, TFRecord, Zarr, packed, LeRobot) in this list; choose the folder "
                          "that contains the episodes");
    if (rc == 0 && files->n == 0)
        rc = weir_err_set(&why, -ENOENT, "none of the episode files can be used: %s", left_out->paths[0]);
    if (rc < 0) {
        weir_path_list_free(files);
        weir_path_list_free(left_out);
        if (url && strncmp(why.text, url, strlen(url)) == 0) /* names the list that failed */
            weir_err_set(err, rc, "%s", why.text);
        else
            weir_err_set(err, rc, "%s: %s", given, why.code ? why.text : strerror(-rc));
    }
    free(url);
    return rc;
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
