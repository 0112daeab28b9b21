/* Finding the episodes below a folder. */
#include "datasets/index_priv.h"

#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 16, FILES_MAX = 10 * 1000 * 1000 };

struct files {
    char **paths;
    int n, capacity;
};

static bool is_episode(const char *name)
{
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot && (strcasecmp(dot, ".hdf5") == 0 || strcasecmp(dot, ".h5") == 0);
}

static int add(struct files *files, const char *path)
{
    if (files->n == FILES_MAX)
        return -EFBIG;
    if (files->n == files->capacity) {
        int capacity = files->capacity ? files->capacity * 2 : 256;
        char **paths = realloc(files->paths, sizeof *paths * (size_t)capacity);
        if (!paths)
            return -ENOMEM;
        files->paths = paths;
        files->capacity = capacity;
    }
    files->paths[files->n] = strdup(path);
    return files->paths[files->n] ? (files->n++, 0) : -ENOMEM;
}

/* Digits by value, so that episode_10 follows episode_9. */
static int by_version(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    int order = strverscmp(left, right);
    return order ? order : strcmp(left, right);
}

static int walk(const char *path, struct files *files, struct weir_err *err)
{
    char *roots[] = {(char *)path, NULL};
    FTS *fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    if (!fts)
        return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
    int rc = 0;
    for (FTSENT *entry; rc == 0 && (entry = fts_read(fts));) {
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
            rc = weir_err_set(err, -entry->fts_errno, "%s: folder cannot be read: %s", entry->fts_path,
                              strerror(entry->fts_errno));
        else if (entry->fts_info == FTS_D && entry->fts_level > DEPTH_MAX)
            rc = weir_err_set(err, -ELOOP, "%s: more than %d folders deep; give a folder closer to the episodes",
                              entry->fts_path, DEPTH_MAX);
        else if ((entry->fts_info == FTS_F || entry->fts_info == FTS_SLNONE || entry->fts_info == FTS_NS) &&
                 is_episode(entry->fts_name))
            rc = add(files, entry->fts_path);
    }
    fts_close(fts);
    return rc < 0 ? weir_err_set(err, rc, "%s: folder cannot be searched: %s", path, strerror(-rc)) : 0;
}

void weir_scan_free(char **files, int n)
{
    for (int i = 0; i < n; i++)
        free(files[i]);
    free(files);
}

int weir_scan(const char *path, char ***out, int *n, struct weir_err *err)
{
    struct files files = {0};
    struct stat st;
    *out = NULL;
    *n = 0;
    if (!*path)
        return weir_err_set(err, -ENOENT, "the path is empty; give the folder that holds the episodes");
    if (stat(path, &st) != 0)
        return weir_err_set(err, -errno, "%s: %s; give the folder that holds the episodes", path, strerror(errno));
    int rc = S_ISDIR(st.st_mode) ? walk(path, &files, err) : add(&files, path);
    if (rc == 0 && files.n == 0)
        rc = weir_err_set(err, -ENOENT,
                          "%s: no .hdf5 or .h5 files in this folder; give the folder that holds the episodes", path);
    if (rc < 0) {
        weir_scan_free(files.paths, files.n);
        return weir_err_set(err, rc, "%s: %s", path, strerror(-rc));
    }
    qsort(files.paths, (size_t)files.n, sizeof *files.paths, by_version);
    *out = files.paths;
    *n = files.n;
    return 0;
}
