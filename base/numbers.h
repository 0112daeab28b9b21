/* numbers.h: arrays of numbers in the types that files use. All functions are thread-safe. */
#ifndef WEIR_BASE_NUMBERS_H
#define WEIR_BASE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers have the machine's byte order. */
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
/* Returns NumPy's name of the type, such as "float32". */
const char *weir_number_name(enum weir_number_type type);
/* Returns NumPy's code of the type in little-endian order, such as "<f4". */
const char *weir_number_code(enum weir_number_type type);
/* Returns the type with this name, or -1 if the name is unknown. */
int weir_number_from_name(const char *name);

/* Returns the smallest type that represents all values of both types exactly; float64 if none exists. */
enum weir_number_type weir_number_common(enum weir_number_type a, enum weir_number_type b);

/* Converts n numbers to another type, rounding to nearest and clamping to an integer type's range. Returns true if no
 * value was changed (NaN converted to NaN is unchanged). in and out must not overlap. */
bool weir_numbers_convert(enum weir_number_type from, const void *in, size_t n, enum weir_number_type to, void *out);

/* For qsort and bsearch: ascending order. */
int weir_compare_double(const void *a, const void *b);
int weir_compare_int(const void *a, const void *b);
int weir_compare_int64(const void *a, const void *b);
int weir_compare_uint64(const void *a, const void *b);

/* Sorts n numbers, and returns their median: the mean of the middle two if n is even, 0 if n is 0. */
double weir_median(double *values, size_t n);

/* Returns a fraction in percent, clamped to 0..100. */
double weir_percent(double fraction);

#endif
