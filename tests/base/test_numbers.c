/* Conversion between number types, arrays that grow, and unknown members of JSON. */
#include "base/field_rows.h"
#include "base/grow.h"
#include "base/numbers.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

Test(numbers, names)
{
    for (int i = 0; i < WEIR_NUMBER_TYPES; i++)
        cr_assert_eq(weir_number_from_name(weir_number_name((enum weir_number_type)i)), i);
    cr_assert_eq(weir_number_from_name("float16"), -1);
    cr_assert_eq(weir_number_bytes(WEIR_U16), 2);
}

Test(numbers, common_types)
{
    cr_assert_eq(weir_number_common(WEIR_F32, WEIR_F64), WEIR_F64);
    cr_assert_eq(weir_number_common(WEIR_F32, WEIR_I16), WEIR_F32);
    cr_assert_eq(weir_number_common(WEIR_U32, WEIR_F32), WEIR_F64);
    cr_assert_eq(weir_number_common(WEIR_I8, WEIR_I32), WEIR_I32);
    cr_assert_eq(weir_number_common(WEIR_I8, WEIR_U8), WEIR_I16);
    cr_assert_eq(weir_number_common(WEIR_U8, WEIR_I64), WEIR_I64);
    cr_assert_eq(weir_number_common(WEIR_U32, WEIR_I16), WEIR_I64);
    cr_assert_eq(weir_number_common(WEIR_I64, WEIR_U64), WEIR_F64);
}

/* Values that fit are unchanged by the conversion, and the return value reports whether all of them fit. */
Test(numbers, conversion)
{
    const double in[] = {0, -1, 0.1, 255, 1e300, NAN};
    float floats[6];
    cr_assert_not(weir_numbers_convert(WEIR_F64, in, 6, WEIR_F32, floats));
    cr_assert_eq(floats[2], 0.1F);
    cr_assert(isinf(floats[4]) && isnan(floats[5]));
    cr_assert(weir_numbers_convert(WEIR_F64, in, 2, WEIR_F32, floats));
    uint8_t bytes[6];
    cr_assert_not(weir_numbers_convert(WEIR_F64, in, 6, WEIR_U8, bytes));
    const uint8_t nearest[] = {0, 0, 0, 255, 255, 0};
    cr_assert_eq(memcmp(bytes, nearest, sizeof nearest), 0);
    const int64_t wide[] = {INT64_MIN, -1, INT64_MAX, (int64_t)1 << 53, ((int64_t)1 << 53) + 1};
    double doubles[5];
    cr_assert(weir_numbers_convert(WEIR_I64, wide, 2, WEIR_F64, doubles));
    cr_assert_eq(doubles[0], -0x1p63);
    cr_assert_not(weir_numbers_convert(WEIR_I64, wide + 4, 1, WEIR_F64, doubles));
    cr_assert(weir_numbers_convert(WEIR_I64, wide + 3, 1, WEIR_F64, doubles));
    int16_t narrow[5];
    cr_assert_not(weir_numbers_convert(WEIR_I64, wide, 5, WEIR_I16, narrow));
    cr_assert(narrow[0] == INT16_MIN && narrow[1] == -1 && narrow[2] == INT16_MAX);
    const uint64_t widest[] = {UINT64_MAX};
    uint64_t again;
    double rounded;
    cr_assert_not(weir_numbers_convert(WEIR_U64, widest, 1, WEIR_F64, &rounded));
    cr_assert_not(weir_numbers_convert(WEIR_F64, &rounded, 1, WEIR_U64, &again), "2^64 does not fit");
    cr_assert_eq(again, UINT64_MAX);
    const int8_t small[] = {-128, 127};
    int32_t larger[2];
    cr_assert(weir_numbers_convert(WEIR_I8, small, 2, WEIR_I32, larger));
    cr_assert(larger[0] == -128 && larger[1] == 127);
}

Test(grow, elements_stay_and_there_is_room_for_one_more)
{
    uint64_t *at = NULL;
    size_t n = 0;
    for (int round = 0; round < 3; round++) {
        while (n < 1000) {
            cr_assert(weir_grow(&at, n, sizeof *at));
            cr_assert_geq(malloc_usable_size(at), (n + 1) * sizeof *at);
            at[n] = n;
            n++;
        }
        for (size_t i = 0; i < n; i++)
            cr_assert_eq(at[i], i);
        n = (size_t[]){16, 0, 700}[round]; /* elements left for the next round */
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* sanitizers stop the program instead */
    uint64_t *before = at;
    cr_assert_not(weir_grow(&at, (size_t)1 << 62, 1), "the size is too large");
    cr_assert(at == before && at[0] == 0, "the array is unchanged");
#endif
    free(at);
}

Test(numbers, the_median_of_an_even_number_is_the_mean_of_the_middle_two)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 8, 2};
    cr_assert_eq(weir_median(odd, 3), 2);
    cr_assert_eq(weir_median(even, 4), 3);
    cr_assert_eq(weir_median(even, 0), 0);
}

Test(numbers, a_percentage_is_within_0_and_100)
{
    cr_assert_eq(weir_percent(-0.5), 0);
    cr_assert_eq(weir_percent(0.25), 25);
    cr_assert_eq(weir_percent(1.5), 100);
}

/* ---- numbers in JSON (base/fields.h) ---- */

#define S struct figures
struct figures {
    int known, omitted;
    double positive, share;
    uint64_t bytes;
    const char *name;
    bool has_part;
    int part;
};

static double half(const void *figures)
{
    return ((const struct figures *)figures)->share / 2;
}

static void put_twice(struct weir_json *json, const void *part)
{
    weir_json_int(json, "twice", 2 * *(const int *)part);
}

static const struct weir_field part_rows[] = {
    PLAIN("part", part),
    WRITTEN_AT(put_twice, part),
};
static WEIR_FIELDS(part_fields, part_rows);
static const struct weir_field figure_rows[] = {
    KNOWN("known", known),
    OMIT("omitted", omitted),
    POSITIVE("positive", positive),
    POSITIVE("bytes", bytes),
    DERIVED_KNOWN("half", half),
    OPTIONAL("name", name),
    OBJECT_OR_NULL("null", part_fields, has_part),
    OBJECT_IF("object", part_fields, has_part),
};
static WEIR_FIELDS(figure_fields, figure_rows);
#undef S

static void check_json(const struct figures *figures, const char *wanted)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct weir_json json;
    weir_json_open(&json, out, false);
    weir_fields_array(&json, NULL, &figure_fields, figures, figures ? 1 : 0, sizeof *figures);
    weir_fields_object(&json, NULL, &part_fields, NULL);
    fclose(out);
    cr_assert_str_eq(text, wanted);
    free(text);
}

Test(numbers, unknown_members_are_null_or_left_out)
{
    struct figures figures = {.known = -1, .share = -1, .name = ""};
    check_json(&figures,
               "[{\"known\":null,\"positive\":null,\"bytes\":null,\"half\":null,\"name\":null,\"null\":null}],null");
    figures = (struct figures){
        .omitted = 2, .positive = 0.5, .share = 1, .bytes = 1u << 30, .name = "a", .has_part = true, .part = 3};
    check_json(&figures, "[{\"known\":0,\"omitted\":2,\"positive\":0.5,\"bytes\":1073741824,\"half\":0.5,"
                         "\"name\":\"a\",\"null\":{\"part\":3,\"twice\":6},\"object\":{\"part\":3,\"twice\":6}}],null");
}
