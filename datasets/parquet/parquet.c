/* An open Parquet file: its end, its columns. */
#include "base/claims.h"
#include "base/files.h"
#include "base/shortage.h"
#include "datasets/chunks/filters.h"
#include "datasets/parquet/parquet_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOOTER_END = 8, TAIL = 32 << 10, FOOTER_MAX = 256 << 20 };

/* ---- the file ---- */

static int read_at(const struct weir_parquet *p, uint64_t at, uint8_t *to, size_t n, struct weir_err *err)
{
    int rc = weir_source_read(p->source, at, to, n);
    return rc < 0 ? weir_err_set(err, rc, "cannot be read: %s",
                                 rc == -ENODATA ? "it became shorter meanwhile" : weir_source_reason(p->source, rc))
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
    if (*size > p->file_bytes - FOOTER_END || *size > FOOTER_MAX || !weir_claim_fits(*size, p->stored_bytes))
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
    int rc = bytes ? read_at(p, p->file_bytes - tail, bytes, tail, err) : weir_no_memory(err);
    if (rc == 0 && tail == p->file_bytes && weir_is_lfs_pointer(bytes, tail))
        rc = weir_err_set(err, -ENODATA, WEIR_LFS_ERROR);
    if (rc == 0)
        rc = check_end(p, bytes + tail - FOOTER_END, &size, err);
    if (rc == 0 && size + FOOTER_END > tail) {
        free(bytes);
        tail = size + FOOTER_END;
        bytes = malloc(tail);
        rc = bytes ? read_at(p, p->file_bytes - tail, bytes, tail, err) : weir_no_memory(err);
    }
    if (rc == 0)
        rc = weir_parquet_parse_footer(p, bytes + tail - FOOTER_END - size, size, err);
    free(bytes);
    return rc;
}

int weir_parquet_open(struct weir_parquet **out, struct weir_origin *origin, const char *path, struct weir_err *err)
{
    struct weir_parquet *p = calloc(1, sizeof *p);
    struct weir_err why = WEIR_ERR_NONE;
    *out = NULL;
    if (!p)
        return weir_no_memory(err);
    int rc = weir_source_find(&p->source, origin, path, &p->id, &why);
    if (rc < 0)
        weir_err_set(err, rc, "cannot open: %s", why.text);
    p->file_bytes = p->id.size_bytes;
    if (rc >= 0) {
        p->stored_bytes = weir_source_stored(p->source, p->file_bytes);
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
    weir_source_close(&p->source);
    for (int i = 0; i < p->n_leaves; i++) {
        if (i == 0 || p->leaves[i].name != p->leaves[i - 1].name)
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

struct weir_file_id weir_parquet_id(const struct weir_parquet *parquet)
{
    return parquet->id;
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

/* ---- reading ahead ---- */

enum { RANGES_MAX = 256, GAP_MIN = 64 << 10 };

static int by_offset(const void *a, const void *b)
{
    const struct weir_origin_range *left = a, *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

/* Joins sorted ranges whose gaps have at most `gap` bytes. Returns their number. */
static size_t join_ranges(struct weir_origin_range *ranges, size_t n, uint64_t gap)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct weir_origin_range *last = kept ? &ranges[kept - 1] : NULL;
        uint64_t end = ranges[i].offset + ranges[i].length, last_end = last ? last->offset + last->length : 0;
        if (last && ranges[i].offset <= last_end + gap)
            last->length = (size_t)((end > last_end ? end : last_end) - last->offset);
        else
            ranges[kept++] = ranges[i];
    }
    return kept;
}

void weir_parquet_announce(struct weir_parquet *p, const bool *wanted, int64_t first, int64_t n)
{
    size_t most = (size_t)p->n_groups * (size_t)p->n_leaves, count = 0;
    struct weir_origin_range *ranges = weir_source_is_remote(p->source) && most ? malloc(most * sizeof *ranges) : NULL;
    if (!ranges)
        return;
    for (int g = 0; g < p->n_groups; g++) {
        const struct weir_parquet_group *group = &p->groups[g];
        for (int i = 0; i < p->n_leaves && group->first < first + n && group->first + group->rows > first; i++)
            if (wanted[i])
                ranges[count++] =
                    (struct weir_origin_range){group->chunks[i].offset, (size_t)group->chunks[i].bytes, NULL};
    }
    qsort(ranges, count, sizeof *ranges, by_offset);
    for (uint64_t gap = GAP_MIN; count > RANGES_MAX || gap == GAP_MIN; gap *= 2)
        count = join_ranges(ranges, count, gap);
    weir_source_announce(p->source, ranges, (int)count);
    free(ranges);
}
