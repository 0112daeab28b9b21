#include "base/terminal.h"

#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_MOST = 1000, UNIT_MOST = 3 };

enum { UNSET, NARROW, WIDE };

static atomic_int option_wide = UNSET;
static FILE *_Atomic aside;

static void (*print_notice)(const char *text);

void weir_notice(const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    weir_text_printable(text);
    if (print_notice)
        print_notice(text);
    else
        fprintf(stderr, "weir: %s\n", text);
}

void weir_notice_set(void (*print)(const char *text))
{
    print_notice = print;
}

void weir_terminal_set_wide(bool wide)
{
    atomic_store_explicit(&option_wide, wide ? WIDE : NARROW, memory_order_relaxed);
}

bool weir_terminal_folds(void)
{
    return atomic_load_explicit(&option_wide, memory_order_relaxed) == NARROW;
}

void weir_terminal_set_aside(FILE *file)
{
    atomic_store_explicit(&aside, file, memory_order_relaxed);
}

static int descriptor_of(FILE *out)
{
    return out == atomic_load_explicit(&aside, memory_order_relaxed) ? STDOUT_FILENO : fileno(out);
}

/* Returns the width of the terminal, or 0 if `out` is not one or its width is unknown. */
static int window_width(FILE *out)
{
    struct winsize size = {0};
    int descriptor = descriptor_of(out);
    return descriptor >= 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int weir_terminal_width(FILE *out)
{
    bool is_wide = atomic_load_explicit(&option_wide, memory_order_relaxed) == WIDE;
    return is_wide ? WEIR_TERMINAL_WIDTH_WIDE : weir_terminal_columns(out);
}

/* Returns the width of the terminal or $COLUMNS, or 0 if neither is known. */
static long known_width(FILE *out)
{
    long width = window_width(out);
    const char *columns = getenv("COLUMNS");
    if (width <= 0 && columns)
        width = strtol(columns, NULL, 10);
    return width > 0 ? width : 0;
}

int weir_terminal_columns(FILE *out)
{
    long width = known_width(out);
    if (width == 0)
        width = WEIR_TERMINAL_WIDTH;
    if (width < WEIR_TERMINAL_WIDTH_LEAST)
        return WEIR_TERMINAL_WIDTH_LEAST;
    return width < WIDTH_MOST ? (int)width : WIDTH_MOST;
}

bool weir_terminal_has_colour(FILE *out)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    int descriptor = descriptor_of(out);
    if ((no_colour && *no_colour) || !term || strcmp(term, "dumb") == 0)
        return false;
    return descriptor >= 0 && isatty(descriptor);
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

/* Returns whether a number and its unit ("4 GB", "40 %") meet at this space. */
static bool joins_unit(const char *text, const char *space)
{
    return *space == ' ' && space > text && isdigit((unsigned char)space[-1]) && strcspn(space + 1, " \n") <= UNIT_MOST;
}

/* Returns the number of bytes before the last break that leaves at most `width` columns, or 0 without such a break. */
static size_t last_break(const char *text, size_t length, int width, const char *separator)
{
    size_t fitting = weir_text_fitting(text, width), n = strlen(separator), found = 0, printed = n;
    const char *end = text + (fitting < length ? fitting : length);
    while (printed > 0 && separator[printed - 1] == ' ') /* the spaces at the end of a line are not printed */
        printed--;
    for (const char *at = strstr(text, separator); at && at + printed <= end; at = strstr(at + n, separator))
        if (n > 1 || !joins_unit(text, at))
            found = (size_t)(at - text) + n;
    return found;
}

/* Returns the number of bytes before the last column that starts within `width` and fits on the next line, or 0. */
static size_t column_break(const char *text, size_t length, int width, int hang)
{
    size_t at = last_break(text, length, width, "  "), first = weir_text_fitting(text, hang);
    size_t next = at + strspn(text + at, " ");
    bool fits = next + weir_text_fitting(text + next, width - hang) >= length;
    return at > first && fits ? at : 0;
}

/* Returns the number of bytes that the next line takes from the text, which is too wide. */
static size_t line_length(const char *text, size_t length, int width, int hang, const char *separator)
{
    size_t indent = strspn(text, " "), at = 0;
    text += indent;
    length -= indent;
    width -= (int)indent;
    if (separator)
        at = last_break(text, length, width, separator);
    if (at == 0)
        at = column_break(text, length, width, hang);
    if (at == 0)
        at = last_break(text, length, width, " ");
    if (at == 0) { /* a word that is too long */
        const char *space = memchr(text, ' ', length);
        at = space ? (size_t)(space - text) + 1 : length;
    }
    return indent + at;
}

static int second_column(const char *text, size_t length, int width)
{
    size_t indent = strspn(text, " ");
    const char *gap = strstr(text + indent, "  ");
    int column = (int)indent + 2;
    if (gap && gap < text + length) {
        int second = 0;
        while (weir_text_fitting(text, second) < (size_t)(gap - text))
            second++;
        second += (int)strspn(gap, " ");
        column = second < width / 2 ? second : column;
    }
    return column;
}

/* How to print wrapped text. */
struct layout {
    FILE *out;
    int width, hang;
    const char *separator; /* NULL = none */
    bool highlight;
};

static void put_line(const struct layout *layout, int indent, const char *text, size_t length)
{
    fprintf(layout->out, "%*s%s%.*s%s", indent, "", layout->highlight ? "\033[1m" : "", (int)length, text,
            layout->highlight ? "\033[0m" : "");
}

static void print_line(const struct layout *layout, const char *text, size_t length)
{
    int indent = 0, hang = layout->hang;
    hang = hang == WEIR_WRAP_COLUMN ? second_column(text, length, layout->width) : hang;
    while (weir_text_fitting(text, layout->width - indent) < length) {
        size_t n = line_length(text, length, layout->width - indent, hang, layout->separator), printed = n;
        if (n >= length)
            break;
        while (printed > 0 && text[printed - 1] == ' ')
            printed--;
        put_line(layout, indent, text, printed);
        fputc('\n', layout->out);
        n += strspn(text + n, " ");
        text += n;
        length -= n;
        indent = hang;
    }
    put_line(layout, indent, text, length);
}

static void print_text(const struct layout *layout, const char *text)
{
    for (size_t n; *text; text += n) {
        n = strcspn(text, "\n");
        print_line(layout, text, n);
        if (text[n] == '\n')
            fputc(text[n++], layout->out);
    }
}

void weir_wrap_print(FILE *out, const char *text, int hang, const char *separator)
{
    print_text(&(struct layout){out, weir_terminal_width(out), hang, separator, false}, text);
}

FILE *weir_wrap_open(struct weir_wrap *wrap, FILE *out, int hang, const char *separator)
{
    *wrap = (struct weir_wrap){.out_ = out, .separator = separator, .hang_ = hang};
    wrap->text_ = open_memstream(&wrap->buffer_, &wrap->length_);
    return wrap->text_ ? wrap->text_ : out;
}

char *weir_wrap_take(struct weir_wrap *wrap)
{
    if (wrap->text_ && fclose(wrap->text_) != 0) {
        free(wrap->buffer_);
        return NULL;
    }
    return wrap->buffer_;
}

void weir_wrap_close(struct weir_wrap *wrap)
{
    FILE *out = wrap->out_;
    bool whole = wrap->one_line && known_width(out) == 0;
    const struct layout layout = {out, whole ? WEIR_TERMINAL_WIDTH_WIDE : weir_terminal_width(out), wrap->hang_,
                                  wrap->separator, wrap->highlight && weir_terminal_has_colour(out)};
    char *text = weir_wrap_take(wrap);
    if (text)
        print_text(&layout, text);
    free(text);
}
