/* text.h: text of unknown origin, made safe to print. */
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes the UTF-8 character at text (length bytes are there). Returns its bytes, or 0 when it is not valid UTF-8
 * (overlong, surrogate, beyond U+10FFFF, cut off) or length is 0. */
size_t weir_utf8_next(const char *text, size_t length, uint32_t *code);

/* Characters that steer a terminal or reorder what is shown: C0, DEL, C1, line separators, bidirectional overrides. */
bool weir_code_is_control(uint32_t code);

/* Puts '?' in place of each control character and each byte that is not UTF-8. The text may get shorter, never longer.
 */
void weir_text_printable(char *text);

/* Columns the text takes on a terminal (Chinese characters take two). */
int weir_text_width(const char *text);

#endif
