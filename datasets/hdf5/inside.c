#include "datasets/hdf5/h5_guard_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Splits off the last component of a path. The folder is "." for a bare name and "/" for a file in the root. */
static void folder_of(const char *path, char folder[WEIR_INSIDE_PATH_MAX], const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    snprintf(folder, WEIR_INSIDE_PATH_MAX, "%.*s",
             !slash          ? 1
             : slash == path ? 1
                             : (int)(slash - path),
             slash ? path : ".");
}

void weir_inside_set(struct weir_inside *inside, const char *root, const char *episode, bool all)
{
    char folder[WEIR_INSIDE_PATH_MAX], real[PATH_MAX];
    const char *name;
    inside->all = all;
    inside->refusal[0] = '\0';
    if (strcmp(inside->episode, episode) == 0 && root && strcmp(inside->root, root) == 0)
        return;
    folder_of(episode, folder, &name);
    snprintf(inside->episode, sizeof inside->episode, "%s", episode);
    snprintf(inside->folder, sizeof inside->folder, "%s", realpath(folder, real) ? real : "");
    snprintf(inside->root, sizeof inside->root, "%s", root ? root : inside->folder);
}

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    if (n == 1 && folder[0] == '/')
        return true;
    return n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Returns the real path of an open file. Without /proc, resolves `path` again. */
static bool real_path(int fd, const char *path, char real[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, real, PATH_MAX - 1);
    if (n <= 0 || real[0] != '/')
        return realpath(path, real) != NULL;
    real[n] = '\0';
    return true;
}

int weir_inside_refuse(struct weir_inside *inside, const char *path, const char *why)
{
    if (!inside->refusal[0])
        snprintf(inside->refusal, sizeof inside->refusal, "%.*s %s", WEIR_INSIDE_PATH_MAX, path, why);
    return -EPERM;
}

/* file and folder are O_PATH descriptors, which cannot be read. */
static int check(struct weir_inside *inside, const char *path, int folder, const char *name, int file)
{
    char real[PATH_MAX], above[PATH_MAX], why[512];
    struct stat st;
    if (fstat(file, &st) != 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return weir_inside_refuse(inside, path,
                                  S_ISFIFO(st.st_mode) ? "is a FIFO, not a regular file"
                                                       : "is a device or socket, not a regular file");
    if (inside->all || strcmp(path, inside->episode) == 0)
        return 0;
    char *parent = strdup(path);
    if (!parent)
        return -ENOMEM;
    parent[name - path] = '\0';
    bool known = real_path(file, path, real), in_folder = real_path(folder, *parent ? parent : ".", above);
    free(parent);
    size_t length = in_folder ? strlen(above) : 0;
    if (in_folder && length + 1 < sizeof above) { /* a folder counts as inside itself */
        above[length] = '/';
        above[length + 1] = '\0';
    }
    if ((in_folder && (is_below(above, inside->root) || is_below(above, inside->folder))) ||
        (known && (is_below(real, inside->root) || is_below(real, inside->folder))))
        return 0;
    snprintf(why, sizeof why,
             "lies outside the dataset's folder, but an object of the HDF5 file refers to it; move it into the folder, "
             "or use --allow-external");
    return weir_inside_refuse(inside, path, why);
}

/* Opens the checked file itself for reading. */
static int reopen(int file, int folder, const char *name)
{
    char link[64];
    struct stat looked_at, opened;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    int fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(file, &looked_at) == 0 && fstat(fd, &opened) == 0 && looked_at.st_dev == opened.st_dev &&
        looked_at.st_ino == opened.st_ino)
        return fd;
    close(fd);
    return -ESTALE;
}

int weir_inside_open(struct weir_inside *inside, const char *path)
{
    char text[WEIR_INSIDE_PATH_MAX];
    const char *name;
    if (strlen(path) >= sizeof text)
        return -ENAMETOOLONG;
    folder_of(path, text, &name);
    int folder = open(text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    int file = openat(
        folder, *name ? name : ".",
        O_PATH | O_CLOEXEC); /* O_PATH does not open the file, because opening a device might have side effects */
    int rc = file < 0 ? -errno : check(inside, path, folder, name, file);
    if (rc == 0)
        rc = reopen(file, folder, name);
    if (file >= 0)
        close(file);
    close(folder);
    return rc;
}
