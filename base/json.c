#include "weir/base.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void weir_json_open(struct weir_json *json, FILE *out, bool pretty)
{
    *json = (struct weir_json){.out = out, .pretty = pretty, .first = true};
}

void weir_json_close(struct weir_json *json)
{
    putc('\n', json->out);
}

static void new_line(const struct weir_json *json)
{
    if (json->pretty && json->depth > 0)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

/* Writes a string literal. Characters that RFC 8259 forbids or that control a terminal are escaped, and the characters
 * between them are written with one fwrite. */
static void write_string(FILE *out, const char *value)
{
    size_t length = strlen(value), plain = 0;
    putc('"', out);
    for (size_t at = 0; at < length;) {
        uint32_t code = 0xfffd;
        size_t n = weir_utf8_next(value + at, length - at, &code);
        bool special = n == 0 || code == '"' || code == '\\' || weir_code_is_control(code);
        if (!special) {
            at += n;
            continue;
        }
        fwrite(value + plain, 1, at - plain, out);
        if (n == 0)
            fputs("\xef\xbf\xbd", out);
        else if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (char)code);
        else if (code == '\n' || code == '\t')
            fputs(code == '\n' ? "\\n" : "\\t", out);
        else
            fprintf(out, "\\u%04" PRIx32, code);
        at += n ? n : 1;
        plain = at;
    }
    fwrite(value + plain, 1, length - plain, out);
    putc('"', out);
}

static void member(struct weir_json *json, const char *key)
{
    if (!json->first)
        putc(',', json->out);
    json->first = false;
    new_line(json);
    if (!key)
        return;
    write_string(json->out, key);
    fputs(json->pretty ? ": " : ":", json->out);
}

static void begin(struct weir_json *json, const char *key, char bracket)
{
    member(json, key);
    putc(bracket, json->out);
    json->depth++;
    json->first = true;
}

void weir_json_object(struct weir_json *json, const char *key)
{
    begin(json, key, '{');
}

void weir_json_array(struct weir_json *json, const char *key)
{
    begin(json, key, '[');
}

void weir_json_end(struct weir_json *json, char bracket)
{
    bool empty = json->first;
    json->depth--;
    json->first = false;
    if (!empty && json->pretty)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    putc(bracket, json->out);
}

void weir_json_text(struct weir_json *json, const char *key, const char *value)
{
    if (!value) {
        weir_json_null(json, key);
        return;
    }
    member(json, key);
    write_string(json->out, value);
}

void weir_json_int(struct weir_json *json, const char *key, int64_t value)
{
    member(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void weir_json_uint(struct weir_json *json, const char *key, uint64_t value)
{
    member(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void weir_json_double(struct weir_json *json, const char *key, double value)
{
    static const int digits[] = {6, 9, 17};
    if (!isfinite(value)) {
        weir_json_null(json, key);
        return;
    }
    char text[40];
    for (size_t i = 0; i < sizeof digits / sizeof digits[0]; i++) {
        snprintf(text, sizeof text, "%.*g", digits[i], value == 0 ? 0.0 : value);
        if (strtod(text, NULL) == value)
            break;
    }
    /* The program may have set a locale in which the decimal point is a comma. */
    char *comma = strchr(text, ',');
    if (comma)
        *comma = '.';
    member(json, key);
    fputs(text, json->out);
}

void weir_json_bool(struct weir_json *json, const char *key, bool value)
{
    member(json, key);
    fputs(value ? "true" : "false", json->out);
}

void weir_json_null(struct weir_json *json, const char *key)
{
    member(json, key);
    fputs("null", json->out);
}

void weir_json_known(struct weir_json *json, const char *key, double value)
{
    if (value < 0)
        weir_json_null(json, key);
    else
        weir_json_double(json, key, value);
}
