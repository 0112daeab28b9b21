/* json.h: writes JSON (RFC 8259) to a FILE, piece by piece. Strings are escaped; bytes that are not UTF-8 become
 * U+FFFD; numbers that are not finite become null. key is NULL inside arrays. Errors stay in the FILE (ferror). */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_json {
    FILE *out;
    bool pretty; /* two-space indentation and newlines; else all on one line */
    int depth;
    bool first; /* nothing written yet at this depth */
};

void weir_json_open(struct weir_json *json, FILE *out, bool pretty);
/* Ends the document with a newline. */
void weir_json_close(struct weir_json *json);
void weir_json_object(struct weir_json *json, const char *key);
void weir_json_array(struct weir_json *json, const char *key);
/* Closes the innermost object ('}') or array (']'). */
void weir_json_end(struct weir_json *json, char bracket);
void weir_json_text(struct weir_json *json, const char *key, const char *value); /* NULL value: null */
void weir_json_int(struct weir_json *json, const char *key, int64_t value);
void weir_json_uint(struct weir_json *json, const char *key, uint64_t value);
void weir_json_double(struct weir_json *json, const char *key, double value); /* shortest of 6, 9 or 17 digits */
void weir_json_bool(struct weir_json *json, const char *key, bool value);
void weir_json_null(struct weir_json *json, const char *key);
/* A number, or null for one below 0: "not known", "does not apply". */
void weir_json_known(struct weir_json *json, const char *key, double value);

#ifdef __cplusplus
}
#endif

#endif
