/* An open Parquet file: its end, its columns. */
#include "base/files.h"
#include "base/shortage.h"
#include "datasets/chunks/filters.h"
#include "datasets/parquet/parquet_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOOTER_END = 8, TAIL = 32 << 10, FOOTER_MAX = 256 << 20 };

/* ---- the file ---- */

static int read_at(int fd, uint64_t at, uint8_t *to, size_t n, struct weir_err *err)
{
    int rc = weir_read_at(fd, at, to, n);
    return rc < 0 ? weir_err_set(err, rc, "cannot be read: %s",
                                 rc == -ENODATA ? "it became shorter meanwhile" : strerror(-rc))
                  : 0;
}

/* Checks the last bytes of the file and returns the footer's size in *size. */
static int check_end(const struct weir_parquet *p, const uint8_t *end, size_t *size, struct weir_err *err)
{
    if (memcmp(end + 4, "PARE", 4) == 0)
        return weir_err_set(err, -ENOTSUP, "the Parquet file is encrypted, which is not supported");
    if (memcmp(end + 4, "PAR1", 4) != 0)
        return weir_err_set(err, -EBADMSG,
                            "does not end as a Parquet file does, so it is truncated or damaged; copy it again");
    *size = (size_t)weir_le(end, 4);
    if (*size > p->file_bytes - FOOTER_END || *size > FOOTER_MAX)
        return weir_err_set(err, -EBADMSG, "the Parquet footer is larger than the file; copy the file again");
    return 0;
}

/* One read gets the footer of a small file. */
static int read_footer(struct weir_parquet *p, struct weir_err *err)
{
    size_t tail = p->file_bytes < TAIL ? (size_t)p->file_bytes : TAIL, size = 0;
    if (tail < FOOTER_END + 4)
        return weir_err_set(err, -ENODATA, "is too short for a Parquet file; copy it again");
    uint8_t *bytes = malloc(tail);
    int rc = bytes ? read_at(p->fd, p->file_bytes - tail, bytes, tail, err) : weir_no_memory(err);
    if (rc == 0 && tail == p->file_bytes && weir_is_lfs_pointer(bytes, tail))
        rc = weir_err_set(err, -ENODATA, "is a Git LFS pointer; fetch the file with `git lfs pull`");
    if (rc == 0)
        rc = check_end(p, bytes + tail - FOOTER_END, &size, err);
    if (rc == 0 && size + FOOTER_END > tail) {
        free(bytes);
        tail = size + FOOTER_END;
        bytes = malloc(tail);
        rc = bytes ? read_at(p->fd, p->file_bytes - tail, bytes, tail, err) : weir_no_memory(err);
    }
    if (rc == 0)
        rc = weir_parquet_parse_footer(p, bytes + tail - FOOTER_END - size, size, err);
    free(bytes);
    return rc;
}

int weir_parquet_open(struct weir_parquet **out, const char *path, struct weir_err *err)
{
    struct weir_parquet *p = calloc(1, sizeof *p);
    struct stat st;
    *out = NULL;
    if (!p)
        return weir_no_memory(err);
    p->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = p->fd < 0 || fstat(p->fd, &st) < 0 ? -errno : 0;
    if (rc < 0)
        weir_err_set(err, rc, "cannot open: %s; %s", strerror(-rc), weir_open_advice(rc));
    else if (!S_ISREG(st.st_mode))
        rc = weir_err_set(err, -EINVAL, "is not a regular file");
    if (rc == 0) {
        p->file_bytes = (uint64_t)st.st_size;
        rc = read_footer(p, err);
    }
    if (rc < 0)
        weir_parquet_close(&p);
    *out = p;
    return rc < 0 ? rc : 0;
}

void weir_parquet_close(struct weir_parquet **parquet)
{
    struct weir_parquet *p = *parquet;
    *parquet = NULL;
    if (!p)
        return;
    if (p->fd >= 0)
        close(p->fd);
    for (int i = 0; i < p->n_leaves; i++) {
        free(p->leaves[i].name);
        free(p->leaves[i].leaf);
    }
    for (int i = 0; i < p->n_groups; i++)
        free(p->groups[i].chunks);
#if WEIR_HAVE_ZSTD
    if (p->zstd)
        weir_zstd_close(&p->zstd);
#endif
    free(p->leaves);
    free(p->groups);
    free(p);
}

int64_t weir_parquet_rows(const struct weir_parquet *parquet)
{
    return parquet->rows;
}

int weir_parquet_columns(const struct weir_parquet *parquet)
{
    return parquet->n_leaves;
}

void weir_parquet_column(const struct weir_parquet *parquet, int column, struct weir_parquet_column *out)
{
    const struct weir_parquet_leaf *leaf = &parquet->leaves[column];
    *out = leaf->about;
    out->name = leaf->name;
    out->leaf = leaf->leaf;
}

int weir_parquet_find(const struct weir_parquet *parquet, const char *name, const char *leaf)
{
    for (int i = 0; i < parquet->n_leaves; i++)
        if (strcmp(parquet->leaves[i].name, name) == 0 && (!leaf || strcmp(parquet->leaves[i].leaf, leaf) == 0))
            return i;
    return -ENOENT;
}
