/* Reads HDF5 motion files. The arrays are in the root group, or in one group per clip. */
#include "base/shortage.h"
#include "datasets/hdf5/hdf5_helper.h"
#include "extras/motion/clips/clips_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct file {
    struct weir_file_index index; /* identifies the file, so that all reads detect if it is replaced */
    struct weir_hdf5_helper *helper;
    struct weir_hdf5_member *members; /* members of the current group, or of the root group */
    size_t n_members;
    char (*groups)[WEIR_NAME_MAX]; /* groups in the root group, in version order */
    size_t n_groups;
    char group[WEIR_NAME_MAX + 1]; /* current group: "" for the root, or e.g. "/clip_3" */
};

static bool has(void *user, const char *key)
{
    const struct file *file = user;
    for (size_t i = 0; i < file->n_members; i++)
        if (!file->members[i].is_group && strcmp(file->members[i].name, key) == 0)
            return true;
    return false;
}

static int read_array(void *user, const char *key, struct weir_file_array *array, struct weir_err *err)
{
    struct file *file = user;
    char path[256];
    *array = (struct weir_file_array){0};
    if (!has(file, key))
        return weir_err_set(err, -ENOENT, "%s/%s: is not in the file", file->group, key);
    snprintf(path, sizeof path, "%s/%s", file->group, key);
    return weir_hdf5_helper_read_array(file->helper, &file->index.file, path, array, err);
}

static int list(struct file *file, const char *group, struct weir_err *err)
{
    free(file->members);
    return weir_hdf5_helper_list(file->helper, &file->index.file, group, &file->members, &file->n_members, err);
}

static int enter(void *user, size_t i, const char **name, struct weir_err *err)
{
    struct file *file = user;
    *name = NULL;
    if (i >= file->n_groups)
        return 0;
    *name = file->groups[i];
    snprintf(file->group, sizeof file->group, "/%s", file->groups[i]);
    return list(file, file->group, err);
}

static void close_file(void *user)
{
    struct file *file = user;
    weir_hdf5_helper_close(&file->helper);
    weir_file_index_close(&file->index);
    free(file->members);
    free(file->groups);
    free(file);
}

static const struct weir_motion_source_ops ops = {.has = has, .read = read_array, .enter = enter, .close = close_file};

/* Compares embedded numbers by value, so that clip_10 follows clip_9. */
static int by_version(const void *a, const void *b)
{
    return strverscmp(a, b);
}

static int keep_groups(struct file *file, struct weir_err *err)
{
    file->groups = calloc(file->n_members + 1, sizeof *file->groups);
    if (!file->groups)
        return weir_no_memory(err);
    for (size_t i = 0; i < file->n_members; i++)
        if (file->members[i].is_group)
            memcpy(file->groups[file->n_groups++], file->members[i].name, sizeof *file->groups);
    qsort(file->groups, file->n_groups, sizeof *file->groups, by_version);
    return 0;
}

int weir_motion_hdf5_open(struct weir_motion_source *source, const char *path, struct weir_err *err)
{
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        return weir_no_memory(err);
    int rc = weir_file_identify(&file->index, NULL, path, NULL, err);
    if (rc == 0 && !(file->helper = weir_hdf5_helper_open(NULL, NULL, false)))
        rc = weir_no_memory(err);
    if (rc == 0)
        rc = list(file, "/", err);
    if (rc == 0)
        rc = keep_groups(file, err);
    if (rc < 0)
        close_file(file);
    else
        *source = (struct weir_motion_source){&ops, file};
    return rc;
}
