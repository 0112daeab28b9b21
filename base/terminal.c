#include "base/terminal.h"

#include "base/text.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_MOST = 1000 };

static atomic_bool wide;

void weir_terminal_set_wide(bool on)
{
    atomic_store_explicit(&wide, on, memory_order_relaxed);
}

bool weir_terminal_is_wide(void)
{
    return atomic_load_explicit(&wide, memory_order_relaxed);
}

/* Returns the width of the terminal, or 0 if `out` is not one or its width is unknown. */
static int window_width(FILE *out)
{
    struct winsize size = {0};
    int descriptor = fileno(out);
    return descriptor >= 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int weir_terminal_width(FILE *out)
{
    return weir_terminal_is_wide() ? WEIR_TERMINAL_WIDTH_WIDE : weir_terminal_columns(out);
}

int weir_terminal_columns(FILE *out)
{
    long width = window_width(out);
    const char *columns = getenv("COLUMNS");
    if (width <= 0 && columns)
        width = strtol(columns, NULL, 10);
    if (width <= 0)
        width = WEIR_TERMINAL_WIDTH;
    if (width < WEIR_TERMINAL_WIDTH_LEAST)
        return WEIR_TERMINAL_WIDTH_LEAST;
    return width < WIDTH_MOST ? (int)width : WIDTH_MOST;
}

bool weir_terminal_has_colour(FILE *out)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    int descriptor = fileno(out);
    if ((no_colour && *no_colour) || !term || strcmp(term, "dumb") == 0)
        return false;
    return descriptor >= 0 && isatty(descriptor);
}

void weir_terminal_highlight(FILE *out)
{
    if (weir_terminal_has_colour(out))
        fputs("\033[1m", out);
}

void weir_terminal_plain(FILE *out)
{
    if (weir_terminal_has_colour(out))
        fputs("\033[0m", out);
}

void weir_text_shorten(char *text, int width)
{
    int spare = weir_text_width(text) - width, front = (width - 2) / 3;
    if (spare <= 0 || front < 1)
        return;
    size_t length = strlen(text), from = weir_text_fitting(text, front), to = length;
    for (to = from; to < length && weir_text_width(text + to) > width - 2 - front;) {
        uint32_t code;
        size_t n = weir_utf8_next(text + to, length - to, &code);
        to += n ? n : 1;
    }
    memmove(text + from + 2, text + to, length - to + 1);
    memcpy(text + from, "..", 2);
}

/* Returns the number of bytes before the last break that leaves at most `width` columns, or 0 if there is none. */
static size_t last_break(const char *text, size_t length, int width, const char *separator)
{
    size_t fitting = weir_text_fitting(text, width), n = strlen(separator), found = 0;
    const char *end = text + (fitting < length ? fitting : length);
    for (const char *at = strstr(text, separator); at; at = strstr(at + n, separator)) {
        size_t trailing = n; /* the spaces at the end of a line are not printed */
        while (trailing > 0 && separator[trailing - 1] == ' ')
            trailing--;
        if (at + trailing > end)
            break;
        found = (size_t)(at - text) + n;
    }
    return found;
}

/* Returns the number of bytes that the next line takes from the text, which is too wide. */
static size_t line_length(const char *text, size_t length, int width, const char *separator)
{
    size_t indent = strspn(text, " ");
    size_t at = separator ? last_break(text + indent, length - indent, width - (int)indent, separator) : 0;
    if (at == 0)
        at = last_break(text + indent, length - indent, width - (int)indent, " ");
    if (at == 0) { /* a word that is too long */
        const char *space = memchr(text + indent, ' ', length - indent);
        at = space ? (size_t)(space - text) - indent + 1 : length - indent;
    }
    return indent + at;
}

static void print_line(FILE *out, const char *text, size_t length, int hang, const char *separator)
{
    int width = weir_terminal_width(out), indent = 0;
    while (weir_text_fitting(text, width - indent) < length) {
        size_t n = line_length(text, length, width - indent, separator), printed = n;
        if (n >= length)
            break;
        while (printed > 0 && text[printed - 1] == ' ')
            printed--;
        fprintf(out, "%*s%.*s\n", indent, "", (int)printed, text);
        n += strspn(text + n, " ");
        text += n;
        length -= n;
        indent = hang;
    }
    fprintf(out, "%*s%.*s", indent, "", (int)length, text);
}

void weir_wrap_print(FILE *out, const char *text, int hang, const char *separator)
{
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n");
        print_line(out, text, n, hang, separator);
        if (text[n] == '\n')
            fputc(text[n++], out);
    }
}

FILE *weir_wrap_open(struct weir_wrap *wrap, FILE *out, int hang, const char *separator)
{
    *wrap = (struct weir_wrap){.out_ = out, .separator_ = separator, .hang_ = hang};
    wrap->text_ = open_memstream(&wrap->buffer_, &wrap->length_);
    return wrap->text_ ? wrap->text_ : out;
}

void weir_wrap_close(struct weir_wrap *wrap)
{
    if (wrap->text_ && fclose(wrap->text_) == 0)
        weir_wrap_print(wrap->out_, wrap->buffer_, wrap->hang_, wrap->separator_);
    free(wrap->buffer_);
}
