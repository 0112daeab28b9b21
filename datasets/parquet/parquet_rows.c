/* Values of a range of rows: numbers, bytes, and where bytes are in the file. */
#include "base/claims.h"
#include "base/shortage.h"
#include "datasets/chunks/filters.h"
#include "datasets/parquet/parquet_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t VALUES_MAX_BYTES = (uint64_t)1 << 30;

/* ---- rows ---- */

struct gather;

/* What is done with values. The functions return 0 or a negative code. */
struct taker {
    /* Adds n values of the wanted row, or of rows from it on: those of `indices`, or those after the first (NULL). */
    int (*add)(struct gather *gather, const struct weir_page_values *from, const uint32_t *indices, uint32_t first,
               uint32_t n);
    int (*add_null)(struct gather *gather);
    int (*begin_list)(struct gather *gather); /* called when a wanted row begins, if rows are lists */
};

/* The rows that are read, and where their values go. */
struct gather {
    const struct weir_parquet_leaf *leaf;
    const struct taker *taker;
    int64_t first, end; /* rows that are wanted */
    int64_t row;        /* row of the last entry; -1 before the first */
    struct weir_err *err;
    uint64_t stored_bytes; /* of the file */
    int64_t row_values;    /* of the current row */
    int width;             /* of the rows before it; -1 = none */
    uint64_t n, capacity, bytes, bytes_capacity;
    uint8_t *values;
    struct weir_parquet_bytes out;
    struct weir_parquet_extent *extents; /* one per row; NULL = not wanted */
};

static struct gather gather_of(const struct weir_parquet *parquet, int column, const struct taker *taker, int64_t first,
                               int64_t n, struct weir_err *err)
{
    return (struct gather){.leaf = &parquet->leaves[column],
                           .taker = taker,
                           .first = first,
                           .end = first + n,
                           .err = err,
                           .stored_bytes = parquet->stored_bytes,
                           .width = -1};
}

static int grow(struct gather *g, void *array, uint64_t *capacity, uint64_t n, size_t size)
{
    void *old, *more;
    if (n <= *capacity)
        return 0;
    uint64_t wanted = 2 * *capacity > n ? 2 * *capacity : n;
    if (n * size > VALUES_MAX_BYTES || !weir_claim_fits(n * size, g->stored_bytes))
        return weir_err_set(g->err, -ENOTSUP,
                            "column %s: its rows %" PRId64 " to %" PRId64 " have more than %" PRIu64 " MiB of values, "
                            "in a file of %" PRIu64 " bytes",
                            g->leaf->name, g->first, g->end - 1, *capacity * size >> 20, g->stored_bytes);
    memcpy(&old, array, sizeof old);
    more = realloc(old, wanted * size);
    if (!more)
        return weir_no_memory(g->err);
    memcpy(array, &more, sizeof more);
    *capacity = wanted;
    return 0;
}

static bool is_wanted(const struct gather *g)
{
    return g->row >= g->first && g->row < g->end;
}

/* Returns how many entries from `entry` on have values and are in one list. If rows are no lists: in rows. */
static uint32_t entries_alike(const struct gather *g, const struct weir_page *page, uint32_t entry)
{
    uint32_t end = entry;
    while (end < page->n && (!page->definitions || page->definitions[end] == g->leaf->max_definition) &&
           (end == entry || !page->repetitions || page->repetitions[end] > 0))
        end++;
    return end - entry;
}

static int add_values(struct gather *g, const struct weir_page_reader *reader, uint32_t value, uint32_t n)
{
    const uint32_t *indices = reader->page.indices;
    return indices ? g->taker->add(g, &reader->dictionary, indices + value, 0, n)
                   : g->taker->add(g, &reader->page.values, NULL, value, n);
}

/* Adds those of n rows with a value each that are wanted. The first of them follows g->row. */
static int take_rows_of_one(struct gather *g, const struct weir_page_reader *reader, uint32_t value, uint32_t n)
{
    int64_t begin = g->row + 1, end = begin + n;
    int64_t from = begin > g->first ? begin : g->first, to = end < g->end ? end : g->end;
    g->row = from;
    int rc = from < to ? add_values(g, reader, value + (uint32_t)(from - begin), (uint32_t)(to - from)) : 0;
    g->row = end - 1;
    return rc;
}

/* Adds n values, which begin a list or continue one. */
static int take_list(struct gather *g, const struct weir_page_reader *reader, uint32_t entry, uint32_t value,
                     uint32_t n)
{
    const struct weir_page *page = &reader->page;
    bool begins = page->repetitions[entry] == 0;
    g->row += begins;
    if (g->row < 0)
        return weir_err_set(g->err, -EBADMSG, "column %s: its first list has no beginning; copy the file again",
                            g->leaf->name);
    if (!is_wanted(g))
        return 0;
    int rc = begins ? g->taker->begin_list(g) : 0;
    if (rc < 0 || n > 0)
        return rc < 0 ? rc : add_values(g, reader, value, n);
    bool is_empty = page->definitions[entry] < g->leaf->list_definition;
    return is_empty ? 0 : g->taker->add_null(g);
}

static int take_null(struct gather *g)
{
    g->row++;
    return is_wanted(g) ? g->taker->add_null(g) : 0;
}

static int take_page(struct gather *g, const struct weir_page_reader *reader)
{
    const struct weir_page *page = &reader->page;
    int rc = 0;
    for (uint32_t i = 0, value = 0; i < page->n && rc == 0;) {
        uint32_t n = entries_alike(g, page, i);
        if (page->repetitions)
            rc = take_list(g, reader, i, value, n);
        else
            rc = n > 0 ? take_rows_of_one(g, reader, value, n) : take_null(g);
        value += n;
        i += n > 0 ? n : 1;
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

/* Makes room for n more numbers and counts them. Returns where they go, or NULL with g->err. */
static uint8_t *more_numbers(struct gather *g, uint32_t n)
{
    size_t bytes = weir_number_bytes(g->leaf->about.type);
    if (grow(g, &g->values, &g->capacity, g->n + n, bytes) < 0)
        return NULL;
    g->n += n;
    g->row_values += n;
    return g->values + (g->n - n) * bytes;
}

static void copy_numbers(uint8_t *to, size_t bytes, const uint8_t *from, size_t stored, const uint32_t *indices,
                         uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *number = from + (indices ? indices[i] : i) * stored;
        if (bytes == 8)
            memcpy(to + i * 8, number, 8);
        else if (bytes == 4)
            memcpy(to + i * 4, number, 4);
        else
            memcpy(to + i * bytes, number, bytes); /* small integers are the low bytes of wider ones */
    }
}

static int add_numbers(struct gather *g, const struct weir_page_values *from, const uint32_t *indices, uint32_t first,
                       uint32_t n)
{
    size_t stored = (size_t)g->leaf->value_bytes, bytes = weir_number_bytes(g->leaf->about.type);
    const uint8_t *source = from->fixed + first * stored;
    uint8_t *to = more_numbers(g, n);
    if (!to)
        return g->err->code;
    if (g->leaf->is_half)
        for (uint32_t i = 0; i < n; i++) {
            float single = (float)weir_float_at((uint32_t)stored, source + (indices ? indices[i] : i) * stored);
            memcpy(to + i * bytes, &single, bytes);
        }
    else if (!indices && stored == bytes)
        memcpy(to, source, n * bytes);
    else
        copy_numbers(to, bytes, source, stored, indices, n);
    return 0;
}

static int add_null_number(struct gather *g)
{
    enum weir_number_type type = g->leaf->about.type;
    float nan_f32 = NAN;
    double nan_f64 = NAN;
    if (type != WEIR_F32 && type != WEIR_F64)
        return weir_err_set(g->err, -EBADMSG, "column %s: row %" PRId64 " is null; integers must have a value",
                            g->leaf->name, g->row);
    uint8_t *to = more_numbers(g, 1);
    if (!to)
        return g->err->code;
    memcpy(to, type == WEIR_F32 ? (void *)&nan_f32 : (void *)&nan_f64, weir_number_bytes(type));
    return 0;
}

int weir_parquet_numbers(struct weir_parquet *parquet, int column, int64_t first, int64_t n,
                         enum weir_number_type *type, void **values, int *width, struct weir_err *err)
{
    const struct weir_parquet_leaf *leaf = &parquet->leaves[column];
    struct weir_err why = WEIR_ERR_NONE;
    static const struct taker taker = {add_numbers, add_null_number, begin_numbers};
    struct gather g = gather_of(parquet, column, &taker, first, n, &why);
    *values = NULL;
    *width = leaf->max_repetition > 0 ? 0 : 1;
    *type = leaf->about.type;
    if (leaf->about.kind != WEIR_PARQUET_NUMBERS)
        return weir_err_set(err, -EINVAL, "column %s: does not contain numbers or lists of numbers", leaf->name);
    int rc = n > 0 ? take_rows(&g, parquet, column) : 0;
    if (rc == 0 && n > 0 && leaf->max_repetition > 0) {
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

static int add_value(struct gather *g, const uint8_t *bytes, size_t length)
{
    int rc = grow(g, &g->out.data, &g->bytes_capacity, g->bytes + length, 1);
    if (rc == 0)
        rc = grow(g, &g->out.ends, &g->capacity, g->n + 1, sizeof *g->out.ends);
    if (rc < 0)
        return rc;
    if (length > 0)
        memcpy(g->out.data + g->bytes, bytes, length);
    g->bytes += length;
    g->out.ends[g->n++] = g->bytes;
    return 0;
}

static int add_bytes(struct gather *g, const struct weir_page_values *from, const uint32_t *indices, uint32_t first,
                     uint32_t n)
{
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        const struct weir_page_bytes *value = &from->bytes[indices ? indices[i] : first + i];
        rc = add_value(g, value->at, value->length);
    }
    return rc;
}

static int add_null_bytes(struct gather *g)
{
    return add_value(g, NULL, 0);
}

int weir_parquet_bytes(struct weir_parquet *parquet, int column, int64_t first, int64_t n,
                       struct weir_parquet_bytes *out, struct weir_err *err)
{
    const struct weir_parquet_leaf *leaf = &parquet->leaves[column];
    struct weir_err why = WEIR_ERR_NONE;
    static const struct taker taker = {add_bytes, add_null_bytes, begin_bytes};
    struct gather g = gather_of(parquet, column, &taker, first, n, &why);
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

static int add_extents(struct gather *g, const struct weir_page_values *from, const uint32_t *indices, uint32_t first,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        g->extents[g->row - g->first + i] = weir_page_extent(from, indices ? indices[i] : first + i);
    return 0;
}

static int add_null_extent(struct gather *g)
{
    (void)g;
    return 0;
}

int weir_parquet_extents(struct weir_parquet *parquet, int column, int64_t first, int64_t n,
                         struct weir_parquet_extent *extents, struct weir_err *err)
{
    const struct weir_parquet_leaf *leaf = &parquet->leaves[column];
    struct weir_err why = WEIR_ERR_NONE;
    static const struct taker taker = {add_extents, add_null_extent, NULL}; /* rows are not lists */
    struct gather g = gather_of(parquet, column, &taker, first, n, &why);
    g.extents = extents;
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
