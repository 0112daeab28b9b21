#include "base/document.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- for people ---- */

static void terminal_text(struct weir_document *document, const char *key, struct weir_wrap *text)
{
    (void)document;
    (void)key;
    weir_wrap_close(text);
}

static bool has_columns(const struct weir_fields *fields)
{
    for (int i = 0; i < fields->n; i++)
        if (fields->fields[i].column.heading ||
            (fields->fields[i].type == WEIR_FIELD_GROUP && has_columns(fields->fields[i].inner)))
            return true;
    return false;
}

static void terminal_table(struct weir_document *document, const char *key, const struct weir_fields *fields,
                           const void *elements, int n, size_t size, bool (*shown)(const void *element))
{
    (void)key;
    if (n > 0 && has_columns(fields))
        weir_table_print_fields(document->out, fields, elements, n, size, shown);
}

const struct weir_document_writer weir_terminal_writer = {.text = terminal_text, .table = terminal_table};

/* ---- JSON ---- */

static void json_open(struct weir_document *document)
{
    weir_json_open(document->json, document->out, true);
    weir_json_object(document->json, NULL);
    weir_json_int(document->json, "schema", WEIR_JSON_SCHEMA);
}

static void line_open(struct weir_document *document)
{
    weir_json_open(document->json, document->out, false);
    weir_json_object(document->json, NULL);
}

static void json_close(struct weir_document *document)
{
    weir_json_end(document->json, '}');
    weir_json_close(document->json);
}

static void line_close(struct weir_document *document)
{
    json_close(document);
    fflush(document->out);
}

static void json_text(struct weir_document *document, const char *key, struct weir_wrap *wrap)
{
    char *text = weir_wrap_take(wrap);
    size_t length = text ? strlen(text) : 0;
    if (length > 0 && text[length - 1] == '\n')
        text[length - 1] = '\0';
    if (key)
        weir_json_text(document->json, key, text);
    free(text);
}

static void json_begin(struct weir_document *document, const char *key, char bracket)
{
    if (bracket == '{')
        weir_json_object(document->json, key);
    else
        weir_json_array(document->json, key);
}

static void json_end(struct weir_document *document, char bracket)
{
    weir_json_end(document->json, bracket);
}

static void json_fact(struct weir_document *document, const char *key, struct weir_value value)
{
    if (value.type == WEIR_FIELD_STRING)
        weir_json_text(document->json, key, value.text);
    else if (value.type == WEIR_FIELD_DOUBLE)
        weir_json_double(document->json, key, value.number);
    else if (value.type == WEIR_FIELD_BOOL)
        weir_json_bool(document->json, key, value.integer);
    else if (value.type == WEIR_FIELD_COUNT)
        weir_json_uint(document->json, key, (uint64_t)value.integer);
    else
        weir_json_int(document->json, key, value.integer);
}

static void json_strings(struct weir_document *document, const char *key, char *const *strings, int n)
{
    weir_strings_json(document->json, key, strings, n);
}

static void json_object(struct weir_document *document, const char *key, const struct weir_fields *fields,
                        const void *object)
{
    weir_fields_object(document->json, key, fields, object);
}

static void json_members(struct weir_document *document, const struct weir_fields *fields, const void *object)
{
    weir_fields_json(document->json, fields, object);
}

static void json_table(struct weir_document *document, const char *key, const struct weir_fields *fields,
                       const void *elements, int n, size_t size, bool (*shown)(const void *element))
{
    (void)shown;
    if (key)
        weir_fields_array(document->json, key, fields, elements, n, size);
}

#define JSON_PARTS json_text, json_begin, json_end, json_fact, json_strings, json_object, json_members, json_table
const struct weir_document_writer weir_json_writer = {true, json_open, json_close, JSON_PARTS};
const struct weir_document_writer weir_line_writer = {true, line_open, line_close, JSON_PARTS};

/* ---- documents ---- */

/* Begins the output, or ends its last text. */
static void flush(struct weir_document *document)
{
    if (!document->is_begun_ && document->writer->open)
        document->writer->open(document);
    document->is_begun_ = true;
    if (document->has_text_)
        document->writer->text(document, document->key_, &document->text);
    document->has_text_ = false;
}

void weir_document_open(struct weir_document *document, const struct weir_document_writer *writer, FILE *out)
{
    *document = (struct weir_document){.writer = writer, .out = out, .json = writer->is_json ? &document->own_ : NULL};
}

void weir_document_over(struct weir_document *document, FILE *out, struct weir_json *json)
{
    *document = (struct weir_document){.writer = json ? &weir_json_writer : &weir_terminal_writer,
                                       .out = json ? json->out : out,
                                       .json = json,
                                       .is_begun_ = true};
}

void weir_document_close(struct weir_document *document)
{
    flush(document);
    if (document->writer->close && document->json == &document->own_)
        document->writer->close(document);
}

FILE *weir_document_text(struct weir_document *document, const char *key, int hang)
{
    flush(document);
    document->has_text_ = true;
    document->key_ = key;
    /* Without memory, text is printed as it is, and JSON must remain valid. */
    return weir_wrap_open(&document->text, document->json ? stderr : document->out, hang, NULL);
}

FILE *weir_document_stream(struct weir_document *document)
{
    flush(document);
    return document->json ? NULL : document->out;
}

void weir_document_begin(struct weir_document *document, const char *key, char bracket)
{
    flush(document);
    if (document->writer->begin)
        document->writer->begin(document, key, bracket);
}

void weir_document_end(struct weir_document *document, char bracket)
{
    flush(document);
    if (document->writer->end)
        document->writer->end(document, bracket);
}

void weir_document_value(struct weir_document *document, const char *key, struct weir_value value)
{
    flush(document);
    if (document->writer->fact)
        document->writer->fact(document, key, value);
}

void weir_document_strings(struct weir_document *document, const char *key, char *const *strings, int n)
{
    flush(document);
    if (document->writer->strings)
        document->writer->strings(document, key, strings, n);
}

void weir_document_numbers(struct weir_document *document, const char *key, const double *numbers, int n)
{
    weir_document_begin(document, key, '[');
    for (int i = 0; i < n; i++)
        weir_document_fact(document, NULL, numbers[i]);
    weir_document_end(document, ']');
}

void weir_document_line(struct weir_document *document, const char *key, const char *label, const char *text)
{
    if (document->json)
        weir_document_value(document, key, weir_value_text(text));
    else if (text)
        fprintf(weir_document_text(document, key, WEIR_WRAP_COLUMN), "%s%s\n", label, text);
}

void weir_document_path(struct weir_document *document, const char *key, const char *label, const char *path)
{
    char shown[4096];
    FILE *out = weir_document_stream(document);
    snprintf(shown, sizeof shown, "%s", path ? path : "");
    weir_text_printable(shown);
    weir_document_fact(document, key, path);
    if (out && path)
        fprintf(out, "%s%s\n", label, shown);
}

struct weir_value weir_value_text(const char *text)
{
    return (struct weir_value){.type = WEIR_FIELD_STRING, .text = text};
}

struct weir_value weir_value_number(double number)
{
    return (struct weir_value){.type = WEIR_FIELD_DOUBLE, .number = number};
}

struct weir_value weir_value_known(double number)
{
    return weir_value_number(number < 0 ? NAN : number);
}

struct weir_value weir_value_bool(bool is_true)
{
    return (struct weir_value){.type = WEIR_FIELD_BOOL, .integer = is_true};
}

struct weir_value weir_value_integer(int64_t integer)
{
    return (struct weir_value){.type = WEIR_FIELD_INDEX, .integer = integer};
}

struct weir_value weir_value_count(uint64_t count)
{
    return (struct weir_value){.type = WEIR_FIELD_COUNT, .integer = (int64_t)count};
}

void weir_document_object(struct weir_document *document, const char *key, const struct weir_fields *fields,
                          const void *object)
{
    flush(document);
    if (document->writer->object)
        document->writer->object(document, key, fields, object);
}

void weir_document_members(struct weir_document *document, const struct weir_fields *fields, const void *object)
{
    flush(document);
    if (document->writer->members)
        document->writer->members(document, fields, object);
}

void weir_document_table(struct weir_document *document, const char *key, const struct weir_fields *fields,
                         const void *elements, int n, size_t size, bool (*shown)(const void *element))
{
    flush(document);
    if (document->writer->table)
        document->writer->table(document, key, fields, elements, n, size, shown);
}
