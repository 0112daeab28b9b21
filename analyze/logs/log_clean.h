/* log_clean.h: removes terminal control sequences from a line of a training log. */
#ifndef WEIR_ANALYZE_LOGS_LOG_CLEAN_H
#define WEIR_ANALYZE_LOGS_LOG_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

/* A reusable buffer for clean lines. Zero-initialise. */
struct weir_cleaner {
    char *text; /* the cleaned line; valid until the next call */
    size_t capacity;
    bool utf8; /* the whole line was valid UTF-8 */
};

void weir_cleaner_close(struct weir_cleaner *cleaner);
/* Removes colour codes and control characters, replaces each tab with a space, and replaces bytes that are not UTF-8
 * with '?'. Returns 0 or -ENOMEM. */
int weir_clean_line(struct weir_cleaner *cleaner, const char *text, size_t length);

#endif
