/* text.h: untrusted text, made printable. */
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Decodes the UTF-8 character at text, of length bytes. Returns its size, or 0 for invalid UTF-8 (overlong, surrogate,
 * beyond U+10FFFF, cut off) or length 0. */
size_t weir_utf8_next(const char *text, size_t length, uint32_t *code);

/* Whether the character controls a terminal or reorders text: C0, DEL, C1, line separators, bidirectional overrides. */
bool weir_code_is_control(uint32_t code);

/* Replaces each control character and each byte that is not UTF-8 by '?'. The text never gets longer. */
void weir_text_printable(char *text);

/* Terminal columns of the text (Chinese characters take two). */
int weir_text_width(const char *text);

/* Writes the text as a quoted cell of a CSV table, with the comma that ends it. */
void weir_text_csv(FILE *out, const char *text);

#endif
