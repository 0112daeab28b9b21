#include "datasets/parquet/parquet.h"
#include "base/files.h"
#include "base/shortage.h"
#include "datasets/chunks/filters.h"
#include "datasets/parquet/parquet_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOOTER_END = 8, TAIL = 32 << 10, FOOTER_MAX = 256 << 20 };
static const uint64_t VALUES_MAX_BYTES = (uint64_t)1 << 30;

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

/* ---- rows ---- */

/* The rows that are read, and where their values go. */
struct gather {
    const struct weir_parquet_leaf *leaf;
    int64_t first, end; /* rows that are wanted */
    int64_t row;        /* row of the last entry; -1 before the first */
    struct weir_err *err;
    /* Called for an entry of a wanted row: with the value, or with NULL for a null. Returns 0 or negative. */
    int (*add)(struct gather *gather, const struct weir_page_values *from, uint32_t value, bool is_null);
    /* Called when a wanted row begins. */
    int (*begin_row)(struct gather *gather);
    int64_t row_values; /* of the current row */
    int width;          /* of the rows before it; -1 = none */
    uint64_t n, capacity, bytes, bytes_capacity;
    uint8_t *values;
    struct weir_parquet_bytes out;
    struct weir_parquet_extent *extents; /* one per row; NULL = not wanted */
};

static int grow(struct gather *g, void *array, uint64_t *capacity, uint64_t n, size_t size)
{
    void *old, *more;
    if (n <= *capacity)
        return 0;
    uint64_t wanted = 2 * *capacity > n ? 2 * *capacity : n;
    if (n * size > VALUES_MAX_BYTES)
        return weir_err_set(g->err, -ENOTSUP,
                            "column %s: its rows %" PRId64 " to %" PRId64 " have more than 1 GiB of "
                            "values",
                            g->leaf->name, g->first, g->end - 1);
    memcpy(&old, array, sizeof old);
    more = realloc(old, wanted * size);
    if (!more)
        return weir_no_memory(g->err);
    memcpy(array, &more, sizeof more);
    *capacity = wanted;
    return 0;
}

/* Counts the entry's row, and adds its value if the row is wanted. value: index among the page's values. */
static int take_entry(struct gather *g, const struct weir_page *page, const struct weir_page_values *dictionary,
                      uint32_t entry, uint32_t value)
{
    int definition = page->definitions ? page->definitions[entry] : g->leaf->max_definition;
    bool begins = !page->repetitions || page->repetitions[entry] == 0;
    g->row += begins;
    if (g->row < 0)
        return weir_err_set(g->err, -EBADMSG, "column %s: its first list has no beginning; copy the file again",
                            g->leaf->name);
    if (g->row < g->first || g->row >= g->end)
        return 0;
    int rc = begins ? g->begin_row(g) : 0;
    if (rc < 0 || (g->leaf->max_repetition > 0 && definition < g->leaf->list_definition))
        return rc; /* an empty list */
    if (definition < g->leaf->max_definition)
        return g->add(g, NULL, 0, true);
    return page->indices ? g->add(g, dictionary, page->indices[value], false) : g->add(g, &page->values, value, false);
}

static int take_page(struct gather *g, const struct weir_page_reader *reader)
{
    const struct weir_page *page = &reader->page;
    int rc = 0;
    for (uint32_t i = 0, value = 0; i < page->n && rc == 0; i++) {
        rc = take_entry(g, page, &reader->dictionary, i, value);
        value += !page->definitions || page->definitions[i] == g->leaf->max_definition;
    }
    return rc;
}

/* Whether the next page is wanted. A list may continue on it. */
static bool wants_page(const struct gather *g)
{
    return g->leaf->max_repetition > 0 ? g->row < g->end : g->row + 1 < g->end;
}

static int bad_group_rows(struct gather *g, const struct weir_parquet_group *group)
{
    int64_t rows = g->row + 1 - group->first;
    return weir_err_set(g->err, -EBADMSG,
                        "column %s: has %s%" PRId64 " rows in a row group of %" PRId64 "; copy the file again",
                        g->leaf->name, rows > group->rows ? "at least " : "", rows, group->rows);
}

static int take_group(struct gather *g, struct weir_parquet *p, int column, const struct weir_parquet_group *group)
{
    struct weir_page_reader reader;
    uint32_t skipped;
    weir_page_reader_open(&reader, p, column, &group->chunks[column], g->err);
    reader.locates = g->extents != NULL;
    g->row = group->first - 1;
    int rc = 1;
    while (rc > 0 && wants_page(g) && g->row < group->first + group->rows) {
        rc = weir_page_next(&reader, g->first - 1 - g->row, &skipped);
        g->row += skipped;
        if (rc > 0 && skipped == 0)
            rc = take_page(g, &reader) < 0 ? g->err->code : 1;
    }
    weir_page_reader_close(&reader);
    if (rc < 0)
        return rc;
    bool ended = rc == 0 && g->row + 1 < group->first + group->rows;
    return ended || g->row >= group->first + group->rows ? bad_group_rows(g, group) : 0;
}

static int take_rows(struct gather *g, struct weir_parquet *p, int column)
{
    int rc = 0;
    if (g->first < 0 || g->end < g->first || g->end > p->rows)
        return weir_err_set(g->err, -EINVAL,
                            "column %s: rows %" PRId64 " to %" PRId64 " do not exist: the file has "
                            "%" PRId64,
                            g->leaf->name, g->first, g->end - 1, p->rows);
    for (int i = 0; i < p->n_groups && rc == 0; i++) {
        const struct weir_parquet_group *group = &p->groups[i];
        if (group->rows > 0 && group->first < g->end && group->first + group->rows > g->first)
            rc = take_group(g, p, column, group);
    }
    return rc;
}

/* ---- numbers ---- */

static int check_width(struct gather *g)
{
    if (g->row > g->first && g->width >= 0 && g->row_values != g->width)
        return weir_err_set(g->err, -EBADMSG,
                            "column %s: row %" PRId64 " has a list of %" PRId64 " values, the rows before it have "
                            "%d; all must be equal",
                            g->leaf->name, g->row - 1, g->row_values, g->width);
    if (g->row_values > INT32_MAX)
        return weir_err_set(g->err, -ENOTSUP, "column %s: a list has more than 2^31 values", g->leaf->name);
    g->width = g->row > g->first ? (int)g->row_values : g->width;
    return 0;
}

static int begin_numbers(struct gather *g)
{
    int rc = check_width(g);
    g->row_values = 0;
    return rc;
}

static int add_number(struct gather *g, const struct weir_page_values *from, uint32_t value, bool is_null)
{
    static const float nan_f32 = NAN;
    static const double nan_f64 = NAN;
    enum weir_number_type type = g->leaf->about.type;
    size_t stored = (size_t)g->leaf->value_bytes, bytes = weir_number_bytes(type);
    float single;
    if (is_null && type != WEIR_F32 && type != WEIR_F64)
        return weir_err_set(g->err, -EBADMSG, "column %s: row %" PRId64 " is null; integers must have a value",
                            g->leaf->name, g->row);
    int rc = grow(g, &g->values, &g->capacity, g->n + 1, bytes);
    if (rc < 0)
        return rc;
    const void *source = !is_null           ? from->fixed + (size_t)value * stored
                         : type == WEIR_F32 ? (const void *)&nan_f32
                                            : (const void *)&nan_f64;
    if (g->leaf->is_half && !is_null) {
        single = (float)weir_float_at((uint32_t)stored, source);
        source = &single;
    }
    memcpy(g->values + g->n++ * bytes, source, bytes); /* small integers are the low bytes of wider ones */
    g->row_values++;
    return 0;
}

int weir_parquet_numbers(struct weir_parquet *parquet, int column, int64_t first, int64_t n,
                         enum weir_number_type *type, void **values, int *width, struct weir_err *err)
{
    const struct weir_parquet_leaf *leaf = &parquet->leaves[column];
    struct weir_err why = WEIR_ERR_NONE;
    struct gather g = {.leaf = leaf,
                       .first = first,
                       .end = first + n,
                       .err = &why,
                       .add = add_number,
                       .begin_row = begin_numbers,
                       .width = -1};
    *values = NULL;
    *width = leaf->max_repetition > 0 ? 0 : 1;
    *type = leaf->about.type;
    if (leaf->about.kind != WEIR_PARQUET_NUMBERS)
        return weir_err_set(err, -EINVAL, "column %s: does not contain numbers or lists of numbers", leaf->name);
    int rc = n > 0 ? take_rows(&g, parquet, column) : 0;
    if (rc == 0 && n > 0) {
        g.row = g.end;
        rc = check_width(&g);
        *width = g.width;
    }
    if (rc == 0 && !g.values && !(g.values = calloc(1, weir_number_bytes(*type))))
        rc = weir_no_memory(&why);
    *values = rc < 0 ? NULL : g.values;
    if (rc < 0) {
        free(g.values);
        return weir_err_set(err, rc, "%s", why.text);
    }
    return 0;
}

/* ---- bytes ---- */

static int begin_bytes(struct gather *g)
{
    if (g->out.row_ends && g->row > g->first)
        g->out.row_ends[g->row - 1 - g->first] = g->n;
    return 0;
}

static int add_bytes(struct gather *g, const struct weir_page_values *from, uint32_t value, bool is_null)
{
    size_t length = is_null ? 0 : from->bytes[value].length;
    int rc = grow(g, &g->out.data, &g->bytes_capacity, g->bytes + length, 1);
    if (rc == 0)
        rc = grow(g, &g->out.ends, &g->capacity, g->n + 1, sizeof *g->out.ends);
    if (rc < 0)
        return rc;
    if (length > 0)
        memcpy(g->out.data + g->bytes, from->bytes[value].at, length);
    g->bytes += length;
    g->out.ends[g->n++] = g->bytes;
    return 0;
}

int weir_parquet_bytes(struct weir_parquet *parquet, int column, int64_t first, int64_t n,
                       struct weir_parquet_bytes *out, struct weir_err *err)
{
    const struct weir_parquet_leaf *leaf = &parquet->leaves[column];
    struct weir_err why = WEIR_ERR_NONE;
    struct gather g = {
        .leaf = leaf, .first = first, .end = first + n, .err = &why, .add = add_bytes, .begin_row = begin_bytes};
    *out = (struct weir_parquet_bytes){0};
    if (leaf->about.kind != WEIR_PARQUET_BYTES)
        return weir_err_set(err, -EINVAL, "column %s: does not contain strings or other bytes", leaf->name);
    int rc = n < 0 || n > parquet->rows ? -EINVAL : 0;
    if (rc < 0)
        weir_err_set(&why, rc, "column %s: %" PRId64 " rows do not exist", leaf->name, n);
    if (rc == 0 && leaf->max_repetition > 0 && !(g.out.row_ends = calloc((size_t)n + 1, sizeof *g.out.row_ends)))
        rc = weir_no_memory(&why);
    if (rc == 0 && n > 0)
        rc = take_rows(&g, parquet, column);
    if (rc == 0 && g.out.row_ends && n > 0)
        g.out.row_ends[n - 1] = g.n;
    g.out.n = g.n;
    if (rc < 0) {
        weir_parquet_bytes_free(&g.out);
        return weir_err_set(err, rc, "%s", why.text);
    }
    *out = g.out;
    return 0;
}

/* ---- extents ---- */

static int begin_extent(struct gather *g)
{
    (void)g;
    return 0;
}

static int add_extent(struct gather *g, const struct weir_page_values *from, uint32_t value, bool is_null)
{
    if (!is_null)
        g->extents[g->row - g->first] = weir_page_extent(from, value);
    return 0;
}

int weir_parquet_extents(struct weir_parquet *parquet, int column, int64_t first, int64_t n,
                         struct weir_parquet_extent *extents, struct weir_err *err)
{
    const struct weir_parquet_leaf *leaf = &parquet->leaves[column];
    struct weir_err why = WEIR_ERR_NONE;
    struct gather g = {.leaf = leaf,
                       .first = first,
                       .end = first + n,
                       .err = &why,
                       .add = add_extent,
                       .begin_row = begin_extent,
                       .extents = extents};
    if (leaf->about.kind != WEIR_PARQUET_BYTES || leaf->max_repetition > 0)
        return weir_err_set(err, -EINVAL, "column %s: does not contain one value of bytes per row", leaf->name);
    memset(extents, 0, (size_t)n * sizeof *extents);
    int rc = n > 0 ? take_rows(&g, parquet, column) : 0;
    return rc < 0 ? weir_err_set(err, rc, "%s", why.text) : 0;
}

void weir_parquet_bytes_free(struct weir_parquet_bytes *bytes)
{
    free(bytes->data);
    free(bytes->ends);
    free(bytes->row_ends);
    *bytes = (struct weir_parquet_bytes){0};
}
