/* The footer of Parquet files: schema and row groups (parquet.thrift). */
#include "base/claims.h"
#include "base/grow.h"
#include "base/shortage.h"
#include "datasets/parquet/parquet_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { REQUIRED, OPTIONAL, REPEATED };
enum { UTF8 = 0, ENUM = 4, DECIMAL = 5, JSON = 19, UINT_8 = 11, UINT_64 = 14, INT_8 = 15, INT_64 = 18 };
enum { PATH_DEPTH_MAX = 16, NO_TYPE = -1 };

/* An element of the schema, which is a tree in depth-first order. */
struct element {
    int physical, repetition, converted;
    int fixed_bytes; /* of values of the type WEIR_PHYSICAL_FIXED */
    uint32_t children;
    const uint8_t *name;
    size_t name_bytes;
    bool is_string, is_half, is_decimal; /* by its logical type */
};

struct footer {
    struct weir_thrift thrift;
    struct weir_parquet *parquet;
    struct weir_err *err;
    uint64_t rows, values; /* of the row groups read so far, and of their columns */
    uint32_t elements_left;
    const uint8_t *root; /* name of the top-level field of the last leaf */
    int type;            /* of the elements of the list that is being read */
};

static int damaged(struct weir_err *err, const char *what)
{
    return weir_err_set(err, -EBADMSG, "the Parquet footer is damaged: %s; copy the file again, or write it again",
                        what);
}

static char *copy_text(const uint8_t *bytes, size_t n)
{
    return bytes ? strndup((const char *)bytes, n) : strdup("");
}

/* ---- schema ---- */

/* Reads the logical type, whose fields are its alternatives. */
static void read_logical(struct weir_thrift *t, struct element *element)
{
    enum { STRING = 1, ENUMERATION = 4, DECIMALS = 5, FLOAT16 = 15 };
    int id = 0, type;
    while ((type = weir_thrift_field(t, &id)) != 0) {
        if (id == STRING || id == ENUMERATION)
            element->is_string = true;
        element->is_half |= id == FLOAT16;
        element->is_decimal |= id == DECIMALS;
        weir_thrift_skip(t, type);
    }
}

static struct element read_element(struct weir_thrift *t)
{
    struct element element = {.physical = NO_TYPE, .converted = NO_TYPE};
    int id = 0, type;
    while ((type = weir_thrift_field(t, &id)) != 0) {
        if (id == 1)
            element.physical = (int)weir_thrift_integer(t);
        else if (id == 2)
            element.fixed_bytes = (int)weir_thrift_integer(t);
        else if (id == 3)
            element.repetition = (int)weir_thrift_integer(t);
        else if (id == 4)
            element.name = weir_thrift_bytes(t, &element.name_bytes);
        else if (id == 5)
            element.children = (uint32_t)weir_thrift_integer(t);
        else if (id == 6)
            element.converted = (int)weir_thrift_integer(t);
        else if (id == 10 && type == WEIR_THRIFT_STRUCT)
            read_logical(t, &element);
        else
            weir_thrift_skip(t, type);
    }
    return element;
}

static enum weir_number_type integer_type(const struct element *element)
{
    static const enum weir_number_type types[] = {WEIR_U8, WEIR_U16, WEIR_U32, WEIR_U64,
                                                  WEIR_I8, WEIR_I16, WEIR_I32, WEIR_I64};
    bool is_int32 = element->physical == WEIR_PHYSICAL_INT32;
    if (element->converted >= UINT_8 && element->converted <= INT_64) {
        enum weir_number_type type = types[element->converted - UINT_8];
        if (!is_int32 || weir_number_bytes(type) <= 4) /* wider ones are invalid, and would be read past the value */
            return type;
    }
    return is_int32 ? WEIR_I32 : WEIR_I64;
}

/* Returns the size of a stored value, or 0. */
static int value_bytes(const struct element *element)
{
    static const int bytes[] = {[WEIR_PHYSICAL_BOOLEAN] = 1, [WEIR_PHYSICAL_INT32] = 4,  [WEIR_PHYSICAL_INT64] = 8,
                                [WEIR_PHYSICAL_FLOAT] = 4,   [WEIR_PHYSICAL_DOUBLE] = 8, [WEIR_PHYSICAL_FIXED] = 0};
    if (element->is_half && element->physical == WEIR_PHYSICAL_FIXED && element->fixed_bytes == 2)
        return element->fixed_bytes;
    return element->physical >= 0 && element->physical <= WEIR_PHYSICAL_FIXED ? bytes[element->physical] : 0;
}

/* Decimals are stored as integers without their scale. */
static const char *refused_type(const struct element *element, const struct weir_parquet_column *about)
{
    if (element->is_decimal || element->converted == DECIMAL)
        return "DECIMAL";
    if (about->kind == WEIR_PARQUET_OTHER)
        return element->physical == WEIR_PHYSICAL_INT96   ? "INT96"
               : element->physical == WEIR_PHYSICAL_FIXED ? "FIXED_LEN_BYTE_ARRAY"
                                                          : "unknown";
    return about->kind == WEIR_PARQUET_BYTES && about->list_depth > 1 ? "lists of lists of bytes" : NULL;
}

static void classify(struct weir_parquet_leaf *leaf, const struct element *element)
{
    struct weir_parquet_column *about = &leaf->about;
    about->kind = WEIR_PARQUET_NUMBERS;
    leaf->value_bytes = value_bytes(element);
    leaf->is_half = leaf->value_bytes == 2;
    if (element->physical == WEIR_PHYSICAL_BOOLEAN)
        about->type = WEIR_U8;
    else if (element->physical == WEIR_PHYSICAL_INT32 || element->physical == WEIR_PHYSICAL_INT64)
        about->type = integer_type(element);
    else if (leaf->value_bytes > 0)
        about->type = element->physical == WEIR_PHYSICAL_DOUBLE ? WEIR_F64 : WEIR_F32;
    else
        about->kind = element->physical == WEIR_PHYSICAL_BYTE_ARRAY ? WEIR_PARQUET_BYTES : WEIR_PARQUET_OTHER;
    about->is_string = about->kind == WEIR_PARQUET_BYTES && (element->is_string || element->converted == UTF8 ||
                                                             element->converted == ENUM || element->converted == JSON);
    about->list_depth = leaf->max_repetition;
    about->refused = refused_type(element, about);
    if (about->refused)
        about->kind = WEIR_PARQUET_OTHER;
}

static int add_leaf(struct footer *f, const struct element *path, int depth, const struct weir_parquet_leaf *levels)
{
    struct weir_parquet *p = f->parquet;
    if (p->n_leaves == WEIR_PARQUET_COLUMNS_MAX)
        return weir_err_set(f->err, -ENOTSUP, "the Parquet file has more than %d columns", WEIR_PARQUET_COLUMNS_MAX);
    if (!weir_grow(&p->leaves, (size_t)p->n_leaves, sizeof *p->leaves))
        return weir_no_memory(f->err);
    struct weir_parquet_leaf *leaf = &p->leaves[p->n_leaves++];
    const struct element *last = &path[depth];
    *leaf = *levels;
    leaf->physical = last->physical;
    bool shares = p->n_leaves > 1 && path[0].name == f->root;
    leaf->name = shares ? leaf[-1].name : copy_text(path[0].name, path[0].name_bytes);
    f->root = path[0].name;
    leaf->leaf = copy_text(last->name, last->name_bytes);
    if (!leaf->name || !leaf->leaf)
        return weir_no_memory(f->err);
    classify(leaf, last);
    return 0;
}

/* Reads an element and its children. path[depth] is the element; the root has no place in the path. */
static int read_tree(struct footer *f, struct element *path, int depth, struct weir_parquet_leaf levels)
{
    if (f->elements_left == 0 || depth == PATH_DEPTH_MAX)
        return damaged(f->err, "its schema is not a tree, or too deep");
    f->elements_left--;
    struct element element = read_element(&f->thrift);
    if (f->thrift.is_bad)
        return damaged(f->err, "its schema");
    if (depth >= 0) {
        path[depth] = element;
        levels.max_definition += element.repetition != REQUIRED;
        if (element.repetition == REPEATED) {
            levels.max_repetition++;
            levels.list_definition = levels.max_definition;
        }
    }
    if (element.children == 0)
        return depth >= 0 ? add_leaf(f, path, depth, &levels) : damaged(f->err, "it has no columns");
    int rc = 0;
    for (uint32_t i = 0; i < element.children && rc == 0; i++)
        rc = read_tree(f, path, depth + 1, levels);
    return rc;
}

static int read_schema(struct footer *f)
{
    struct element path[PATH_DEPTH_MAX];
    f->elements_left = weir_thrift_list(&f->thrift, &f->type);
    int rc = read_tree(f, path, -1, (struct weir_parquet_leaf){0});
    return rc == 0 && f->elements_left > 0 ? damaged(f->err, "its schema has elements outside the tree") : rc;
}

/* ---- row groups ---- */

/* Adds to the rows or values that the file announces. A run takes few bytes, whatever its length. */
static int check_claim(struct footer *f, const char *what, uint64_t *sum, int64_t more)
{
    uint64_t stored = f->parquet->stored_bytes;
    if (__builtin_add_overflow(*sum, (uint64_t)more, sum))
        *sum = UINT64_MAX;
    return weir_claim_fits(*sum, stored)
               ? 0
               : weir_err_set(f->err, -ENOTSUP,
                              "the Parquet file announces %" PRIu64 " %s in %" PRIu64 " bytes; copy the file again, or "
                              "divide it",
                              *sum, what, stored);
}

static void read_chunk_metadata(struct weir_thrift *t, struct weir_parquet_chunk *chunk, int *physical)
{
    int64_t data = -1, dictionary = -1, bytes = -1;
    int id = 0, type;
    while ((type = weir_thrift_field(t, &id)) != 0) {
        if (id == 1)
            *physical = (int)weir_thrift_integer(t);
        else if (id == 4)
            chunk->codec = (int)weir_thrift_integer(t);
        else if (id == 5)
            chunk->values = weir_thrift_integer(t);
        else if (id == 7)
            bytes = weir_thrift_integer(t);
        else if (id == 9)
            data = weir_thrift_integer(t);
        else if (id == 11)
            dictionary = weir_thrift_integer(t);
        else
            weir_thrift_skip(t, type);
    }
    /* Some writers store 0 for a dictionary that does not exist. */
    int64_t first = dictionary > 0 && dictionary < data ? dictionary : data;
    if (first < 0 || bytes < 0 || chunk->values < 0)
        t->is_bad = true;
    chunk->offset = (uint64_t)first;
    chunk->bytes = (uint64_t)bytes;
}

static int read_chunk(struct footer *f, struct weir_parquet_chunk *chunk, const struct weir_parquet_leaf *leaf)
{
    struct weir_thrift *t = &f->thrift;
    int id = 0, type, physical = NO_TYPE;
    size_t length = 0;
    while ((type = weir_thrift_field(t, &id)) != 0) {
        if (id == 1)
            weir_thrift_bytes(t, &length); /* data in another file */
        else if (id == 3 && type == WEIR_THRIFT_STRUCT)
            read_chunk_metadata(t, chunk, &physical);
        else
            weir_thrift_skip(t, type);
    }
    if (length > 0)
        return weir_err_set(f->err, -ENOTSUP, "column %s is stored in another file, which is not supported",
                            leaf->name);
    if (t->is_bad || physical != leaf->physical || chunk->offset > f->parquet->file_bytes ||
        chunk->bytes > f->parquet->file_bytes - chunk->offset)
        return damaged(f->err, "the location of a column");
    return check_claim(f, "values", &f->values, chunk->values);
}

static int read_chunks(struct footer *f, struct weir_parquet_group *group)
{
    uint32_t n = weir_thrift_list(&f->thrift, &f->type);
    if (n != (uint32_t)f->parquet->n_leaves || group->chunks)
        return damaged(f->err, "a row group does not have each column once");
    group->chunks = calloc(n, sizeof *group->chunks);
    if (!group->chunks)
        return weir_no_memory(f->err);
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = read_chunk(f, &group->chunks[i], &f->parquet->leaves[i]);
    return rc;
}

static int read_group(struct footer *f)
{
    struct weir_parquet *p = f->parquet;
    if (!weir_grow(&p->groups, (size_t)p->n_groups, sizeof *p->groups))
        return weir_no_memory(f->err);
    struct weir_parquet_group *group = &p->groups[p->n_groups++];
    int id = 0, type, rc = 0;
    *group = (struct weir_parquet_group){.first = (int64_t)f->rows, .rows = -1};
    while (rc == 0 && (type = weir_thrift_field(&f->thrift, &id)) != 0) {
        if (id == 1)
            rc = read_chunks(f, group);
        else if (id == 3)
            group->rows = weir_thrift_integer(&f->thrift);
        else
            weir_thrift_skip(&f->thrift, type);
    }
    if (rc < 0)
        return rc;
    if (f->thrift.is_bad || !group->chunks || group->rows < 0)
        return damaged(f->err, "a row group");
    return check_claim(f, "rows", &f->rows, group->rows);
}

static int read_groups(struct footer *f)
{
    uint32_t n = weir_thrift_list(&f->thrift, &f->type);
    int rc = f->parquet->n_leaves > 0 ? 0 : damaged(f->err, "it has no schema");
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = read_group(f);
    return rc;
}

int weir_parquet_parse_footer(struct weir_parquet *parquet, const uint8_t *bytes, size_t n, struct weir_err *err)
{
    struct footer f = {.thrift = {.at = bytes, .end = bytes + n}, .parquet = parquet, .err = err};
    int id = 0, type, rc = 0;
    parquet->rows = -1;
    while (rc == 0 && (type = weir_thrift_field(&f.thrift, &id)) != 0) {
        if (id == 2 && parquet->n_leaves == 0)
            rc = read_schema(&f);
        else if (id == 3)
            parquet->rows = weir_thrift_integer(&f.thrift);
        else if (id == 4 && parquet->n_groups == 0)
            rc = read_groups(&f);
        else
            weir_thrift_skip(&f.thrift, type);
    }
    if (rc == 0 && (f.thrift.is_bad || parquet->n_leaves == 0))
        rc = damaged(err, "it ends early");
    if (parquet->rows == 0) /* as old writers have it, and as other readers do */
        parquet->rows = (int64_t)f.rows;
    if (rc == 0 && parquet->rows != (int64_t)f.rows)
        rc = damaged(err, "its row groups have another number of rows than the file");
    return rc;
}
