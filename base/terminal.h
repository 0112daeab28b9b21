/* terminal.h: the width and colours of the output, and text fitted to that width. */
#ifndef WEIR_BASE_TERMINAL_H
#define WEIR_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { WEIR_TERMINAL_WIDTH = 80, WEIR_TERMINAL_WIDTH_LEAST = 40, WEIR_TERMINAL_WIDTH_WIDE = 1 << 20 };

/* Returns the number of columns for output to `out`: the width of the terminal if it is one, otherwise $COLUMNS,
 * otherwise 80; at least 40. Returns WEIR_TERMINAL_WIDTH_WIDE after weir_terminal_set_wide(true). Streams in memory
 * count as no terminal. The width can change between calls. */
int weir_terminal_width(FILE *out);
/* Returns the same, also after weir_terminal_set_wide(true), for a line that must not be longer than the terminal's. */
int weir_terminal_columns(FILE *out);

/* Sets what the option --wide of a command selects, for the whole process. true: tables have all columns and rows, and
 * no text is wrapped. false: tables may fold rows. Before the first call nothing folds, because a program without that
 * option could not show folded rows. */
void weir_terminal_set_wide(bool wide);
bool weir_terminal_folds(void);

/* Gives a temporary file the width and colours of standard output, to which its contents will be copied. */
void weir_terminal_set_aside(FILE *aside);

/* Returns whether to colour the output: `out` is a terminal, $TERM is not "dumb", and $NO_COLOR is unset or empty. */
bool weir_terminal_has_colour(FILE *out);

/* Prints "weir: TEXT" and a line end to standard error, by one call: what a user of the library should know although
 * nothing failed. Thread-safe. */
__attribute__((format(printf, 1, 2))) void weir_notice(const char *format, ...);
/* Sets the function that prints instead. NULL = the default. Call it before other threads run. */
void weir_notice_set(void (*print)(const char *text));

/* Shortens the text to `width` columns by replacing its middle with "..". The last characters, which distinguish file
 * names, get two thirds of the space. Has no effect on shorter text. */
void weir_text_shorten(char *text, int width);

/* Prints lines of text, wrapped at the width of `out`. Continuation lines are indented by `hang` spaces;
 * WEIR_WRAP_COLUMN aligns them with the second column, which two spaces separate from the first, or indents them by two
 * more spaces if the line has no second column. Lines break after `separator` (such as " | ") where possible, otherwise
 * at spaces, but within a column only if it does not fit on the next line. separator can be NULL. Words, and numbers
 * with their unit, are never broken, so a longer path stays whole. */
enum { WEIR_WRAP_COLUMN = -1 };
void weir_wrap_print(FILE *out, const char *text, int hang, const char *separator);

/* Collects text that is printed in pieces, for weir_wrap_print:
 *
 *     struct weir_wrap wrap;
 *     FILE *text = weir_wrap_open(&wrap, out, 2, ", ");
 *     fprintf(text, ...);
 *     weir_wrap_close(&wrap);
 *
 * Without memory the text goes to `out` as it is. */
struct weir_wrap {
    /* These can be set after weir_wrap_open. */
    bool highlight;        /* print the lines in bold if the output has colours */
    bool one_line;         /* wrap only at a known width, so that grep on a pipe without $COLUMNS finds whole lines */
    const char *separator; /* borrowed */
    FILE *out_, *text_;
    int hang_;
    char *buffer_;
    size_t length_;
};

FILE *weir_wrap_open(struct weir_wrap *wrap, FILE *out, int hang, const char *separator);
void weir_wrap_close(struct weir_wrap *wrap);
/* Closes it without printing, and returns the text, which the caller frees; NULL without memory. */
char *weir_wrap_take(struct weir_wrap *wrap);

#endif
