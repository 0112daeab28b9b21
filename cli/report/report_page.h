/* report_page.h: the page of --html, from logs. */
#ifndef WEIR_CLI_REPORT_REPORT_PAGE_H
#define WEIR_CLI_REPORT_REPORT_PAGE_H

#include "cli/report/report_ranks.h"

/* Writes the page of the logs to the file. Nothing is written unless all of them can be read. Returns 0 or -errno. */
int weir_report_page(const char *html, const char *const *paths, int n, enum weir_lang lang,
                     const struct weir_report_ranks *ranks, struct weir_err *err);

#endif
