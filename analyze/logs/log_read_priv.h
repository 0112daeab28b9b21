/* log_read_priv.h: shared by the files that parse log records. */
#ifndef WEIR_ANALYZE_LOGS_LOG_READ_PRIV_H
#define WEIR_ANALYZE_LOGS_LOG_READ_PRIV_H

#include "weir/base.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t; /* jansson's type */

/* Context for error messages. */
struct weir_log_at {
    uint64_t line;
    struct weir_err *err;
    bool failed;
};

/* Return a member's value. If it is missing, they return a default, because older logs have fewer members. If it has
 * the wrong type or is too large, they set at->failed. object can be NULL. */
double weir_log_double(struct weir_log_at *at, const struct json_t *object, const char *key, double missing);
int64_t weir_log_integer(struct weir_log_at *at, const struct json_t *object, const char *key, int64_t min,
                         int64_t max);
int weir_log_int(struct weir_log_at *at, const struct json_t *object, const char *key);
bool weir_log_bool(struct weir_log_at *at, const struct json_t *object, const char *key, bool missing);
/* Copies a string member. It is an error if the member is missing. */
void weir_log_text(struct weir_log_at *at, const struct json_t *object, const char *key, char *text, size_t size);
/* Returns an array of at most max objects, or NULL if it is missing or invalid. */
const struct json_t *weir_log_array(struct weir_log_at *at, const struct json_t *object, const char *key, size_t max);

/* Reads all members that the table lists. */
struct weir_fields;
void weir_log_fields(struct weir_log_at *at, const struct json_t *object, const struct weir_fields *fields, void *to);

/* Reads a "whatif" record. The caller frees *found. Returns 0 or -ENOMEM. */
struct weir_whatif;
int weir_log_read_whatif(struct weir_log_at *at, const struct json_t *object, struct weir_whatif **found);

#endif
