/* Reads motions from files and folders. */
#include "base/text.h"
#include "extras/motion/clips/clips_priv.h"
#include "weir/dataset.h"

#include "base/shortage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct reading {
    struct weir_motion_clips **clips;
    const struct weir_motion_read_options *options;
    struct weir_err *err;
};

static bool is_hdf5_name(const char *name)
{
    return weir_text_ends_any_case(name, ".hdf5") || weir_text_ends_any_case(name, ".h5");
}

/* ---- one file ---- */

/* Copies the file name without folders and extension. */
static void stem_of(const char *path, char stem[WEIR_MOTION_NAME])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    snprintf(stem, WEIR_MOTION_NAME, "%.*s", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
}

/* Reads each group of the file as a clip. */
static int read_groups(const struct reading *r, const struct weir_motion_source *source, const char *stem)
{
    char name[2 * WEIR_MOTION_NAME];
    const char *group;
    for (size_t i = 0;; i++) {
        int rc = source->ops->enter(source->file, i, &group, r->err);
        if (rc < 0 || !group) /* without groups, reads the root, so that the error lists the expected arrays */
            return rc < 0 || i > 0 ? rc : weir_motion_part_read(r->clips, source, stem, r->options, r->err);
        snprintf(name, sizeof name, "%s/%s", stem, group);
        rc = weir_motion_part_read(r->clips, source, name, r->options, r->err);
        if (rc < 0) {
            weir_err_prefix(r->err, "/%s", group);
            return rc;
        }
    }
}

static int read_source(const struct reading *r, struct weir_motion_source *source, const char *path)
{
    char stem[WEIR_MOTION_NAME];
    stem_of(path, stem);
    int rc = source->ops->enter && !weir_motion_part_is_there(source)
                 ? read_groups(r, source, stem)
                 : weir_motion_part_read(r->clips, source, stem, r->options, r->err);
    source->ops->close(source->file);
    return rc;
}

static int read_head(const char *path, uint8_t *head, size_t size, struct weir_err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = weir_err_set(err, -EINVAL, "is not a regular file; specify a motion file or a folder of motion files");
    else if (rc < 0 || pread(fd, head, size, 0) < 0)
        rc = weir_err_set(err, rc < 0 ? rc : -errno, "%s; %s", strerror(errno), weir_open_advice(-errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Selects the format from the first bytes. HDF5 is also selected by name, because its signature can be later in the
 * file. NPZ is also selected by name, for its more precise errors. */
static int open_source(struct weir_motion_source *source, const char *path, struct weir_err *err)
{
    uint8_t head[8] = {0};
    int rc = read_head(path, head, sizeof head, err);
    if (rc < 0)
        return rc;
    if (memcmp(head, "PK\3\4", 4) == 0)
        return weir_motion_npz_open(source, path, err);
    if (is_hdf5_name(path) || memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0)
        return weir_motion_hdf5_open(source, path, err);
    if (memcmp(head, "\x93NUMPY", 6) == 0)
        return weir_err_set(err, -EBADMSG,
                            "is a single numpy array; save all arrays of a motion in one file with np.savez");
    if (weir_text_ends_any_case(path, ".pkl") || weir_text_ends_any_case(path, ".pickle"))
        return weir_err_set(
            err, -ENOTSUP,
            "is a pickle, which is refused because reading a pickle can run code; save its dictionary with "
            "np.savez(\"motion.npz\", **joblib.load(...))");
    if (!weir_text_ends_any_case(path, ".npz"))
        return weir_err_set(err, -EBADMSG, "is not a motion file; use NPZ (np.savez) or HDF5");
    return weir_motion_npz_open(source, path, err);
}

static int read_file(const struct reading *r, const char *path)
{
    struct weir_motion_source source;
    int rc = open_source(&source, path, r->err);
    if (rc == 0)
        rc = read_source(r, &source, path);
    if (rc < 0)
        weir_err_prefix(r->err, "%s", path);
    return rc;
}

/* ---- folders ---- */

/* Compares embedded numbers by value, so that walk_10 follows walk_9. */
static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

static int list_folder(const char *path, struct weir_path_list *files, struct weir_err *err)
{
    DIR *folder = opendir(path);
    if (!folder)
        return weir_err_set(err, -errno, "%s: %s; %s", path, strerror(errno), weir_open_advice(-errno));
    int rc = 0;
    const struct dirent *entry;
    for (errno = 0; rc == 0 && (entry = readdir(folder)); errno = 0) {
        char *file = NULL;
        if (!is_hdf5_name(entry->d_name) && !weir_text_ends_any_case(entry->d_name, ".npz"))
            continue;
        rc = weir_path_list_add(files, asprintf(&file, "%s/%s", path, entry->d_name) < 0 ? NULL : file);
    }
    rc = rc < 0 ? rc : -errno;
    closedir(folder);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: the folder cannot be searched: %s", path, strerror(-rc));
    if (files->n == 0)
        return weir_err_set(err, -ENOENT, "%s: no motion files (*.npz, *.hdf5, *.h5) in this folder", path);
    qsort(files->paths, (size_t)files->n, sizeof *files->paths, by_version);
    return 0;
}

static int read_folder(const struct reading *r, const char *path)
{
    struct weir_path_list files = {0};
    int rc = list_folder(path, &files, r->err);
    for (int i = 0; i < files.n && rc == 0; i++)
        rc = read_file(r, files.paths[i]);
    weir_path_list_free(&files);
    return rc;
}

/* ---- paths ---- */

static int read_path(const struct reading *r, const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return weir_err_set(r->err, -errno, "%s: %s; %s", path, strerror(errno), weir_open_advice(-errno));
    if (S_ISDIR(st.st_mode))
        return read_folder(r, path);
    return read_file(r, path);
}

int weir_motion_read_paths(struct weir_motion_clips **clips, const char *const *paths, size_t n,
                           const struct weir_motion_read_options *options, struct weir_err *err)
{
    static const struct weir_motion_read_options usual;
    struct weir_err own = WEIR_ERR_NONE;
    const struct reading r = {clips, options ? options : &usual, err ? err : &own};
    int rc = n > 0 ? 0 : weir_err_set(err, -EINVAL, "no motion files were specified");
    *clips = NULL;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = read_path(&r, paths[i]);
    if (rc < 0)
        weir_motion_clips_free(clips);
    return rc;
}

int weir_motion_read(struct weir_motion_clips **clips, const char *path, const struct weir_motion_read_options *options,
                     struct weir_err *err)
{
    return weir_motion_read_paths(clips, &path, 1, options, err);
}
