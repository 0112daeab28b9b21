#include "base/text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static size_t sequence_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead < 0xe0)
        return 2;
    if (lead >= 0xe0 && lead < 0xf0)
        return 3;
    if (lead >= 0xf0 && lead < 0xf5)
        return 4;
    return 0;
}

size_t weir_utf8_next(const char *text, size_t length, uint32_t *code)
{
    static const uint32_t lowest[5] = {0, 0, 0x80, 0x800, 0x10000};
    static const unsigned char lead_mask[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    if (length == 0)
        return 0;
    const unsigned char *bytes = (const unsigned char *)text;
    size_t n = sequence_length(bytes[0]);
    if (n == 0 || n > length)
        return 0;
    uint32_t value = bytes[0] & lead_mask[n];
    for (size_t i = 1; i < n; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (bytes[i] & 0x3f);
    }
    if (value < lowest[n] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 0;
    *code = value;
    return n;
}

bool weir_code_is_control(uint32_t code)
{
    if (code < 0x20 || (code >= 0x7f && code < 0xa0))
        return true;
    if (code == 0x061c || code == 0x200e || code == 0x200f || code == 0x2028 || code == 0x2029)
        return true;
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

void weir_text_printable(char *text)
{
    size_t length = strlen(text), out = 0;
    for (size_t in = 0; in < length;) {
        uint32_t code = 0;
        size_t n = weir_utf8_next(text + in, length - in, &code);
        if (n == 0 || weir_code_is_control(code)) {
            text[out++] = '?';
            in += n ? n : 1;
            continue;
        }
        memmove(text + out, text + in, n);
        out += n;
        in += n;
    }
    text[out] = '\0';
}

static int code_width(uint32_t code)
{
    static const struct {
        uint32_t first, last;
        int width;
    } ranges[] = {
        {0x0300, 0x036f, 0},   {0x200b, 0x200d, 0},   {0xfe00, 0xfe0f, 0},   {0x1100, 0x115f, 2}, {0x2e80, 0xa4cf, 2},
        {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2}, {0xffe0, 0xffe6, 2},
        {0x1f300, 0x1f64f, 2}, {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return ranges[i].width;
    return 1;
}

/* Returns the size of the character at the start of text in bytes; an invalid byte counts as one character. */
static size_t next_width(const char *text, size_t length, int *width)
{
    uint32_t code = '?';
    size_t n = weir_utf8_next(text, length, &code);
    *width = code_width(n ? code : '?');
    return n ? n : 1;
}

static const char *tail_of(const char *text, const char *end)
{
    size_t n = strlen(text), length = strlen(end);
    return n < length ? text + n : text + n - length;
}

bool weir_text_ends(const char *text, const char *end)
{
    return strcmp(tail_of(text, end), end) == 0;
}

bool weir_text_ends_any_case(const char *text, const char *end)
{
    return strcasecmp(tail_of(text, end), end) == 0;
}

int weir_text_width(const char *text)
{
    size_t length = strlen(text);
    int width = 0, this_width;
    for (size_t at = 0; at < length; width += this_width)
        at += next_width(text + at, length - at, &this_width);
    return width;
}

size_t weir_text_fitting(const char *text, int columns)
{
    size_t length = strlen(text), at = 0, n;
    for (int width; at < length; at += n) {
        n = next_width(text + at, length - at, &width);
        columns -= width;
        if (columns < 0)
            break;
    }
    return at;
}

/* ---- sizes ---- */

static struct weir_size_text size_text(double bytes, const char *const *units)
{
    struct weir_size_text size;
    int unit = 0;
    for (; bytes >= 1023.5 && unit < 5; unit++)
        bytes /= 1024;
    int n = snprintf(size.text, sizeof size.text, "%.*f",
                     unit == 0 || bytes >= 99.95 ? 0
                     : bytes >= 9.995            ? 1
                                                 : 2,
                     bytes);
    if (strchr(size.text, '.')) {
        while (size.text[n - 1] == '0')
            n--;
        if (size.text[n - 1] == '.')
            n--;
    }
    snprintf(size.text + n, sizeof size.text - (size_t)n, "%s", units[unit]);
    return size;
}

struct weir_size_text weir_size(double bytes)
{
    static const char *const units[] = {" bytes", " KiB", " MiB", " GiB", " TiB", " PiB"};
    return size_text(bytes, units);
}

struct weir_size_text weir_size_short(double bytes)
{
    static const char *const units[] = {"", "K", "M", "G", "T", "P"};
    return size_text(bytes, units);
}

struct weir_time_text weir_time(double seconds)
{
    struct weir_time_text time;
    if (seconds < 1e-6)
        snprintf(time.text, sizeof time.text, "%.0fns", seconds * 1e9);
    else if (seconds < 1e-3)
        snprintf(time.text, sizeof time.text, "%.1fus", seconds * 1e6);
    else if (seconds < 1)
        snprintf(time.text, sizeof time.text, "%.2fms", seconds * 1e3);
    else
        snprintf(time.text, sizeof time.text, "%.2fs", seconds);
    return time;
}

void weir_text_csv(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void weir_shell_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+@%";
    if (*word && word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    const char *control = word;
    while (*control && !iscntrl((unsigned char)*control))
        control++;
    if (*control) { /* control characters need the $'...' quotes of bash and zsh */
        fputs("$'", out);
        for (; *word; word++)
            if (iscntrl((unsigned char)*word) || *word == '\'' || *word == '\\')
                fprintf(out, "\\%03o", (unsigned char)*word);
            else
                fputc(*word, out);
        fputc('\'', out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

int weir_compare_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

int weir_compare_text_pointer(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}
