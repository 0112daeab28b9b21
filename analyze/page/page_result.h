/* page_result.h: shared by the files that write pages of results. */
#ifndef WEIR_ANALYZE_PAGE_PAGE_RESULT_H
#define WEIR_ANALYZE_PAGE_PAGE_RESULT_H

#include <stdio.h>

struct json_t; /* jansson's type */

/* Return a member; NAN or "" if it is missing or of another type. object can be NULL. */
double weir_result_number(const struct json_t *object, const char *key);
const char *weir_result_text(const struct json_t *object, const char *key);

/* Writes an array of words as a command, or nothing without one. */
void weir_result_command(FILE *out, const struct json_t *words);

/* Write the sections of weir bench and weir tune. */
void weir_result_bench(FILE *out, const struct json_t *result);
void weir_result_tune(FILE *out, const struct json_t *result);

#endif
