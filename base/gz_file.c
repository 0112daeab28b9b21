#include "base/gz_file.h"
#include "base/claims.h"
#include "base/files.h"
#include "base/shortage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { OUT_BYTES = 1 << 17, GZIP_WINDOW = 15 + 16 /* adding 16 to the window size makes zlib write a gzip header */ };

struct weir_gz_file {
    char *path;
    char *target; /* the path after following links */
    char *aside;  /* the temporary file; NULL = the path itself is written */
    int fd, rc;
    bool deflating;
    z_stream stream;
    unsigned char out[OUT_BYTES];
};

bool weir_gz_named(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

static int fail(const char *path, int code, struct weir_err *err)
{
    return weir_err_set(err, code, "%s: cannot be written: %s; %s", path, strerror(-code), weir_write_advice(code));
}

static void release(struct weir_gz_file **file)
{
    struct weir_gz_file *f = *file;
    if (f->deflating)
        deflateEnd(&f->stream);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->target);
    free(f->aside);
    free(f);
    *file = NULL;
}

/* mkstemp gives only the owner access, but other users may read traces. */
static int make_aside(struct weir_gz_file *f, mode_t mode)
{
    if (asprintf(&f->aside, "%s.tmp-XXXXXX", f->target) < 0) {
        f->aside = NULL;
        return -ENOMEM;
    }
    f->fd = mkostemp(f->aside, O_CLOEXEC);
    if (f->fd < 0)
        return -errno;
    fchmod(f->fd, mode);
    return 0;
}

/* Checks that the resolved path refers to the same file. The target of /proc/self/fd/1, for example, may have been
 * renamed or replaced. */
static bool has_name(const char *path, const struct stat *file)
{
    struct stat st;
    return lstat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

static int open_fd(struct weir_gz_file *f, const char *path)
{
    struct stat st;
    f->path = strdup(path);
    f->target = weir_output_resolve(path);
    if (!f->path || !f->target)
        return -errno;
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!there)
        return make_aside(f, 0644);
    if (S_ISREG(st.st_mode) && has_name(f->target, &st))
        return make_aside(f, st.st_mode & 0777);
    f->fd = weir_output_fd(path);
    return f->fd < 0 ? f->fd : 0;
}

int weir_gz_open(struct weir_gz_file **out, const char *path, int level, struct weir_err *err)
{
    struct weir_gz_file *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return fail(path, -ENOMEM, err);
    f->fd = -1;
    int rc = open_fd(f, path);
    if (rc == 0 && level > 0) {
        f->deflating =
            deflateInit2(&f->stream, level, Z_DEFLATED, GZIP_WINDOW, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
        rc = f->deflating ? 0 : -ENOMEM;
    }
    if (rc < 0) {
        if (f->fd >= 0 && f->aside)
            unlink(f->aside);
        release(&f);
        return fail(path, rc, err);
    }
    *out = f;
    return 0;
}

static int write_all(int fd, const unsigned char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

static int deflate_all(struct weir_gz_file *f, const void *bytes, size_t n, int flush)
{
    f->stream.next_in = (z_const Bytef *)bytes;
    f->stream.avail_in = (uInt)n;
    do {
        f->stream.next_out = f->out;
        f->stream.avail_out = sizeof f->out;
        deflate(&f->stream, flush);
        int rc = write_all(f->fd, f->out, sizeof f->out - f->stream.avail_out);
        if (rc < 0)
            return rc;
    } while (f->stream.avail_out == 0);
    return 0;
}

int weir_gz_write(struct weir_gz_file *f, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    while (n > 0 && f->rc == 0) {
        size_t part = n < 1u << 30 ? n : 1u << 30; /* zlib's counters have 32 bits */
        f->rc = f->deflating ? deflate_all(f, at, part, Z_NO_FLUSH) : write_all(f->fd, at, part);
        at += part;
        n -= part;
    }
    return f->rc;
}

int weir_gz_sync(struct weir_gz_file *f)
{
    if (f->rc == 0 && f->aside && fsync(f->fd) != 0)
        f->rc = -errno;
    return f->rc;
}

int weir_gz_commit(struct weir_gz_file **file, struct weir_err *err)
{
    struct weir_gz_file *f = *file;
    int rc = f->rc;
    if (rc == 0 && f->deflating)
        rc = deflate_all(f, "", 0, Z_FINISH);
    if (close(f->fd) != 0 && rc == 0)
        rc = -errno;
    f->fd = -1;
    if (rc == 0 && f->aside && rename(f->aside, f->target) != 0)
        rc = -errno;
    if (rc < 0 && f->aside)
        unlink(f->aside);
    if (rc < 0)
        fail(f->path, rc, err);
    release(file);
    return rc;
}

int weir_gz_write_plain(const char *path, const void *bytes, size_t n, struct weir_err *err)
{
    struct weir_gz_file *file;
    int rc = weir_gz_open(&file, path, WEIR_GZ_PLAIN, err);
    if (rc < 0)
        return rc;
    weir_gz_write(file, bytes, n);
    return weir_gz_commit(&file, err);
}

void weir_gz_discard(struct weir_gz_file **file)
{
    struct weir_gz_file *f = *file;
    if (!f)
        return;
    if (f->aside)
        unlink(f->aside);
    release(file);
}

struct weir_gz_reader {
    gzFile file;
    uint64_t stored, read; /* bytes of the file, and those read from it after decompression */
};

int weir_gz_read_open(struct weir_gz_reader **out, const char *path)
{
    struct weir_gz_reader *reader = calloc(1, sizeof *reader);
    *out = NULL;
    if (!reader)
        return -ENOMEM;
    errno = 0;
    struct stat st;
    reader->stored = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : UINT64_MAX;
    reader->file = gzopen(path, "rbe");
    if (!reader->file) {
        free(reader);
        return errno ? -errno : -ENOMEM;
    }
    gzbuffer(reader->file, 1 << 17);
    *out = reader;
    return 0;
}

ssize_t weir_gz_read(struct weir_gz_reader *reader, void *bytes, size_t n)
{
    errno = 0;
    int got = gzread(reader->file, bytes, n < 1 << 30 ? (unsigned)n : 1u << 30);
    int code = Z_OK;
    gzerror(reader->file, &code);
    if (code == Z_MEM_ERROR)
        return -ENOMEM;
    if (got < 0 || code == Z_BUF_ERROR) /* Z_BUF_ERROR: the file ends within a gzip member */
        return code == Z_ERRNO && errno ? -errno : -EBADMSG;
    reader->read += (uint64_t)got;
    return reader->read > WEIR_CLAIM_SPARE && reader->read / WEIR_GZ_RATIO > reader->stored ? -EFBIG : got;
}

uint64_t weir_gz_stored(const struct weir_gz_reader *reader)
{
    return reader->stored;
}

void weir_gz_read_close(struct weir_gz_reader **reader)
{
    if (!*reader)
        return;
    gzclose(((*reader))->file);
    free(*reader);
    *reader = NULL;
}
