/* log_clean.h: a line of a training log as plain UTF-8. */
#ifndef WEIR_CLI_REPORT_LOG_CLEAN_H
#define WEIR_CLI_REPORT_LOG_CLEAN_H

#include <iconv.h>
#include <stdbool.h>
#include <stddef.h>

struct weir_cleaner {
    iconv_t gb18030; /* (iconv_t)-1 where the system cannot convert */
    char *text;      /* the clean line; lent until the next call */
    size_t room;
    bool decodable; /* the line was text: UTF-8 or GB18030 */
};

void weir_cleaner_open(struct weir_cleaner *cleaner);
void weir_cleaner_close(struct weir_cleaner *cleaner);
/* Takes away colour codes and control characters, turns tabs into spaces, GB18030 into UTF-8, and puts '?' for what is
 * neither. 0 or -ENOMEM. */
int weir_clean_line(struct weir_cleaner *cleaner, const char *text, size_t length);

#endif
