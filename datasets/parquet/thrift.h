/* thrift.h: reads structures in the compact protocol of Apache Thrift, which Parquet uses for its metadata. Fields that
 * are not wanted are skipped. After an error, all functions return 0 and the reader stays at its end. */
#ifndef WEIR_DATASETS_PARQUET_THRIFT_H
#define WEIR_DATASETS_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_thrift {
    const uint8_t *at, *end;
    bool is_bad; /* the bytes end early, or are not Thrift */
    int depth;
};

/* Types of fields. */
enum {
    WEIR_THRIFT_TRUE = 1,
    WEIR_THRIFT_FALSE,
    WEIR_THRIFT_BYTE,
    WEIR_THRIFT_I16,
    WEIR_THRIFT_I32,
    WEIR_THRIFT_I64,
    WEIR_THRIFT_DOUBLE,
    WEIR_THRIFT_BINARY,
    WEIR_THRIFT_LIST,
    WEIR_THRIFT_SET,
    WEIR_THRIFT_MAP,
    WEIR_THRIFT_STRUCT,
};

/* Reads the header of the next field of a structure: *id is the previous field's id (0 before the first), and becomes
 * the field's. Returns its type, or 0 at the end of the structure. */
int weir_thrift_field(struct weir_thrift *t, int *id);
/* Reads an integer of any width. */
int64_t weir_thrift_integer(struct weir_thrift *t);
/* Returns the bytes of a string, which belong to the reader's memory; NULL if it is malformed. */
const uint8_t *weir_thrift_bytes(struct weir_thrift *t, size_t *length);
/* Reads the header of a list. Returns the number of its elements, each of which takes at least one byte. */
uint32_t weir_thrift_list(struct weir_thrift *t, int *type);
void weir_thrift_skip(struct weir_thrift *t, int type);

#endif
