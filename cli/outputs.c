#include "cli/outputs.h"
#include "base/file_bytes.h"
#include "base/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a file that is there; else of its folder, with its name. */
struct identity {
    bool known;
    dev_t device;
    ino_t inode;
    const char *name; /* NULL: the file is there */
};

/* Devices and pipes may be written to by many. */
static struct identity identity_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0)
        return (struct identity){S_ISREG(st.st_mode), st.st_dev, st.st_ino, NULL};
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    struct identity identity = {.name = slash ? slash + 1 : path};
    if (folder && stat(folder, &st) == 0) {
        identity.known = true;
        identity.device = st.st_dev;
        identity.inode = st.st_ino;
    }
    free(folder);
    return identity;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
    bool both_new = a->name && b->name;
    return a->known && b->known && a->device == b->device && a->inode == b->inode &&
           (both_new ? strcmp(a->name, b->name) == 0 : !a->name && !b->name);
}

int weir_outputs_check(const struct weir_output *outputs, int n, struct weir_err *err)
{
    struct stat st;
    struct identity standard = {0};
    if (fstat(STDOUT_FILENO, &st) == 0)
        standard = (struct identity){S_ISREG(st.st_mode), st.st_dev, st.st_ino, NULL};
    for (int i = 0; i < n; i++) {
        if (!outputs[i].path)
            continue;
        struct identity mine = identity_of(outputs[i].path);
        if (is_same(&mine, &standard))
            return weir_err_set(err, -EINVAL, "%s: %s and standard output are one file; give %s another",
                                outputs[i].path, outputs[i].option, outputs[i].option);
        for (int k = 0; k < i; k++) {
            struct identity other = outputs[k].path ? identity_of(outputs[k].path) : (struct identity){0};
            if (is_same(&mine, &other))
                return weir_err_set(err, -EINVAL, "%s: %s and %s name one file; give each its own", outputs[i].path,
                                    outputs[k].option, outputs[i].option);
        }
    }
    return 0;
}

int weir_outputs_spare(const struct weir_output *outputs, int n, const struct weir_path_list *files,
                       struct weir_err *err)
{
    struct stat output, file;
    for (int i = 0; i < n; i++) {
        const char *path = outputs[i].path;
        for (int f = 0; path && f < files->n && stat(path, &output) == 0; f++)
            if (stat(files->paths[f], &file) == 0 && file.st_dev == output.st_dev && file.st_ino == output.st_ino)
                return weir_err_set(err, -EEXIST, "%s: is a file of the dataset and will not be overwritten", path);
    }
    return 0;
}

static bool same_file(const struct stat *a, uint64_t device, uint64_t inode)
{
    return S_ISREG(a->st_mode) && a->st_dev == device && a->st_ino == inode;
}

static int check_output(const char *path, int fd, const struct weir_dataset *dataset, struct weir_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
    char of[WEIR_READ_PATH_MAX];
    for (int i = 0; i < weir_dataset_read_files(dataset); i++) {
        struct weir_dataset_file file;
        weir_dataset_read_file(dataset, i, &file, of);
        if (same_file(&st, file.device, file.inode))
            return weir_err_set(err, -EINVAL, "%s: is a file of the dataset and will not be overwritten", path);
    }
    return 0;
}

int weir_output_folder(const char *folder, const char *what, struct weir_err *err)
{
    char path[PATH_MAX];
    int rc = weir_folders_make(folder);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: %s cannot be made: %s; name another", folder, what, strerror(-rc));
    snprintf(path, sizeof path, "%s/.weir-%ld", folder, (long)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: %s cannot be written: %s; name another", folder, what, strerror(errno));
    close(fd);
    unlink(path);
    return 0;
}

int weir_output_open(FILE **file, const char *path, const struct weir_dataset *dataset, struct weir_err *err)
{
    *file = NULL;
    if (!path)
        return 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
    int rc = check_output(path, fd, dataset, err);
    struct stat st;
    if (rc == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(fd, 0) != 0)
        rc = weir_err_set(err, -errno, "%s: cannot be written: %s", path, strerror(errno));
    *file = rc == 0 ? fdopen(fd, "w") : NULL;
    if (!*file)
        close(fd);
    return rc == 0 && !*file ? weir_err_set(err, -ENOMEM, "out of memory") : rc;
}

int weir_output_close(const char *path, FILE *file, struct weir_err *err)
{
    if (file && weir_file_close(file) < 0)
        return weir_err_set(err, -EIO, "%s: could not be written completely; is the disk full?", path);
    return 0;
}
