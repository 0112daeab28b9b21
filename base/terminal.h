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

/* Makes tables print all columns and rows, and no text wrap (--wide), in the whole process. */
void weir_terminal_set_wide(bool wide);
bool weir_terminal_is_wide(void);

/* Returns whether to colour the output: `out` is a terminal, $TERM is not "dumb", and $NO_COLOR is unset or empty. */
bool weir_terminal_has_colour(FILE *out);

/* Begin and end the highlighted part of an output. Both print nothing without colour. */
void weir_terminal_highlight(FILE *out);
void weir_terminal_plain(FILE *out);

/* Shortens the text to `width` columns by replacing its middle with "..". The last characters, which distinguish file
 * names, get two thirds of the space. Has no effect on shorter text. */
void weir_text_shorten(char *text, int width);

/* Prints lines of text, wrapped at the width of `out`. Continuation lines are indented by `hang` spaces. Lines break
 * after `separator` (such as " | ") where possible, otherwise at spaces. separator can be NULL. Words are never broken,
 * so a longer path stays whole. */
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
    FILE *out_, *text_;
    const char *separator_; /* borrowed */
    int hang_;
    char *buffer_;
    size_t length_;
};

FILE *weir_wrap_open(struct weir_wrap *wrap, FILE *out, int hang, const char *separator);
void weir_wrap_close(struct weir_wrap *wrap);

#endif
