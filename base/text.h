/* text.h: makes untrusted strings printable, and formats sizes. */
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Decodes the UTF-8 character at the start of text, which has length bytes. Returns the size of the character in bytes,
 * or 0 if length is 0 or the UTF-8 is invalid (overlong, surrogate, above U+10FFFF, truncated). */
size_t weir_utf8_next(const char *text, size_t length, uint32_t *code);

/* Returns true if the character controls a terminal or reorders text: C0, DEL, C1, line separators, bidirectional
 * overrides. */
bool weir_code_is_control(uint32_t code);

/* Replaces each control character, and each byte that is not valid UTF-8, with '?'. The string never becomes longer. */
void weir_text_printable(char *text);

/* Return whether the text ends with `end`. */
bool weir_text_ends(const char *text, const char *end);
bool weir_text_ends_any_case(const char *text, const char *end);

/* Returns the number of terminal columns of the string. A Chinese character takes two. */
int weir_text_width(const char *text);

/* Returns the number of bytes at the start of the string that take at most `columns` terminal columns. */
size_t weir_text_fitting(const char *text, int columns);

/* A number of bytes as text. The text lives until the end of the full expression: printf("%s", weir_size(n).text). */
struct weir_size_text {
    char text[16];
};
/* Format a size in powers of 1024, like the values of options: "563 MiB", and "563M" for columns of tables and for
 * command lines. Both have three digits, or four below the next unit. */
struct weir_size_text weir_size(double bytes);
struct weir_size_text weir_size_short(double bytes);

/* Formats seconds as one word, such as "12.30us", so that awk and sort can split a table into columns. */
struct weir_time_text {
    char text[24];
};
struct weir_time_text weir_time(double seconds);

/* Writes the string as a quoted cell of a CSV table. */
void weir_text_csv(FILE *out, const char *text);

/* Prints a word so that a shell reads it unchanged: without quotes if possible, in '...', or in $'...' (bash, zsh) if
 * it contains control characters. */
void weir_shell_word(FILE *out, const char *word);

/* For qsort and bsearch: the order of strcmp. Elements are arrays of characters, or structs that begin with one. */
int weir_compare_text(const void *a, const void *b);
/* The same for pointers to strings, and structs that begin with one. */
int weir_compare_text_pointer(const void *a, const void *b);

#endif
