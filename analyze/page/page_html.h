/* page_html.h: writes HTML safely: texts, figures, and the elements that several sections use. */
#ifndef WEIR_ANALYZE_PAGE_PAGE_HTML_H
#define WEIR_ANALYZE_PAGE_PAGE_HTML_H

#include "analyze/page/page_words.h"

#include <stddef.h>
#include <stdio.h>

enum { WEIR_PAGE_TEXT = 1024, WEIR_PAGE_FIGURE = 32 };

/* Writes untrusted text, also in attribute values with quotes: escapes markup, replaces control characters and invalid
 * UTF-8 with '?', and cuts it after WEIR_PAGE_TEXT bytes. */
void weir_page_text(FILE *out, const char *text);
void weir_page_text_n(FILE *out, const char *text, size_t length);

/* Format a figure for people, with three digits: "12.3 ms", "1,234", "0.52". Return text. Values that are not finite
 * become "–". */
const char *weir_page_time(char text[WEIR_PAGE_FIGURE], double seconds);
const char *weir_page_number(char text[WEIR_PAGE_FIGURE], double value);
const char *weir_page_count(char text[WEIR_PAGE_FIGURE], double value); /* without decimals */
const char *weir_page_percent(char text[WEIR_PAGE_FIGURE], double fraction);

/* Prints a template: %H is untrusted text, which is escaped; %T seconds, %P a fraction, %N and %C numbers, as formatted
 * above. Further conversions are those of printf for int (d, c), const char * (s) and double (f, g). */
void weir_page_put(FILE *out, const char *template, ...);

/* Returns part / whole within 0..1, and 0 if it is not a number. */
double weir_page_part(double part, double whole);

/* Writes 32 bytes in base64. */
void weir_page_base64(FILE *out, const unsigned char bytes[32]);

/* Writes a bar of this fraction of its cell; class is the style of the filled part. */
void weir_page_bar(FILE *out, double fraction, const char *class);

#endif
