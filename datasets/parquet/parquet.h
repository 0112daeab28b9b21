/* parquet.h: reads columns of Apache Parquet files (github.com/apache/parquet-format) as LeRobot, Hugging Face datasets
 * and pandas write them: pages of version 1 and 2, the encodings PLAIN, dictionary and RLE, uncompressed or compressed
 * by Snappy or Zstandard, flat columns, lists, and structures of such columns. Other encodings and codecs
 * are refused by name.
 *
 * A file is read by one thread at a time. Rows are counted from 0 over all row groups. */
#ifndef WEIR_DATASETS_PARQUET_PARQUET_H
#define WEIR_DATASETS_PARQUET_PARQUET_H

#include "base/numbers.h"
#include "origin/origin.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_parquet;

enum weir_parquet_kind {
    WEIR_PARQUET_NUMBERS, /* bools are u8 */
    WEIR_PARQUET_BYTES,   /* strings and other bytes of variable length */
    WEIR_PARQUET_OTHER,   /* cannot be read */
};

/* A leaf of the schema. Names are valid until the file is closed. */
struct weir_parquet_column {
    const char *name; /* top-level field, which may contain dots: "observation.state" */
    const char *leaf; /* last component of the path: "element", "bytes"; that of a plain column is its name */
    enum weir_parquet_kind kind;
    enum weir_number_type type;
    const char *refused; /* name of the type of WEIR_PARQUET_OTHER; NULL for others */
    int list_depth;      /* 0 = one value per row; lists of lists of bytes cannot be read */
    bool is_string;
};

/* Opens the file and reads its footer. origin: NULL = this machine. Errors do not contain the path. Returns 0; -EBADMSG
 * or -ENODATA if the file is damaged or truncated; -ENOTSUP if it is encrypted; or another negative code. */
int weir_parquet_open(struct weir_parquet **out, struct weir_origin *origin, const char *path, struct weir_err *err);
void weir_parquet_close(struct weir_parquet **parquet);
/* Returns the identity of the open file. */
struct weir_file_id weir_parquet_id(const struct weir_parquet *parquet);
/* Declares that rows first .. first + n - 1 of the columns i for which wanted[i] is true will be read. Of a file on a
 * server, their pages are read now, with many requests at once. */
void weir_parquet_announce(struct weir_parquet *parquet, const bool *wanted, int64_t first, int64_t n);

int64_t weir_parquet_rows(const struct weir_parquet *parquet);
int weir_parquet_columns(const struct weir_parquet *parquet);
void weir_parquet_column(const struct weir_parquet *parquet, int column, struct weir_parquet_column *out);
/* Returns the column with this top-level name and leaf (NULL: the first leaf), or -ENOENT. */
int weir_parquet_find(const struct weir_parquet *parquet, const char *name, const char *leaf);

/* Reads the numbers of rows first .. first + n - 1 in their stored type (float16 as float32); the caller frees *values.
 * *width: values per row, which is 1, or the length of the lists, which must be equal; lists of lists are joined. Null
 * floats are NaN.
 * Returns 0; -EINVAL if the column has no numbers or the rows do not exist; -EBADMSG for damage, lists of different
 * length, or null integers; -ENOTSUP for an encoding or codec; -ENOMEM; or a code of pread. The error names the column
 * and the row or page. */
int weir_parquet_numbers(struct weir_parquet *parquet, int column, int64_t first, int64_t n,
                         enum weir_number_type *type, void **values, int *width, struct weir_err *err);

/* Value i is data[ends[i - 1]] .. data[ends[i]] (from 0 for the first). A null is empty. The values of row i of a list
 * end at row_ends[i]; row_ends is NULL for other columns. */
struct weir_parquet_bytes {
    uint8_t *data;
    uint64_t *ends, n, *row_ends;
};
/* Reads the bytes of rows first .. first + n - 1. Returns the same codes as weir_parquet_numbers. */
int weir_parquet_bytes(struct weir_parquet *parquet, int column, int64_t first, int64_t n,
                       struct weir_parquet_bytes *out, struct weir_err *err);
/* Returns value i. */
static inline const uint8_t *weir_parquet_value(const struct weir_parquet_bytes *bytes, uint64_t i, size_t *length)
{
    uint64_t begin = i > 0 ? bytes->ends[i - 1] : 0;
    *length = (size_t)(bytes->ends[i] - begin);
    return bytes->data ? bytes->data + begin : (const uint8_t *)"";
}
void weir_parquet_bytes_free(struct weir_parquet_bytes *bytes);

/* Location of a value in the file. It is verbatim if first == length. Otherwise it is compressed by Snappy:
 * weir_snappy_resume makes skip + length bytes of it, which end with the value. */
struct weir_parquet_extent {
    uint64_t offset; /* UINT64_MAX: only all bytes of the page together can be decompressed */
    uint32_t length; /* of the value; 0 = null or empty */
    uint32_t span;   /* bytes to read */
    uint32_t first;  /* bytes before the first element of Snappy: the rest of a literal */
    uint32_t skip;   /* bytes that are decompressed before the value */
};
/* Locates the bytes of rows first .. first + n - 1 of a column without lists. Returns the same codes as
 * weir_parquet_numbers. */
int weir_parquet_extents(struct weir_parquet *parquet, int column, int64_t first, int64_t n,
                         struct weir_parquet_extent *extents, struct weir_err *err);

#endif
