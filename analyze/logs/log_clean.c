#include "analyze/logs/log_clean.h"

#include "base/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void weir_cleaner_close(struct weir_cleaner *cleaner)
{
    free(cleaner->text);
    *cleaner = (struct weir_cleaner){0};
}

/* Returns the length of the escape sequence at text[0], which is ESC. CSI sequences extend to their final byte, OSC
 * sequences to BEL or ST. Other sequences have two bytes. */
static size_t escape_length(const char *text, size_t length)
{
    if (length < 2)
        return length;
    size_t at = 2;
    if (text[1] == '[') {
        while (at < length && text[at] >= 0x20 && text[at] < 0x40)
            at++;
        return at < length && text[at] >= 0x40 && text[at] < 0x7f ? at + 1 : at;
    }
    if (text[1] != ']')
        return (unsigned char)text[1] >= 0x80 ? 1 : 2;
    while (at < length && text[at] != '\a' && text[at] != 0x1b)
        at++;
    if (at < length && text[at] == 0x1b && at + 1 < length && text[at + 1] == '\\')
        return at + 2;
    return at < length && text[at] == '\a' ? at + 1 : at;
}

static size_t strip_controls(char *out, const char *text, size_t length)
{
    size_t n = 0;
    for (size_t at = 0; at < length;) {
        unsigned char byte = (unsigned char)text[at];
        if (byte == 0x1b) {
            at += escape_length(text + at, length - at);
            continue;
        }
        at++;
        if (byte == '\t')
            out[n++] = ' ';
        else if (byte >= 0x20 && byte != 0x7f)
            out[n++] = (char)byte;
    }
    out[n] = '\0';
    return n;
}

static bool is_utf8(const char *text, size_t length)
{
    uint32_t code;
    for (size_t at = 0; at < length;) {
        size_t n = weir_utf8_next(text + at, length - at, &code);
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

int weir_clean_line(struct weir_cleaner *cleaner, const char *text, size_t length)
{
    if (cleaner->capacity < length + 1) {
        size_t capacity = 2 * length + 16;
        char *moved = realloc(cleaner->text, capacity);
        if (!moved)
            return -ENOMEM;
        cleaner->text = moved;
        cleaner->capacity = capacity;
    }
    size_t n = strip_controls(cleaner->text, text, length);
    cleaner->utf8 = is_utf8(cleaner->text, n);
    weir_text_printable(cleaner->text);
    return 0;
}
