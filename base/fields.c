#include "base/fields.h"

#include "base/text.h"

#include <string.h>

enum { SHOWN_MAX = 1024 };

bool weir_field_is_set(const void *object, size_t offset, size_t size)
{
    const char *bytes = (const char *)object + offset;
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return true;
    return size == 0;
}

int weir_field_name_value(const struct weir_field *field, const void *object)
{
    int value = 0;
    if (field->size == sizeof(bool))
        return *((const bool *)object + field->offset);
    memcpy(&value, (const char *)object + field->offset, sizeof value);
    return value;
}

static void write_text(struct weir_json *json, const struct weir_field *field, const char *text)
{
    char shown[SHOWN_MAX];
    if (field->flags & WEIR_FIELD_SHOWN) {
        snprintf(shown, sizeof shown, "%s", text);
        weir_text_printable(shown);
        text = shown;
    }
    weir_json_text(json, field->key, field->flags & WEIR_FIELD_OPTIONAL && text && !*text ? NULL : text);
}

/* Returns true if the number is unknown, which is written as null or not at all. */
static bool write_unknown(struct weir_json *json, const struct weir_field *field, const char *key, double value)
{
    bool known = field->flags & WEIR_FIELD_KNOWN;
    if (field->flags & WEIR_FIELD_OMIT && (known ? value < 0 : value <= 0))
        return true;
    if (!(known && value < 0) && !(field->flags & WEIR_FIELD_POSITIVE && value <= 0))
        return false;
    weir_json_null(json, key);
    return true;
}

static void write_double(struct weir_json *json, const struct weir_field *field, double value)
{
    for (const char *key = field->key; key; key = key == field->key ? field->older : NULL)
        if (!write_unknown(json, field, key, value))
            weir_json_double(json, key, value);
}

static void write_integer(struct weir_json *json, const struct weir_field *field, int64_t value)
{
    if (!write_unknown(json, field, field->key, (double)value))
        weir_json_int(json, field->key, value);
}

static void write_array(struct weir_json *json, const struct weir_field *field, const void *object)
{
    const char *element = (const char *)object + field->offset;
    int n;
    memcpy(&n, (const char *)object + field->count, sizeof n);
    if (field->flags & WEIR_FIELD_OWNED)
        memcpy(&element, (const void *)element, sizeof element);
    weir_json_array(json, field->key);
    for (int i = 0; i < n && i < field->max; i++, element += field->size)
        if (weir_field_is_set(element, field->present, field->present_size))
            weir_fields_object(json, NULL, field->inner, element);
    weir_json_end(json, ']');
}

static void write_field(struct weir_json *json, const struct weir_field *field, const void *object)
{
    const char *at = (const char *)object + field->offset;
    const void *value = at;
    /* An array's elements are tested one by one. */
    bool present = field->type != WEIR_FIELD_ARRAY && weir_field_is_set(object, field->present, field->present_size);
    switch (field->type) {
    case WEIR_FIELD_DOUBLE:
        write_double(json, field, *(const double *)value);
        break;
    case WEIR_FIELD_COUNT:
        if (!write_unknown(json, field, field->key, (double)*(const uint64_t *)value))
            weir_json_uint(json, field->key, *(const uint64_t *)value);
        break;
    case WEIR_FIELD_INT:
        write_integer(json, field, *(const int *)value);
        break;
    case WEIR_FIELD_INDEX:
        write_integer(json, field, *(const int64_t *)value);
        break;
    case WEIR_FIELD_BOOL:
        weir_json_bool(json, field->key, *(const bool *)value);
        break;
    case WEIR_FIELD_TEXT:
        write_text(json, field, at);
        break;
    case WEIR_FIELD_STRING:
        write_text(json, field, *(const char *const *)value);
        break;
    case WEIR_FIELD_NAME:
        weir_json_text(json, field->key, field->name(weir_field_name_value(field, object)));
        break;
    case WEIR_FIELD_DERIVED:
        write_double(json, field, field->derived(at));
        break;
    case WEIR_FIELD_WRITTEN:
        field->write(json, at);
        break;
    case WEIR_FIELD_OBJECT:
        if (present || field->flags & WEIR_FIELD_NULL)
            weir_fields_object(json, field->key, field->inner, present ? at : NULL);
        break;
    case WEIR_FIELD_GROUP:
        if (present)
            weir_fields_json(json, field->inner, at);
        break;
    case WEIR_FIELD_ARRAY:
        write_array(json, field, object);
        break;
    }
}

void weir_fields_json(struct weir_json *json, const struct weir_fields *fields, const void *object)
{
    for (int i = 0; i < fields->n; i++)
        write_field(json, &fields->fields[i], object);
}

void weir_fields_object(struct weir_json *json, const char *key, const struct weir_fields *fields, const void *object)
{
    if (!object) {
        weir_json_null(json, key);
        return;
    }
    weir_json_object(json, key);
    weir_fields_json(json, fields, object);
    weir_json_end(json, '}');
}

void weir_fields_array(struct weir_json *json, const char *key, const struct weir_fields *fields, const void *elements,
                       int n, size_t size)
{
    weir_json_array(json, key);
    for (int i = 0; i < n; i++)
        weir_fields_object(json, NULL, fields, (const char *)elements + (size_t)i * size);
    weir_json_end(json, ']');
}

void weir_strings_json(struct weir_json *json, const char *key, char *const *strings, int n)
{
    weir_json_array(json, key);
    for (int i = 0; i < n && strings[i]; i++)
        weir_json_text(json, NULL, strings[i]);
    weir_json_end(json, ']');
}
