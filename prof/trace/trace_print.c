#include "prof/trace/trace_print.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

int weir_print_flush(struct weir_print *p)
{
    int rc = weir_gz_write(p->file, p->buffer, p->used);
    p->used = 0;
    return rc;
}

void weir_print_bytes(struct weir_print *p, const char *text, size_t length)
{
    while (length > WEIR_PRINT_BYTES - p->used) {
        size_t part = WEIR_PRINT_BYTES - p->used;
        memcpy(p->buffer + p->used, text, part);
        p->used += part;
        text += part;
        length -= part;
        weir_print_flush(p);
    }
    memcpy(p->buffer + p->used, text, length);
    p->used += length;
}

/* ---- numbers ---- */

enum { DIGITS_MAX = 24 };

/* Prints value so that it stops before `end`. Returns the position of the first digit. */
static char *digits(char *end, uint64_t value)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return end;
}

void weir_print_uint(struct weir_print *p, uint64_t value)
{
    char text[DIGITS_MAX], *end = text + sizeof text, *at = digits(end, value);
    weir_print_bytes(p, at, (size_t)(end - at));
}

void weir_print_int(struct weir_print *p, int64_t value)
{
    char text[DIGITS_MAX], *end = text + sizeof text;
    char *at = digits(end, value < 0 ? -(uint64_t)value : (uint64_t)value);
    if (value < 0)
        *--at = '-';
    weir_print_bytes(p, at, (size_t)(end - at));
}

void weir_print_us(struct weir_print *p, int64_t ns)
{
    uint64_t value = ns > 0 ? (uint64_t)ns : 0, part = value % 1000;
    char text[DIGITS_MAX], *end = text + sizeof text;
    end[-1] = (char)('0' + part % 10);
    end[-2] = (char)('0' + part / 10 % 10);
    end[-3] = (char)('0' + part / 100);
    end[-4] = '.';
    char *at = digits(end - 4, value / 1000);
    weir_print_bytes(p, at, (size_t)(end - at));
}

void weir_print_double(struct weir_print *p, double value)
{
    static const int precision[] = {6, 9, 17};
    if (value > -9e15 && value < 9e15 && value == (double)(int64_t)value) {
        weir_print_int(p, (int64_t)value);
        return;
    }
    char text[40];
    for (size_t i = 0; i < sizeof precision / sizeof precision[0]; i++) {
        snprintf(text, sizeof text, "%.*g", precision[i], value);
        if (strtod(text, NULL) == value)
            break;
    }
    char *comma = strchr(text, ','); /* the host program's locale can have a decimal comma */
    if (comma)
        *comma = '.';
    weir_print_raw(p, text);
}

/* ---- strings ---- */

/* Whether a byte is printed unchanged: printable ASCII except " and \. */
static inline bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static bool is_newline(char c)
{
    return c == '\n' || c == '\r';
}

static size_t printable_at(const char *text, size_t length)
{
    uint32_t code = 0;
    size_t n = weir_utf8_next(text, length, &code);
    return n > 0 && !weir_code_is_control(code) ? n : 0;
}

static bool is_printable(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t n = is_newline(text[at]) ? 1 : printable_at(text + at, length - at);
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

static void cleaned(struct weir_print *p, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t n = printable_at(text + at, length - at);
        if (is_newline(text[at]))
            n = 1;
        else if (n == 0)
            weir_print(p, "?");
        else if (text[at] == '\\')
            weir_print(p, "/");
        else if (text[at] == '"')
            weir_print(p, "\\\"");
        else
            weir_print_bytes(p, text + at, n);
        at += n ? n : 1;
    }
}

static bool is_all_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!is_plain((unsigned char)text[i]))
            return false;
    return true;
}

void weir_print_name(struct weir_print *p, const char *text)
{
    size_t length = strlen(text);
    if (length > 0 && is_all_plain(text, length)) /* true for nearly all names */
        weir_print_bytes(p, text, length);
    else if (length > 0 && is_printable(text, length))
        cleaned(p, text, length);
    else
        weir_print(p, "unknown");
}

void weir_print_text(struct weir_print *p, const char *text)
{
    size_t length = strlen(text);
    if (is_all_plain(text, length))
        weir_print_bytes(p, text, length);
    else
        cleaned(p, text, length);
}

void weir_print_json(struct weir_print *p, const char *json)
{
    const char *from = json;
    for (; *json; json++) {
        if ((unsigned char)*json >= 0x20)
            continue;
        weir_print_bytes(p, from, (size_t)(json - from));
        weir_print(p, " ");
        from = json + 1;
    }
    weir_print_bytes(p, from, (size_t)(json - from));
}
