/* Reads the members of a JSON object into a struct that a table of fields describes. */
#include "analyze/logs/log_read_priv.h"
#include "base/fields.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* No measurement in seconds or bytes is larger. Larger numbers would print hundreds of digits. */
static const double number_limit = 1e15;

static void value_error(struct weir_log_at *at, const char *key, const char *what)
{
    weir_err_set(at->err, -EBADMSG, "line %" PRIu64 ": \"%s\" %s", at->line, key, what);
    at->failed = true;
}

double weir_log_double(struct weir_log_at *at, const json_t *object, const char *key, double missing)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return missing;
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= -number_limit && number <= number_limit)) {
        value_error(at, key, "is not a number, or is too large");
        return missing;
    }
    return number;
}

int64_t weir_log_integer(struct weir_log_at *at, const json_t *object, const char *key, int64_t min, int64_t max)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max) {
        value_error(at, key, "is not an integer, or is out of range");
        return 0;
    }
    return json_integer_value(value);
}

int weir_log_int(struct weir_log_at *at, const json_t *object, const char *key)
{
    return (int)weir_log_integer(at, object, key, INT_MIN, INT_MAX);
}

bool weir_log_bool(struct weir_log_at *at, const json_t *object, const char *key, bool missing)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        return missing;
    if (!json_is_boolean(value))
        value_error(at, key, "is neither true nor false");
    return json_is_true(value);
}

void weir_log_text(struct weir_log_at *at, const json_t *object, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(object, key));
    if (!value) {
        value_error(at, key, "is missing, or is not a string");
        return;
    }
    snprintf(text, size, "%s", value);
    weir_text_printable(text);
}

const json_t *weir_log_array(struct weir_log_at *at, const json_t *object, const char *key, size_t max)
{
    const json_t *array = json_object_get(object, key);
    if (!array)
        return NULL;
    if (!json_is_array(array) || json_array_size(array) > max) {
        value_error(at, key, "is not a list, or is too long");
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!json_is_object(json_array_get(array, i))) {
            value_error(at, key, "contains an element that is not an object");
            return NULL;
        }
    }
    return array;
}

static double read_double(struct weir_log_at *at, const json_t *object, const struct weir_field *field)
{
    double missing = field->flags & WEIR_FIELD_KNOWN ? -1 : field->flags & WEIR_FIELD_NAN ? NAN : 0;
    if (field->older)
        missing = weir_log_double(at, object, field->older, missing);
    return weir_log_double(at, object, field->key, missing);
}

static void read_name(struct weir_log_at *at, const json_t *object, const struct weir_field *field, char *member)
{
    char text[64] = "";
    if (field->flags & WEIR_FIELD_OPTIONAL && !json_is_string(json_object_get(object, field->key)))
        return;
    weir_log_text(at, object, field->key, text, sizeof text);
    for (int value = 0; value < field->names; value++) {
        const char *name = field->name(value);
        if (!name || strcmp(name, text) != 0)
            continue;
        if (field->size == sizeof(bool))
            memcpy(member, &(bool){value}, sizeof(bool));
        else
            memcpy(member, &value, sizeof value);
        return;
    }
    if (field->flags & WEIR_FIELD_STRICT)
        value_error(at, field->key, "is not one of the names in docs/internals/log-format.md");
}

static void set_present(const struct weir_field *field, void *to, bool present)
{
    if (field->present_size == sizeof(bool)) /* members of other types show by their value whether they are present */
        memcpy((char *)to + field->present, &present, sizeof present);
}

static void read_array(struct weir_log_at *at, const json_t *object, const struct weir_field *field, void *to)
{
    const json_t *array = weir_log_array(at, object, field->key, (size_t)field->max);
    char *element = (char *)to + field->offset;
    int n = (int)json_array_size(array);
    if (field->flags & WEIR_FIELD_OWNED) {
        char *owned = n > 0 ? calloc((size_t)n, field->size) : NULL;
        if (n > 0 && !owned) {
            weir_err_set(at->err, -ENOMEM, "line %" PRIu64 ": out of memory", at->line);
            at->failed = true;
            return;
        }
        memcpy(element, &owned, sizeof owned);
        element = owned;
    }
    memcpy((char *)to + field->count, &n, sizeof n);
    for (int i = 0; i < n; i++, element += field->size)
        weir_log_fields(at, json_array_get(array, (size_t)i), field->inner, element);
}

static void read_number(struct weir_log_at *at, const json_t *object, const struct weir_field *field, char *member)
{
    bool small = field->flags & WEIR_FIELD_SMALL;
    int64_t min = field->type == WEIR_FIELD_INT && !small ? INT_MIN : 0;
    int64_t max = small ? WEIR_FIELD_SMALL_MAX : field->type == WEIR_FIELD_COUNT ? INT64_MAX : INT_MAX;
    int64_t value = weir_log_integer(at, object, field->key, min, max);
    if (field->type == WEIR_FIELD_INT)
        memcpy(member, &(int){(int)value}, sizeof(int));
    else
        memcpy(member, &value, sizeof value);
}

static void read_inner(struct weir_log_at *at, const json_t *object, const struct weir_field *field, void *to)
{
    const json_t *from = object;
    if (field->type == WEIR_FIELD_OBJECT)
        from = json_object_get(object, field->key);
    bool present =
        field->type == WEIR_FIELD_OBJECT ? from != NULL : json_object_get(object, field->inner->fields[0].key) != NULL;
    set_present(field, to, present);
    weir_log_fields(at, from, field->inner, (char *)to + field->offset);
}

static void read_field(struct weir_log_at *at, const json_t *object, const struct weir_field *field, void *to)
{
    char *member = (char *)to + field->offset;
    bool optional = field->flags & WEIR_FIELD_OPTIONAL;
    switch (field->type) {
    case WEIR_FIELD_DOUBLE:
        memcpy(member, &(double){read_double(at, object, field)}, sizeof(double));
        break;
    case WEIR_FIELD_COUNT:
    case WEIR_FIELD_INT:
    case WEIR_FIELD_INDEX:
        read_number(at, object, field, member);
        break;
    case WEIR_FIELD_BOOL:
        memcpy(member, &(bool){weir_log_bool(at, object, field->key, field->flags & WEIR_FIELD_TRUE)}, sizeof(bool));
        break;
    case WEIR_FIELD_TEXT:
        if (object && (!optional || json_is_string(json_object_get(object, field->key))))
            weir_log_text(at, object, field->key, member, field->size);
        break;
    case WEIR_FIELD_NAME:
        if (object)
            read_name(at, object, field, member);
        break;
    case WEIR_FIELD_STRING:
    case WEIR_FIELD_DERIVED:
    case WEIR_FIELD_WRITTEN:
    case WEIR_FIELD_CELL:
        break; /* not read */
    case WEIR_FIELD_OBJECT:
    case WEIR_FIELD_GROUP:
        read_inner(at, object, field, to);
        break;
    case WEIR_FIELD_ARRAY:
        read_array(at, object, field, to);
        break;
    }
}

void weir_log_fields(struct weir_log_at *at, const json_t *object, const struct weir_fields *fields, void *to)
{
    for (int i = 0; i < fields->n; i++)
        if (!weir_field_is_column(&fields->fields[i]))
            read_field(at, object, &fields->fields[i], to);
}
