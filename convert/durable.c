#include "convert/durable.h"

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

int weir_durable_rename(const char *from, const char *to, struct weir_err *err)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) != 0 &&
        (errno != EINVAL || access(to, F_OK) == 0 || rename(from, to) != 0))
        return weir_err_set(err, -errno, "%s: cannot get its name: %s", to, strerror(errno));
    const char *slash = strrchr(to, '/');
    char *folder = slash ? strndup(to, slash == to ? 1 : (size_t)(slash - to)) : strdup(".");
    int rc = folder ? weir_durable_sync(folder, err) : weir_err_set(err, -ENOMEM, "%s: out of memory", to);
    free(folder);
    return rc;
}
