#include "cli/report/log_clean.h"

#include "base/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Lines longer than this are no log lines in an old encoding; they are not worth a second pass. */
enum { GB18030_MAX_BYTES = 1 << 16 };

void weir_cleaner_open(struct weir_cleaner *cleaner)
{
    *cleaner = (struct weir_cleaner){.gb18030 = iconv_open("UTF-8", "GB18030")};
}

void weir_cleaner_close(struct weir_cleaner *cleaner)
{
    if (cleaner->gb18030 != (iconv_t)-1)
        iconv_close(cleaner->gb18030);
    free(cleaner->text);
    *cleaner = (struct weir_cleaner){.gb18030 = (iconv_t)-1};
}

/* Bytes of the escape sequence at text[0] == ESC: CSI up to its final byte, OSC up to BEL or ST, others two bytes. */
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

/* A line of UTF-8 with a broken byte somewhere must not be taken for GB18030, which accepts nearly anything. */
static bool looks_utf8(const char *text)
{
    static const char *const words[] = {"总计", "耗时", "性能", "环节", "统计"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

/* Converts the line in place when all of it is GB18030; room is that of cleaner->text. */
static bool from_gb18030(struct weir_cleaner *cleaner, size_t length)
{
    if (cleaner->gb18030 == (iconv_t)-1 || length > GB18030_MAX_BYTES)
        return false;
    char *copy = malloc(length + 1);
    if (!copy)
        return false;
    memcpy(copy, cleaner->text, length + 1);
    char *in = copy, *out = cleaner->text;
    size_t in_left = length, out_left = cleaner->room - 1;
    iconv(cleaner->gb18030, NULL, NULL, NULL, NULL);
    bool fine = iconv(cleaner->gb18030, &in, &in_left, &out, &out_left) != (size_t)-1 && in_left == 0;
    if (fine)
        *out = '\0';
    else
        memcpy(cleaner->text, copy, length + 1);
    free(copy);
    return fine;
}

int weir_clean_line(struct weir_cleaner *cleaner, const char *text, size_t length)
{
    /* Two bytes of GB18030 become three of UTF-8. */
    size_t wanted = 2 * length + 16;
    if (cleaner->room < wanted) {
        char *moved = realloc(cleaner->text, wanted);
        if (!moved)
            return -ENOMEM;
        cleaner->text = moved;
        cleaner->room = wanted;
    }
    size_t n = strip_controls(cleaner->text, text, length);
    cleaner->decodable = is_utf8(cleaner->text, n) || looks_utf8(cleaner->text) || from_gb18030(cleaner, n);
    weir_text_printable(cleaner->text);
    return 0;
}
