#include "datasets/synth/synth_layouts_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int weir_spool_open(struct weir_spool *spool, const struct weir_synth_job *job, struct weir_err *err)
{
    char path[4096];
    size_t steps = (size_t)job->config->steps;
    *spool = (struct weir_spool){.fd = -1, .length = calloc(steps, sizeof *spool->length)};
    if (!spool->length)
        return weir_err_set(err, -ENOMEM, "out of memory for %zu steps", steps);
    snprintf(path, sizeof path, "%s/.frames-XXXXXX", job->config->out);
    spool->fd = mkstemp(path);
    if (spool->fd < 0)
        return weir_err_set(err, -errno, "%s: cannot be created: %s", path, strerror(errno));
    unlink(path);
    return 0;
}

void weir_spool_close(struct weir_spool *spool)
{
    if (spool->fd >= 0)
        close(spool->fd);
    free(spool->length);
}

static int put(int fd, const uint8_t *data, size_t bytes, off_t at)
{
    while (bytes > 0) {
        ssize_t n = pwrite(fd, data, bytes, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        data += n;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int get(int fd, uint8_t *data, size_t bytes, off_t at)
{
    while (bytes > 0) {
        ssize_t n = pread(fd, data, bytes, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        data += n;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

int weir_spool_fill(struct weir_spool *spool, struct weir_synth_job *job, struct weir_err *err)
{
    off_t at = 0;
    spool->longest = 0;
    if (ftruncate(spool->fd, 0) < 0)
        return weir_err_set(err, -errno, "%s: %s", job->config->out, strerror(errno));
    for (int t = 0; t < job->config->steps; t++) {
        const struct weir_frame *frame;
        int rc = weir_synth_next_frame(job, &frame, err);
        if (rc < 0)
            return rc;
        size_t bytes = frame->image.size;
        rc = put(spool->fd, frame->image.data, bytes, at);
        if (rc < 0)
            return weir_err_set(err, rc, "%s: frames cannot be written: %s", job->config->out, strerror(-rc));
        spool->length[t] = bytes;
        spool->longest = bytes > spool->longest ? bytes : spool->longest;
        at += (off_t)bytes;
        weir_synth_report(job);
    }
    return 0;
}

int weir_spool_write(const struct weir_spool *spool, struct weir_synth_job *job, int set, struct weir_err *err)
{
    if (set < 0)
        return set;
    uint8_t *row = malloc(spool->longest);
    int rc = row ? 0 : weir_err_set(err, -ENOMEM, "out of memory for a row of %zu bytes", spool->longest);
    off_t at = 0;
    for (int t = 0; t < job->config->steps && rc == 0; t++) {
        size_t bytes = spool->length[t];
        rc = get(spool->fd, row, bytes, at);
        if (rc < 0)
            weir_err_set(err, rc, "%s: frames cannot be read back: %s", job->config->out, strerror(-rc));
        memset(row + bytes, 0, spool->longest - bytes);
        if (rc == 0)
            rc = weir_h5w_frame(job->file, set, (uint64_t)t, row, spool->longest, err);
        at += (off_t)bytes;
    }
    free(row);
    return rc;
}
