/* fields.h: tables that map the members of structs to the members of JSON objects. The writer (weir_fields_json) and
 * the reader of logs (analyze/logs/log_fields.c) share them. */
#ifndef WEIR_BASE_FIELDS_H
#define WEIR_BASE_FIELDS_H

#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_field_type {
    WEIR_FIELD_DOUBLE,
    WEIR_FIELD_COUNT, /* uint64_t */
    WEIR_FIELD_INT,
    WEIR_FIELD_INDEX, /* int64_t; 0 .. INT_MAX when read */
    WEIR_FIELD_BOOL,
    WEIR_FIELD_TEXT,    /* char[size] */
    WEIR_FIELD_NAME,    /* an enum or bool, written as name(value); value < names */
    WEIR_FIELD_DERIVED, /* written only */
    WEIR_FIELD_OBJECT,
    WEIR_FIELD_GROUP, /* members of inner, in the enclosing object */
    WEIR_FIELD_ARRAY, /* of objects */
};

enum {
    WEIR_FIELD_KNOWN = 1,     /* double: -1 = unknown, null in JSON */
    WEIR_FIELD_NAN = 2,       /* double: NAN if missing */
    WEIR_FIELD_OMIT = 4,      /* not written while 0, or unknown */
    WEIR_FIELD_TRUE = 8,      /* bool: true if missing */
    WEIR_FIELD_OPTIONAL = 16, /* text or name: may be missing; empty = null in JSON */
    WEIR_FIELD_SMALL = 32,    /* int: 0 .. WEIR_FIELD_SMALL_MAX when read */
    WEIR_FIELD_STRICT = 64,   /* name: others are an error when read; else they leave the member alone */
    WEIR_FIELD_SHOWN = 128,   /* text: control characters are replaced when written */
    WEIR_FIELD_OWNED = 256,   /* array: the member is a pointer, allocated with calloc when read */
};

enum { WEIR_FIELD_SMALL_MAX = 1 << 20 };

struct weir_field {
    const char *key;
    enum weir_field_type type;
    unsigned flags;
    size_t offset, size;
    const char *older;               /* the member's previous key, also written and accepted; NULL = none */
    const struct weir_fields *inner; /* of objects, groups and array elements */
    size_t present, present_size;    /* bytes in the outer struct (of arrays: in the element) that are all 0 where the
                                        object is missing; a bool is set when it is read. Size 0 = always present */
    size_t count;                    /* of arrays: offset of their int length */
    int max;                         /* of arrays */
    const char *(*name)(int value);
    int names;
    double (*derived)(const void *object); /* of the struct at offset */
};

struct weir_fields {
    const struct weir_field *fields;
    int n;
};

/* The type is that of the member. */
#define WEIR_FIELD_TYPE(s, member)                                                                                     \
    _Generic(((s *)0)->member,                                                                                         \
        double: WEIR_FIELD_DOUBLE,                                                                                     \
        uint64_t: WEIR_FIELD_COUNT,                                                                                    \
        int: WEIR_FIELD_INT,                                                                                           \
        int64_t: WEIR_FIELD_INDEX,                                                                                     \
        bool: WEIR_FIELD_BOOL,                                                                                         \
        char *: WEIR_FIELD_TEXT)
#define WEIR_FIELD_AT(s, member)      .offset = offsetof(s, member), .size = sizeof(((s *)0)->member)
#define WEIR_FIELD_PRESENT(s, member) .present = offsetof(s, member), .present_size = sizeof(((s *)0)->member)
#define WEIR_FIELD(s, text, member, how)                                                                               \
    {                                                                                                                  \
        .key = (text), .type = WEIR_FIELD_TYPE(s, member), .flags = (how), WEIR_FIELD_AT(s, member)                    \
    }
/* Defines NAME, a table of the fields in array. */
#define WEIR_FIELDS(name, array) const struct weir_fields name = {array, sizeof(array) / sizeof *(array)}

/* Whether the bytes at offset are not all 0. */
bool weir_field_is_set(const void *object, size_t offset, size_t size);
/* The value of a NAME field. */
int weir_field_name_value(const struct weir_field *field, const void *object);
/* Writes the struct's members into the open object. */
void weir_fields_json(struct weir_json *json, const struct weir_fields *fields, const void *object);

#endif
