#include "base/gz_read.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

struct weir_gz_reader {
    gzFile file;
};

int weir_gz_read_open(struct weir_gz_reader **out, const char *path)
{
    struct weir_gz_reader *reader = calloc(1, sizeof *reader);
    *out = NULL;
    if (!reader)
        return -ENOMEM;
    errno = 0;
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
    if (got < 0 || code == Z_BUF_ERROR) /* the latter: the file ends inside a member */
        return code == Z_ERRNO && errno ? -errno : -EBADMSG;
    return got;
}

void weir_gz_read_close(struct weir_gz_reader **reader)
{
    if (!*reader)
        return;
    gzclose(((*reader))->file);
    free(*reader);
    *reader = NULL;
}
