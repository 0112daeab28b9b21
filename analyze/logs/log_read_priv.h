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
/* Of workers, slots, samples: larger ones are of no sensible size. */
enum { WEIR_LOG_NUMBER_MAX = 1 << 20 };
int weir_log_int(struct weir_log_at *at, const struct json_t *object, const char *key);
uint64_t weir_log_count(struct weir_log_at *at, const struct json_t *object, const char *key);
bool weir_log_bool(struct weir_log_at *at, const struct json_t *object, const char *key, bool missing);
/* A text must be there. */
void weir_log_text(struct weir_log_at *at, const struct json_t *object, const char *key, char *text, size_t size);
/* A member that is an array of objects, at most max of them; NULL when it is missing or wrong. */
const struct json_t *weir_log_array(struct weir_log_at *at, const struct json_t *object, const char *key, size_t max);

/* Parts of a "stages" record: cameras, files, calls; steps, setup and what was waited for. */
void weir_log_read_sources(struct weir_log_at *at, const struct json_t *object, struct weir_report_sources *sources);
void weir_log_read_steps(struct weir_log_at *at, const struct json_t *object, struct weir_loader_report *report);

/* A "whatif" record; *found is the caller's to free. 0 or -ENOMEM. */
struct weir_whatif;
int weir_log_read_whatif(struct weir_log_at *at, const struct json_t *object, struct weir_whatif **found);

#endif
