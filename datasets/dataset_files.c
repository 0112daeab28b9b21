/* The files that a dataset consists of, with the parts of its folders. */
#include "base/files.h"
#include "base/grow.h"
#include "datasets/format_ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int weir_dataset_read_files(const struct weir_dataset *dataset)
{
    return dataset->n_files + dataset->n_parts;
}

/* Returns the file (a folder of arrays) that a part belongs to. */
static const struct weir_file_index *whole_of(const struct weir_dataset *dataset, int part)
{
    int behind = WEIR_FIRST(i, dataset->n_files, dataset->files[i].first_part > part);
    return &dataset->files[behind - 1]; /* if several files start at the same part, only the last of them has parts */
}

void weir_dataset_read_file(const struct weir_dataset *dataset, int file, struct weir_dataset_file *out,
                            char path[WEIR_READ_PATH_MAX])
{
    const struct weir_file_index *whole =
        file < dataset->n_files ? &dataset->files[file] : whole_of(dataset, file - dataset->n_files);
    const struct weir_parts *parts = whole->parts;
    if (!parts) {
        *out = whole->file;
        return;
    }
    int part = file - dataset->n_files - whole->first_part;
    bool there = part >= 0 && parts->parts[part].inode != 0;
    const struct weir_part *looked = there ? &parts->parts[part] : &parts->looked;
    if (there)
        weir_part_path(parts, (uint32_t)part, path, WEIR_READ_PATH_MAX);
    *out = (struct weir_dataset_file){
        there ? path : parts->stand_in, looked->size_bytes, looked->device, looked->inode, looked->mtime_ns, false};
}

/* Returns true for paths that a scan of the dataset's folder would accept as episodes, including files that were left
 * out. */
static bool has_episode_name(const struct weir_dataset *dataset, const char *path)
{
    struct stat root;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool named = weir_format_of(path) != NULL;
    for (int i = 0; i < dataset->n_files && !named; i++) {
        const struct weir_format_ops *format = weir_format_of(dataset->files[i].file.path);
        named = format && format->beside && strcmp(format->beside, name) == 0;
    }
    return named && dataset->root && stat(dataset->root, &root) == 0 &&
           weir_output_is_inside(path, root.st_dev, root.st_ino);
}

static bool is_part(const struct weir_dataset *dataset, const char *path)
{
    struct stat st, folder;
    char at[WEIR_READ_PATH_MAX];
    bool there = stat(path, &st) == 0, part = has_episode_name(dataset, path);
    for (int i = 0; i < weir_dataset_read_files(dataset) && there && !part; i++) {
        struct weir_dataset_file file;
        weir_dataset_read_file(dataset, i, &file, at);
        part = S_ISREG(st.st_mode) && st.st_dev == file.device && st.st_ino == file.inode;
    }
    for (int i = 0; i < dataset->n_files && !part; i++)
        part = dataset->files[i].parts && stat(dataset->files[i].file.path, &folder) == 0 &&
               weir_output_is_inside(path, folder.st_dev, folder.st_ino);
    return part;
}

int weir_dataset_spare(const struct weir_dataset *dataset, const char *path, struct weir_err *err)
{
    char *real = weir_output_resolve(path);
    int rc = 0;
    if (!real)
        rc = weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
    else if (is_part(dataset, real))
        rc = weir_err_set(err, -EEXIST, "%s: is a part of the dataset, so it is not overwritten; choose another path",
                          path);
    free(real);
    return rc;
}
