/* numbers.h: arrays of numbers in the types that files use. Any thread. */
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
/* NumPy's name: "float32". */
const char *weir_number_name(enum weir_number_type type);
/* -1 = unknown name. */
int weir_number_from_name(const char *name);

/* The smallest type whose range includes both; float64 if there is none. */
enum weir_number_type weir_number_common(enum weir_number_type a, enum weir_number_type b);

/* Converts n numbers to another type, rounding to nearest. Returns true if no value changed (NaN remains NaN). in and
 * out must not overlap. */
bool weir_numbers_convert(enum weir_number_type from, const void *in, size_t n, enum weir_number_type to, void *out);

#endif
