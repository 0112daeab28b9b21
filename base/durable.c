#include "base/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int weir_durable_sync(const char *path, struct weir_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be opened: %s", path, strerror(errno));
    int rc = fsync(fd) == 0 || errno == EINVAL ? 0 : -errno; /* EINVAL: a file system that keeps nothing */
    close(fd);
    return rc < 0 ? weir_err_set(err, rc, "%s: cannot be written: %s", path, strerror(-rc)) : 0;
}

static int sync_folder_of(const char *path, struct weir_err *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int rc = folder ? weir_durable_sync(folder, err) : weir_err_set(err, -ENOMEM, "%s: out of memory", path);
    free(folder);
    return rc;
}

static int no_name(const char *to, struct weir_err *err)
{
    return weir_err_set(err, -errno, "%s: cannot get its name: %s", to, strerror(errno));
}

int weir_durable_rename(const char *from, const char *to, struct weir_err *err)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) != 0 &&
        (errno != EINVAL || access(to, F_OK) == 0 || rename(from, to) != 0))
        return no_name(to, err);
    return sync_folder_of(to, err);
}

int weir_durable_replace(const char *from, const char *to, struct weir_err *err)
{
    return rename(from, to) != 0 ? no_name(to, err) : sync_folder_of(to, err);
}
