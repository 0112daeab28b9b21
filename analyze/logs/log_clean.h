/* log_clean.h: a line of a training log without what steers a terminal. */
#ifndef WEIR_ANALYZE_LOGS_LOG_CLEAN_H
#define WEIR_ANALYZE_LOGS_LOG_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

/* All zero to begin with. */
struct weir_cleaner {
    char *text; /* the clean line; lent until the next call */
    size_t capacity;
    bool utf8; /* all of the line was */
};

void weir_cleaner_close(struct weir_cleaner *cleaner);
/* Takes away colour codes and control characters, turns tabs into spaces, and puts '?' for bytes that are not UTF-8.
 * 0 or -ENOMEM. */
int weir_clean_line(struct weir_cleaner *cleaner, const char *text, size_t length);

#endif
