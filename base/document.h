/* document.h: a result that a command describes once, and that a writer prints for people, as JSON or in a log:
 *
 *     weir_document_open(&document, &weir_terminal_writer, stdout);
 *     fprintf(weir_document_text(&document, "verdict", 2), "%s is slow\n", name);
 *     weir_document_object(&document, "prediction", &weir_whatif_fields, &found);
 *     weir_document_table(&document, "stages", &weir_row_fields, stages, n, sizeof *stages, NULL);
 *     weir_document_close(&document);
 *
 * Every part has the key of its JSON member; a part without a key is only for people. Parts that only programs need
 * (facts, objects, and tables whose fields have no columns) are not in the output for people. A new output is a new
 * writer. */
#ifndef WEIR_BASE_DOCUMENT_H
#define WEIR_BASE_DOCUMENT_H

#include "base/fields.h"
#include "base/terminal.h"

struct weir_document;

/* A value of one of these types. */
struct weir_value {
    enum weir_field_type type; /* STRING, DOUBLE, INDEX (integers), COUNT or BOOL */
    const char *text;          /* NULL = none */
    double number;
    int64_t integer;
};

/* How an output shows the parts. NULL: the output does not have them. */
struct weir_document_writer {
    bool is_json;
    void (*open)(struct weir_document *document);
    void (*close)(struct weir_document *document);
    void (*text)(struct weir_document *document, const char *key, struct weir_wrap *text); /* closes text */
    void (*begin)(struct weir_document *document, const char *key, char bracket);
    void (*end)(struct weir_document *document, char bracket);
    void (*fact)(struct weir_document *document, const char *key, struct weir_value value);
    void (*strings)(struct weir_document *document, const char *key, char *const *strings, int n);
    void (*object)(struct weir_document *document, const char *key, const struct weir_fields *fields,
                   const void *object);
    void (*members)(struct weir_document *document, const struct weir_fields *fields, const void *object);
    void (*table)(struct weir_document *document, const char *key, const struct weir_fields *fields,
                  const void *elements, int n, size_t size, bool (*shown)(const void *element));
};

extern const struct weir_document_writer weir_terminal_writer; /* text and tables that fit the width */
extern const struct weir_document_writer weir_json_writer;     /* one pretty-printed object */
extern const struct weir_document_writer weir_line_writer;     /* a line of a log: an object without the schema */

struct weir_document {
    const struct weir_document_writer *writer;
    FILE *out;
    struct weir_json *json; /* NULL: not the JSON writer */
    struct weir_wrap text;  /* its members can be set after weir_document_text */
    struct weir_json own_;
    const char *key_;
    bool has_text_, is_begun_;
};

/* Writes nothing before the first part. */
void weir_document_open(struct weir_document *document, const struct weir_document_writer *writer, FILE *out);
/* Describes into an object that is open, or, if json is NULL, for people. close leaves the object open. */
void weir_document_over(struct weir_document *document, FILE *out, struct weir_json *json);
void weir_document_close(struct weir_document *document);

/* Returns a stream for text, which is wrapped with this hang (weir_wrap_open). It ends at the next part. Lines end with
 * '\n', which is not part of the JSON string. */
FILE *weir_document_text(struct weir_document *document, const char *key, int hang);
/* Flushes the text and returns the stream of an output for people, for functions that print by themselves; NULL if the
 * output is not for people. */
FILE *weir_document_stream(struct weir_document *document);

/* A line of text after a label, such as "note: ". In JSON, the text; NULL is null there, and no line. */
void weir_document_line(struct weir_document *document, const char *key, const char *label, const char *text);

/* The same for a path, which is never wrapped. */
void weir_document_path(struct weir_document *document, const char *key, const char *label, const char *path);

/* Begin and end an object ('{', '}') or an array ('[', ']'). */
void weir_document_begin(struct weir_document *document, const char *key, char bracket);
void weir_document_end(struct weir_document *document, char bracket);
/* Facts that people find in a text, or do not need. value: a string, an integer, a double or a bool. known: a negative
 * number is unknown. strings: at most n, which end before a NULL. */
#define weir_document_fact(document, key, value)                                                                       \
    weir_document_value(document, key,                                                                                 \
                        _Generic((value),                                                                              \
                            char *: weir_value_text,                                                                   \
                            const char *: weir_value_text,                                                             \
                            double: weir_value_number,                                                                 \
                            bool: weir_value_bool,                                                                     \
                            uint64_t: weir_value_count,                                                                \
                            default: weir_value_integer)(value))
#define weir_document_known(document, key, value) weir_document_value(document, key, weir_value_known(value))
void weir_document_value(struct weir_document *document, const char *key, struct weir_value value);
void weir_document_strings(struct weir_document *document, const char *key, char *const *strings, int n);
void weir_document_numbers(struct weir_document *document, const char *key, const double *numbers, int n);
struct weir_value weir_value_text(const char *text);
struct weir_value weir_value_number(double number);
struct weir_value weir_value_known(double number);
struct weir_value weir_value_bool(bool is_true);
struct weir_value weir_value_integer(int64_t integer);
struct weir_value weir_value_count(uint64_t count);
/* A struct, as an object (NULL is null; in an array the key is NULL), or as members of the current object. */
void weir_document_object(struct weir_document *document, const char *key, const struct weir_fields *fields,
                          const void *object);
void weir_document_members(struct weir_document *document, const struct weir_fields *fields, const void *object);
/* An array of n structs of this size. shown: rows of the output for people; NULL = all. */
void weir_document_table(struct weir_document *document, const char *key, const struct weir_fields *fields,
                         const void *elements, int n, size_t size, bool (*shown)(const void *element));

#endif
