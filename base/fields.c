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
    if (field->flags & WEIR_FIELD_OMIT && (!text || !*text))
        return;
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

bool weir_field_is_column(const struct weir_field *field)
{
    return !field->key && field->type != WEIR_FIELD_GROUP && field->type != WEIR_FIELD_WRITTEN;
}

bool weir_field_number(const struct weir_field *field, const void *object, double *value)
{
    const void *at = (const char *)object + field->offset;
    switch (field->type) {
    case WEIR_FIELD_DOUBLE:
        *value = *(const double *)at;
        return true;
    case WEIR_FIELD_COUNT:
        *value = (double)*(const uint64_t *)at;
        return true;
    case WEIR_FIELD_INT:
        *value = *(const int *)at;
        return true;
    case WEIR_FIELD_INDEX:
        *value = (double)*(const int64_t *)at;
        return true;
    case WEIR_FIELD_BOOL:
        *value = *(const bool *)at;
        return true;
    case WEIR_FIELD_DERIVED:
        *value = field->derived(at);
        return true;
    default:
        return false;
    }
}

const char *weir_field_text(const struct weir_field *field, const void *object)
{
    const void *at = (const char *)object + field->offset;
    if (field->type == WEIR_FIELD_TEXT)
        return at;
    if (field->type == WEIR_FIELD_STRING)
        return *(const char *const *)at;
    return field->type == WEIR_FIELD_NAME ? field->name(weir_field_name_value(field, object)) : NULL;
}

static void write_number(struct weir_json *json, const struct weir_field *field, const void *object)
{
    const void *at = (const char *)object + field->offset;
    double value = 0;
    weir_field_number(field, object, &value);
    if (field->type == WEIR_FIELD_BOOL)
        weir_json_bool(json, field->key, *(const bool *)at);
    else if (field->type == WEIR_FIELD_DOUBLE || field->type == WEIR_FIELD_DERIVED)
        write_double(json, field, value);
    else if (write_unknown(json, field, field->key, value))
        return;
    else if (field->type == WEIR_FIELD_COUNT)
        weir_json_uint(json, field->key, *(const uint64_t *)at);
    else
        weir_json_int(json, field->key, field->type == WEIR_FIELD_INT ? *(const int *)at : *(const int64_t *)at);
}

static void write_field(struct weir_json *json, const struct weir_field *field, const void *object)
{
    const char *at = (const char *)object + field->offset;
    /* An array's elements are tested one by one. */
    bool present = field->type != WEIR_FIELD_ARRAY && weir_field_is_set(object, field->present, field->present_size);
    if (weir_field_is_column(field))
        return;
    switch (field->type) {
    case WEIR_FIELD_DOUBLE:
    case WEIR_FIELD_COUNT:
    case WEIR_FIELD_INT:
    case WEIR_FIELD_INDEX:
    case WEIR_FIELD_BOOL:
    case WEIR_FIELD_DERIVED:
        write_number(json, field, object);
        break;
    case WEIR_FIELD_TEXT:
    case WEIR_FIELD_STRING:
    case WEIR_FIELD_NAME:
        write_text(json, field, weir_field_text(field, object));
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
    case WEIR_FIELD_CELL:
        break; /* has no key */
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

static void write_csv(FILE *out, const struct weir_field *field, const void *object)
{
    const char *text = weir_field_text(field, object);
    double value;
    if (!weir_field_number(field, object, &value))
        weir_text_csv(out, text ? text : "");
    else if (value >= 0 && !(field->flags & WEIR_FIELD_POSITIVE && value <= 0))
        fprintf(out, "%.9g", value);
}

void weir_fields_csv(FILE *out, const struct weir_fields *fields, const void *elements, int n, size_t size)
{
    for (int i = 0; i < fields->n; i++)
        fprintf(out, "%s%s", i ? "," : "", fields->fields[i].key);
    for (int row = 0; row < n; row++)
        for (int i = 0; i < fields->n; i++) {
            putc(i ? ',' : '\n', out);
            write_csv(out, &fields->fields[i], (const char *)elements + (size_t)row * size);
        }
    putc('\n', out);
}

void weir_strings_json(struct weir_json *json, const char *key, char *const *strings, int n)
{
    weir_json_array(json, key);
    for (int i = 0; i < n && strings[i]; i++)
        weir_json_text(json, NULL, strings[i]);
    weir_json_end(json, ']');
}
