#include "base/numbers.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(LDBL_MANT_DIG >= 64, "a long double holds every number of every type");

static const struct {
    const char *name, *code;
    unsigned bytes;
    bool is_float, is_signed;
} types[WEIR_NUMBER_TYPES] = {
    [WEIR_F32] = {"float32", "<f4", 4, true, true},  [WEIR_F64] = {"float64", "<f8", 8, true, true},
    [WEIR_I8] = {"int8", "|i1", 1, false, true},     [WEIR_I16] = {"int16", "<i2", 2, false, true},
    [WEIR_I32] = {"int32", "<i4", 4, false, true},   [WEIR_I64] = {"int64", "<i8", 8, false, true},
    [WEIR_U8] = {"uint8", "|u1", 1, false, false},   [WEIR_U16] = {"uint16", "<u2", 2, false, false},
    [WEIR_U32] = {"uint32", "<u4", 4, false, false}, [WEIR_U64] = {"uint64", "<u8", 8, false, false},
};

size_t weir_number_bytes(enum weir_number_type type)
{
    return types[type].bytes;
}

const char *weir_number_name(enum weir_number_type type)
{
    return types[type].name;
}

const char *weir_number_code(enum weir_number_type type)
{
    return types[type].code;
}

int weir_number_from_name(const char *name)
{
    for (int i = 0; i < WEIR_NUMBER_TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return i;
    return -1;
}

/* float32 represents all 16-bit integers exactly, and float64 all 32-bit ones. No type represents both floats and
 * 64-bit integers exactly, so float64 is used. */
static enum weir_number_type with_float(enum weir_number_type number, enum weir_number_type integer)
{
    return number == WEIR_F32 && types[integer].bytes <= 2 ? WEIR_F32 : WEIR_F64;
}

static enum weir_number_type signed_of(unsigned bytes)
{
    return bytes == 2 ? WEIR_I16 : bytes == 4 ? WEIR_I32 : bytes == 8 ? WEIR_I64 : WEIR_F64;
}

enum weir_number_type weir_number_common(enum weir_number_type a, enum weir_number_type b)
{
    if (a == b)
        return a;
    if (types[a].is_float && types[b].is_float)
        return WEIR_F64;
    if (types[a].is_float || types[b].is_float)
        return types[a].is_float ? with_float(a, b) : with_float(b, a);
    if (types[a].is_signed == types[b].is_signed)
        return types[a].bytes > types[b].bytes ? a : b;
    unsigned of_signed = types[types[a].is_signed ? a : b].bytes;
    unsigned of_unsigned = types[types[a].is_signed ? b : a].bytes;
    return signed_of(of_signed > of_unsigned ? of_signed : 2 * of_unsigned);
}

/* ---- one number ---- */

union number {
    float f32;
    double f64;
    int64_t whole;
    uint64_t natural;
};

static long double load(enum weir_number_type type, const void *at)
{
    union number number = {0};
    unsigned bytes = types[type].bytes;
    memcpy(&number, at, bytes);
    if (types[type].is_float)
        return type == WEIR_F32 ? (long double)number.f32 : (long double)number.f64;
    if (!types[type].is_signed)
        return (long double)number.natural;
    unsigned above = 64 - 8 * bytes;
    return (long double)((int64_t)(number.natural << above) >> above);
}

/* Integers are rounded to nearest and clamped to the type's range. NaN becomes 0. */
static void store(enum weir_number_type type, long double value, void *at)
{
    union number number = {0};
    unsigned bytes = types[type].bytes;
    if (type == WEIR_F32)
        number.f32 = (float)value;
    else if (type == WEIR_F64)
        number.f64 = (double)value;
    else {
        long double top = ldexpl(1, (int)(8 * bytes) - types[type].is_signed);
        long double bottom = types[type].is_signed ? -top : 0;
        value = isnan(value) ? 0 : rintl(value);
        value = value < bottom ? bottom : value > top - 1 ? top - 1 : value;
        if (types[type].is_signed)
            number.whole = (int64_t)value;
        else
            number.natural = (uint64_t)value;
    }
    memcpy(at, &number, bytes);
}

bool weir_numbers_convert(enum weir_number_type from, const void *in, size_t n, enum weir_number_type to, void *out)
{
    size_t from_bytes = types[from].bytes, to_bytes = types[to].bytes;
    bool same = true;
    if (n > 0 && from == to)
        memcpy(out, in, n * from_bytes);
    for (size_t i = 0; i < n && from != to; i++) {
        long double value = load(from, (const char *)in + i * from_bytes);
        store(to, value, (char *)out + i * to_bytes);
        long double now = load(to, (const char *)out + i * to_bytes);
        same = same && (now == value || (isnan(now) && isnan(value)));
    }
    return same;
}

#define COMPARE(name, type)                                                                                            \
    int name(const void *a, const void *b)                                                                             \
    {                                                                                                                  \
        const type left = *(const type *)a, right = *(const type *)b;                                                  \
        return (left > right) - (left < right);                                                                        \
    }
COMPARE(weir_compare_double, double)
COMPARE(weir_compare_int, int)
COMPARE(weir_compare_int64, int64_t)
COMPARE(weir_compare_uint64, uint64_t)

double weir_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, weir_compare_double);
    return n == 0 ? 0 : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double weir_percent(double fraction)
{
    return 100 * fmin(fmax(fraction, 0), 1);
}
