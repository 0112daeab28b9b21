/* log_read_priv.h: what the files that read a log's records share. */
#ifndef WEIR_ANALYZE_LOGS_LOG_READ_PRIV_H
#define WEIR_ANALYZE_LOGS_LOG_READ_PRIV_H

#include "weir/base.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t; /* jansson's */

/* Where a value is looked for, so that an error can name it. */
struct weir_log_at {
    uint64_t line;
    struct weir_err *err;
    bool failed;
};

/* Members that are missing take their default: older logs have fewer. What is of another type, or of no sensible size,
 * sets at->failed. object may be NULL. */
double weir_log_double(struct weir_log_at *at, const struct json_t *object, const char *key, double missing);
int64_t weir_log_integer(struct weir_log_at *at, const struct json_t *object, const char *key, int64_t min,
                         int64_t max);
int weir_log_int(struct weir_log_at *at, const struct json_t *object, const char *key);
bool weir_log_bool(struct weir_log_at *at, const struct json_t *object, const char *key, bool missing);
/* A text must be there. */
void weir_log_text(struct weir_log_at *at, const struct json_t *object, const char *key, char *text, size_t size);
/* A member that is an array of objects, at most max of them; NULL when it is missing or wrong. */
const struct json_t *weir_log_array(struct weir_log_at *at, const struct json_t *object, const char *key, size_t max);

/* Reads all members that the table has. */
struct weir_fields;
void weir_log_fields(struct weir_log_at *at, const struct json_t *object, const struct weir_fields *fields, void *to);

/* A "whatif" record; *found is the caller's to free. 0 or -ENOMEM. */
struct weir_whatif;
int weir_log_read_whatif(struct weir_log_at *at, const struct json_t *object, struct weir_whatif **found);

#endif
