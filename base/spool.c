#include "base/files.h"
#include "base/grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int weir_spool_open(struct weir_spool *spool, const char *folder, struct weir_err *err)
{
    char path[4096];
    *spool = (struct weir_spool){.fd = -1, .folder = folder};
    int n = snprintf(path, sizeof path, "%s/.frames-XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof path)
        return weir_err_set(err, -ENAMETOOLONG, "%s: the path is too long; choose a shorter one", folder);
    spool->fd = mkstemp(path);
    if (spool->fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be created: %s", path, strerror(errno));
    unlink(path);
    return 0;
}

void weir_spool_close(struct weir_spool *spool)
{
    if (!spool->folder)
        return;
    if (spool->fd >= 0)
        close(spool->fd);
    free(spool->lengths);
    *spool = (struct weir_spool){.fd = -1};
}

int weir_spool_reset(struct weir_spool *spool, struct weir_err *err)
{
    spool->n = 0;
    spool->longest = 0;
    spool->bytes = 0;
    return ftruncate(spool->fd, 0) == 0 ? 0 : weir_err_set(err, -errno, "%s: %s", spool->folder, strerror(errno));
}

int weir_spool_add(struct weir_spool *spool, const void *data, size_t bytes, struct weir_err *err)
{
    if (!weir_grow(&spool->lengths, (size_t)spool->n, sizeof *spool->lengths))
        return weir_err_set(err, -ENOMEM, "%s: out of memory", spool->folder);
    int rc = weir_write_at(spool->fd, spool->bytes, data, bytes);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: frames cannot be written: %s", spool->folder, strerror(-rc));
    spool->lengths[spool->n++] = bytes;
    spool->bytes += bytes;
    spool->longest = bytes > spool->longest ? bytes : spool->longest;
    return 0;
}

int weir_spool_get(const struct weir_spool *spool, uint64_t at, void *data, size_t bytes, struct weir_err *err)
{
    int rc = weir_read_at(spool->fd, at, data, bytes);
    return rc < 0 ? weir_err_set(err, rc, "%s: frames cannot be read back: %s", spool->folder, strerror(-rc)) : 0;
}
