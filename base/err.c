#include "weir/base.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Removes an incomplete UTF-8 character at the end of a truncated string. */
static void cut_partial_character(char *text, size_t size)
{
    size_t length = strlen(text);
    if (length + 1 < size)
        return;
    size_t start = length;
    while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0 || (unsigned char)text[start - 1] < 0xc0)
        return;
    uint32_t code;
    if (weir_utf8_next(text + start - 1, length - start + 1, &code) == 0)
        text[start - 1] = '\0';
}

int weir_err_set(struct weir_err *err, int code, const char *format, ...)
{
    if (!err || err->code != 0)
        return code;
    err->code = code;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n < 0)
        err->text[0] = '\0';
    cut_partial_character(err->text, sizeof err->text);
    weir_text_printable(err->text);
    return code;
}

void weir_err_prefix(struct weir_err *err, const char *format, ...)
{
    if (!err || err->code == 0)
        return;
    char prefixed[sizeof err->text];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(prefixed, sizeof prefixed, format, args);
    va_end(args);
    if (n < 0)
        return;
    const char *parts[] = {": ", err->text};
    size_t used = strlen(prefixed);
    for (size_t i = 0; i < 2; i++) {
        size_t length = strnlen(parts[i], sizeof prefixed - 1 - used);
        memcpy(prefixed + used, parts[i], length);
        used += length;
    }
    prefixed[used] = '\0';
    cut_partial_character(prefixed, sizeof prefixed);
    weir_text_printable(prefixed);
    memcpy(err->text, prefixed, sizeof prefixed);
}
