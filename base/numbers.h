/* numbers.h: arrays of numbers in the types that files hold. No call keeps what it is given; any thread. */
#ifndef WEIR_BASE_NUMBERS_H
#define WEIR_BASE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the machine's byte order. */
enum weir_number_type {
    WEIR_F32,
    WEIR_F64,
    WEIR_I8,
    WEIR_I16,
    WEIR_I32,
    WEIR_I64,
    WEIR_U8,
    WEIR_U16,
    WEIR_U32,
    WEIR_U64,
    WEIR_NUMBER_TYPES
};

size_t weir_number_bytes(enum weir_number_type type);
/* As numpy calls it: "float32". */
const char *weir_number_name(enum weir_number_type type);
/* -1 = no such type. */
int weir_number_from_name(const char *name);

/* The smallest type that both fit into by their ranges; float64 where none does. */
enum weir_number_type weir_number_common(enum weir_number_type a, enum weir_number_type b);

/* Values of n numbers as another type, rounded to the nearest; true when none of them changed by that (NaN stays NaN).
 * in and out do not overlap. */
bool weir_numbers_convert(enum weir_number_type from, const void *in, size_t n, enum weir_number_type to, void *out);

#endif
