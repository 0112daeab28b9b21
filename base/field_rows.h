/* field_rows.h: short names for the rows of a field table. Included by .c files only; S is the struct's type. */
#ifndef WEIR_BASE_FIELD_ROWS_H
#define WEIR_BASE_FIELD_ROWS_H

#include "base/fields.h"

#define PLAIN(key, member, ...)    WEIR_FIELD(S, key, member, 0, __VA_ARGS__)
#define KNOWN(key, member, ...)    WEIR_FIELD(S, key, member, WEIR_FIELD_KNOWN, __VA_ARGS__)
#define POSITIVE(key, member, ...) WEIR_FIELD(S, key, member, WEIR_FIELD_POSITIVE, __VA_ARGS__)
#define OMIT(key, member, ...)     WEIR_FIELD(S, key, member, WEIR_FIELD_OMIT, __VA_ARGS__)
#define OPTIONAL(key, member, ...) WEIR_FIELD(S, key, member, WEIR_FIELD_OPTIONAL, __VA_ARGS__)

/* The column of a row, such as PLAIN("p99_s", p99_s, TIME("p99", .priority = 3)). CELL is a column that has no key. */
#define COLUMN(text, ...)          .column = {.heading = (text), __VA_ARGS__}
#define PERCENT(text, digits, ...) COLUMN(text, .unit = WEIR_UNIT_PERCENT, .decimals = (digits), __VA_ARGS__)
#define SECONDS(text, digits, ...) COLUMN(text, .suffix = "s", .decimals = (digits), __VA_ARGS__)
#define RATIO(text, ...)           COLUMN(text, .suffix = "x", .decimals = 2, __VA_ARGS__)
#define TIME(text, ...)            COLUMN(text, .unit = WEIR_UNIT_TIME, __VA_ARGS__)
#define SIZE(text, ...)            COLUMN(text, .unit = WEIR_UNIT_SIZE, __VA_ARGS__)
#define CELL(text, f, ...)         ROW_(.type = WEIR_FIELD_CELL, COLUMN(text, .print = (f), __VA_ARGS__))
#define CELL_AT(text, f, member, ...)                                                                                  \
    ROW_(.type = WEIR_FIELD_CELL, .offset = offsetof(S, member), COLUMN(text, .print = (f), __VA_ARGS__))

#define ROW_(...)                                                                                                      \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define IF_(there) WEIR_FIELD_PRESENT(S, there)
/* Objects of members of S: always, only if a member is set, and null unless it is set. */
#define OBJECT(text, table)           ROW_(.key = (text), .type = WEIR_FIELD_OBJECT, .inner = &(table))
#define OBJECT_IF(text, table, there) ROW_(.key = (text), .type = WEIR_FIELD_OBJECT, .inner = &(table), IF_(there))
#define OBJECT_OR_NULL(text, table, there)                                                                             \
    ROW_(.key = (text), .type = WEIR_FIELD_OBJECT, .inner = &(table), .flags = WEIR_FIELD_NULL, IF_(there))
/* A member that is a struct, as an object. `there` is one of its members. */
#define MEMBER(text, table, member)                                                                                    \
    ROW_(.key = (text), .type = WEIR_FIELD_OBJECT, .inner = &(table), WEIR_FIELD_AT(S, member))
#define MEMBER_IF(text, table, member, there)                                                                          \
    ROW_(.key = (text), .type = WEIR_FIELD_OBJECT, .inner = &(table), WEIR_FIELD_AT(S, member), IF_(member.there))
/* An array of structs; `length` is an int. */
#define ARRAY(text, table, member, length)                                                                             \
    ROW_(.key = (text), .type = WEIR_FIELD_ARRAY, .inner = &(table), .offset = offsetof(S, member),                    \
         .size = sizeof(((S *)0)->member[0]), .count = offsetof(S, length),                                            \
         .max = sizeof(((S *)0)->member) / sizeof(((S *)0)->member[0]))
/* An enum or bool by its name, a number that a function computes from S, and members that a function writes from a
 * member. */
#define NAME(text, member, f, ...)                                                                                     \
    ROW_(.key = (text), .type = WEIR_FIELD_NAME, WEIR_FIELD_AT(S, member), .name = (f), __VA_ARGS__)
#define DERIVED(text, f, ...) ROW_(.key = (text), .type = WEIR_FIELD_DERIVED, .derived = (f), __VA_ARGS__)
#define DERIVED_KNOWN(text, f, ...)                                                                                    \
    ROW_(.key = (text), .type = WEIR_FIELD_DERIVED, .flags = WEIR_FIELD_KNOWN, .derived = (f), __VA_ARGS__)
#define WRITTEN(f)            ROW_(.type = WEIR_FIELD_WRITTEN, .write = (f))
#define WRITTEN_AT(f, member) ROW_(.type = WEIR_FIELD_WRITTEN, .write = (f), .offset = offsetof(S, member))

#endif
