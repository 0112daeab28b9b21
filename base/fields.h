/* fields.h: tables that map the members of structs to the members of JSON objects and to the columns of tables. The
 * writers (weir_fields_json, weir_table_row) and the log reader (analyze/logs/log_fields_read.c) share them. */
#ifndef WEIR_BASE_FIELDS_H
#define WEIR_BASE_FIELDS_H

#include "base/table.h"
#include "weir/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Version of the objects that --json prints: the schema of all commands. Incremented when a member is removed or
 * changes its meaning, but not for new members. */
enum { WEIR_JSON_SCHEMA = 1 };

enum weir_field_type {
    WEIR_FIELD_DOUBLE,
    WEIR_FIELD_COUNT, /* uint64_t */
    WEIR_FIELD_INT,
    WEIR_FIELD_INDEX, /* int64_t; the reader accepts 0 .. INT_MAX */
    WEIR_FIELD_BOOL,
    WEIR_FIELD_TEXT,    /* char[size] */
    WEIR_FIELD_STRING,  /* const char *; NULL is null in JSON; not read */
    WEIR_FIELD_NAME,    /* an enum or bool, written as the string name(value); values are below names */
    WEIR_FIELD_DERIVED, /* computed when written; not read */
    WEIR_FIELD_WRITTEN, /* members that a function writes; not read */
    WEIR_FIELD_OBJECT,
    WEIR_FIELD_GROUP, /* a struct whose members are written into the enclosing object */
    WEIR_FIELD_ARRAY, /* an array of objects */
    WEIR_FIELD_CELL,  /* a column that a function prints, without a key */
};

enum {
    WEIR_FIELD_KNOWN = 1,     /* number: -1 means unknown, and is null in JSON */
    WEIR_FIELD_NAN = 2,       /* double: NAN if missing in the JSON */
    WEIR_FIELD_OMIT = 4,      /* not written if 0, unknown or an empty string */
    WEIR_FIELD_TRUE = 8,      /* bool: true if missing in the JSON */
    WEIR_FIELD_OPTIONAL = 16, /* string or name: may be missing; an empty string is null in JSON */
    WEIR_FIELD_SMALL = 32,    /* int: the reader accepts 0 .. WEIR_FIELD_SMALL_MAX */
    WEIR_FIELD_STRICT = 64, /* name: an unknown name is an error when read; without this flag, the member is not set */
    WEIR_FIELD_SHOWN = 128, /* string: control characters are replaced when written */
    WEIR_FIELD_OWNED = 256, /* array: the member is a pointer, which the reader allocates with calloc */
    WEIR_FIELD_POSITIVE = 512, /* number: 0 means unknown, and is null in JSON */
    WEIR_FIELD_NULL = 1024,    /* object: null in JSON if missing */
};

enum { WEIR_FIELD_SMALL_MAX = 1 << 20 };

struct weir_field {
    const char *key;
    enum weir_field_type type;
    unsigned flags;
    size_t offset, size;
    const char *older;               /* previous key of the member, which is also written and accepted; NULL = none */
    const struct weir_fields *inner; /* fields of an object, of a group, or of an array's elements */
    /* Bytes in the outer struct (for arrays, in the element) that are all 0 if the object is missing. If they are a
     * bool, the reader sets it when the object exists. Size 0 = the object always exists. */
    size_t present, present_size;
    size_t count; /* arrays: offset of the int that contains their length */
    int max;      /* arrays: maximum length */
    const char *(*name)(int value);
    int names;
    double (*derived)(const void *object);                     /* computes a DERIVED field from the struct at offset */
    void (*write)(struct weir_json *json, const void *object); /* writes a WRITTEN field from the struct at offset */
    struct weir_column column;                                 /* in tables for people; also of members without a key */
};

struct weir_fields {
    const struct weir_field *fields;
    int n;
};

/* Selects the field type according to the member's C type. */
#define WEIR_FIELD_TYPE(s, member)                                                                                     \
    _Generic(((s *)0)->member,                                                                                         \
        double: WEIR_FIELD_DOUBLE,                                                                                     \
        uint64_t: WEIR_FIELD_COUNT,                                                                                    \
        int: WEIR_FIELD_INT,                                                                                           \
        int64_t: WEIR_FIELD_INDEX,                                                                                     \
        bool: WEIR_FIELD_BOOL,                                                                                         \
        const char *: WEIR_FIELD_STRING,                                                                               \
        char *: _Generic(&((s *)0)->member, char **: WEIR_FIELD_STRING, default: WEIR_FIELD_TEXT))
#define WEIR_FIELD_AT(s, member)      .offset = offsetof(s, member), .size = sizeof(((s *)0)->member)
#define WEIR_FIELD_PRESENT(s, member) .present = offsetof(s, member), .present_size = sizeof(((s *)0)->member)
/* The arguments after `how` initialise further members, such as the column. */
#define WEIR_FIELD(s, text, member, how, ...)                                                                          \
    {                                                                                                                  \
        .key = (text), .type = WEIR_FIELD_TYPE(s, member), .flags = (how), WEIR_FIELD_AT(s, member), __VA_ARGS__       \
    }
/* Defines the table `name`, which contains the fields in `array`. */
#define WEIR_FIELDS(name, array) const struct weir_fields name = {array, sizeof(array) / sizeof *(array)}

/* Returns true unless all bytes at offset are 0. Also returns true for size 0. */
bool weir_field_is_set(const void *object, size_t offset, size_t size);
/* Returns the value of a NAME field. */
int weir_field_name_value(const struct weir_field *field, const void *object);
/* Returns true if the field is only a column of tables, because it has no key. */
bool weir_field_is_column(const struct weir_field *field);
/* Reads the number of a DOUBLE, COUNT, INT, INDEX, BOOL or DERIVED field. Returns false for other types. */
bool weir_field_number(const struct weir_field *field, const void *object, double *value);
/* Returns the text of a TEXT, STRING or NAME field, NULL for other types. */
const char *weir_field_text(const struct weir_field *field, const void *object);
/* Write the struct's members into the open object, or as an object with this key (a NULL object is null), and n structs
 * of this size as an array. */
void weir_fields_json(struct weir_json *json, const struct weir_fields *fields, const void *object);
void weir_fields_object(struct weir_json *json, const char *key, const struct weir_fields *fields, const void *object);
void weir_fields_array(struct weir_json *json, const char *key, const struct weir_fields *fields, const void *elements,
                       int n, size_t size);
/* Writes the members of n structs of this size as lines of CSV, after a line with their keys. Unknown numbers are
 * empty. */
void weir_fields_csv(FILE *out, const struct weir_fields *fields, const void *elements, int n, size_t size);
/* Writes an array of at most n strings, which ends before a NULL. */
void weir_strings_json(struct weir_json *json, const char *key, char *const *strings, int n);

#endif
