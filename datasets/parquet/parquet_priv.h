/* parquet_priv.h: the schema and the row groups of an open file, and the contents of pages. */
#ifndef WEIR_DATASETS_PARQUET_PARQUET_PRIV_H
#define WEIR_DATASETS_PARQUET_PARQUET_PRIV_H

#include "datasets/parquet/parquet.h"
#include "datasets/parquet/thrift.h"
#include "origin/source.h"

/* Physical types. */
enum {
    WEIR_PHYSICAL_BOOLEAN,
    WEIR_PHYSICAL_INT32,
    WEIR_PHYSICAL_INT64,
    WEIR_PHYSICAL_INT96,
    WEIR_PHYSICAL_FLOAT,
    WEIR_PHYSICAL_DOUBLE,
    WEIR_PHYSICAL_BYTE_ARRAY,
    WEIR_PHYSICAL_FIXED,
};

enum { WEIR_PARQUET_COLUMNS_MAX = 20000, WEIR_PAGE_MAX = 1 << 30, WEIR_PAGE_VALUES_MAX = 1 << 26 };

struct weir_parquet_leaf {
    struct weir_parquet_column about;
    char *name, *leaf; /* owned; consecutive columns of one top-level field share its name */
    int physical;
    int value_bytes; /* of a stored value; 0 = of variable size, or a type that cannot be read */
    bool is_half;    /* numbers are stored as float16 */
    int max_definition, max_repetition;
    int list_definition; /* definition level from which on a list has an element */
};

/* The pages of one column in one row group. */
struct weir_parquet_chunk {
    int codec;
    int64_t values;
    uint64_t offset, bytes; /* of all pages, inside the file */
};

struct weir_parquet_group {
    int64_t first, rows;
    struct weir_parquet_chunk *chunks; /* per column */
};

struct weir_zstd;

struct weir_parquet {
    struct weir_source *source;
    struct weir_file_id id;
    uint64_t file_bytes, stored_bytes; /* stored_bytes: without the holes of a sparse file */
    int64_t rows;
    int n_leaves;
    struct weir_parquet_leaf *leaves;
    int n_groups;
    struct weir_parquet_group *groups;
    struct weir_zstd *zstd; /* created on first use */
};

/* Parses the footer. Returns 0, or negative with err. */
int weir_parquet_parse_footer(struct weir_parquet *parquet, const uint8_t *bytes, size_t n, struct weir_err *err);

/* ---- integers of levels, dictionary indices and bools ---- */

struct weir_rle {
    const uint8_t *at, *end;
    int bits;              /* of an integer, 1 to 32 */
    uint32_t left, value;  /* of the current run */
    const uint8_t *packed; /* current run of packed integers; NULL = they are equal */
    uint32_t packed_at;
};

/* Store the first n integers. Return false if there are fewer, or one is larger than `most`. */
bool weir_rle_levels(struct weir_rle *rle, uint32_t n, uint32_t most, uint8_t *levels);
bool weir_rle_indices(struct weir_rle *rle, uint32_t n, uint32_t most, uint32_t *indices);
/* Stores n bits, least significant first, as bytes of 0 or 1. */
void weir_unpack_bits(const uint8_t *packed, uint32_t n, uint8_t *bits);

/* ---- pages ---- */

struct weir_page_bytes {
    const uint8_t *at;
    uint32_t length;
};

/* Bytes of a decompressed page that the file contains as they are. */
struct weir_page_piece {
    uint64_t offset; /* in the file */
    uint32_t at, n;  /* in the page */
};

/* A position from which a page compressed by Snappy can be decompressed without the bytes before it. */
struct weir_page_restart {
    uint64_t offset; /* in the file */
    uint32_t at;     /* in the page */
};

/* Values in decompressed bytes. */
struct weir_page_values {
    uint8_t *memory;               /* owned: the decompressed page */
    uint32_t n;                    /* number of values */
    const uint8_t *fixed;          /* values of fixed size; NULL if they are of variable size */
    struct weir_page_bytes *bytes; /* owned: values of variable size */
    /* Owned, in the order of the page; only if the reader locates values. */
    struct weir_page_piece *pieces;
    struct weir_page_restart *restarts;
    size_t n_pieces, n_restarts;
    uint64_t stored_end; /* end of the page in the file */
};

/* One data page: n entries, each with levels and, if its definition level is the maximum, a value. */
struct weir_page {
    uint32_t n;
    uint8_t *definitions, *repetitions; /* NULL: all are the maximum, or 0 */
    struct weir_page_values values;
    uint32_t *indices; /* per value, its index in the dictionary; NULL: the values are in the page */
};

/* Reads the pages of a chunk one after another. */
struct weir_page_reader {
    struct weir_parquet *parquet;
    const struct weir_parquet_leaf *leaf;
    struct weir_err *err;
    int codec;
    bool locates;     /* list the pieces of pages */
    uint64_t at, end; /* next page, and the end of the chunk */
    int64_t left;     /* entries of the pages that follow */
    uint8_t *window;  /* bytes of the file from window_at on */
    uint64_t window_at;
    size_t window_bytes, window_capacity;
    struct weir_page_values dictionary;
    struct weir_page page;
};

void weir_page_reader_open(struct weir_page_reader *reader, struct weir_parquet *parquet, int leaf,
                           const struct weir_parquet_chunk *chunk, struct weir_err *err);
void weir_page_reader_close(struct weir_page_reader *reader);
/* Reads the next data page. A page of at most `skip` entries of a column without lists is not decompressed; *skipped is
 * then its number of entries, otherwise 0. Returns 1, 0 after the last page, or negative with reader->err. */
int weir_page_next(struct weir_page_reader *reader, int64_t skip, uint32_t *skipped);

/* ---- values in the file ---- */

enum { WEIR_PARQUET_UNCOMPRESSED = 0, WEIR_PARQUET_SNAPPY = 1, WEIR_PARQUET_ZSTD = 6 };

/* Lists the pieces and the restarts of a page whose stored bytes are at `offset` of the file. at: position of the first
 * of them in the page. Returns 0, -EBADMSG or -ENOMEM. */
int weir_page_locate(struct weir_page_values *values, int codec, const uint8_t *stored, size_t n, uint64_t offset,
                     size_t at);
/* Returns the location of a value of variable size. */
struct weir_parquet_extent weir_page_extent(const struct weir_page_values *values, uint32_t value);

#endif
