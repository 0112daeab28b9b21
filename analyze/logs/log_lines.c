#include "analyze/logs/log_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void weir_lines_open(struct weir_lines *lines, FILE *in)
{
    *lines = (struct weir_lines){.in = in, .after_newline_ = true};
}

void weir_lines_close(struct weir_lines *lines)
{
    free(lines->text);
    *lines = (struct weir_lines){0};
}

/* Makes room for one more byte and the terminating NUL. Returns 0 or -ENOMEM. */
static int reserve_byte(struct weir_lines *lines)
{
    if (lines->length + 1 < lines->capacity_)
        return 0;
    size_t capacity = lines->capacity_ ? 2 * lines->capacity_ : 4096;
    char *text = realloc(lines->text, capacity);
    if (!text)
        return -ENOMEM;
    lines->text = text;
    lines->capacity_ = capacity;
    return 0;
}

/* Moves over the hole of a sparse file at the current position, if one is there. */
static void skip_hole(struct weir_lines *lines)
{
    off_t at = ftello(lines->in), data = at < 0 ? -1 : lseek(fileno(lines->in), at, SEEK_DATA);
    if (at >= 0 && data < 0 && errno == ENXIO) /* only a hole follows */
        data = lseek(fileno(lines->in), 0, SEEK_END);
    if (at >= 0 && fseeko(lines->in, data > at ? data : at, SEEK_SET) == 0 && data > at)
        lines->nul_bytes += (uint64_t)(data - at);
    errno = 0;
}

/* Appends the rest of the line to the buffer. Returns 1, 0 if there is nothing to read, or -errno. */
static int read_piece(struct weir_lines *lines)
{
    int got = 0, byte;
    uint64_t dropped = 0;
    while ((byte = getc_unlocked(lines->in)) != EOF) {
        got = 1;
        lines->ended = byte == '\n' || byte == '\r';
        if (lines->ended)
            break;
        lines->nul_bytes += byte == 0;
        if (lines->length == WEIR_LINE_MAX_BYTES) {
            lines->cut = true;
            if (dropped++ % WEIR_LINE_MAX_BYTES == 0 && byte == 0)
                skip_hole(lines);
            continue;
        }
        if (reserve_byte(lines) < 0)
            return -ENOMEM;
        lines->text[lines->length++] = (char)byte;
    }
    lines->after_newline_ = byte == '\n';
    if (byte == EOF && ferror(lines->in))
        return errno ? -errno : -EIO;
    return got;
}

int weir_lines_next(struct weir_lines *lines)
{
    if (lines->pushed_back) {
        lines->pushed_back = false;
        return 1;
    }
    bool new_line = lines->after_newline_;
    lines->length = 0;
    lines->cut = lines->ended = false;
    errno = 0;
    int got = read_piece(lines);
    if (got <= 0)
        return got;
    lines->number += new_line;
    if (reserve_byte(lines) < 0)
        return -ENOMEM;
    lines->text[lines->length] = '\0';
    lines->cut_lines += lines->cut;
    if (lines->number == 1 && lines->length >= 3 && memcmp(lines->text, "\xef\xbb\xbf", 3) == 0)
        memmove(lines->text, lines->text + 3, (lines->length -= 3) + 1);
    return 1;
}

int weir_lines_peek(struct weir_lines *lines)
{
    int code;
    while ((code = weir_lines_next(lines)) > 0)
        if (strspn(lines->text, " \t\r") < lines->length)
            break;
    lines->pushed_back = code > 0;
    return code;
}
