/* run_page.h: the page of --html, made from the log's lines at the end of a run. */
#ifndef WEIR_CLI_RUN_RUN_PAGE_H
#define WEIR_CLI_RUN_RUN_PAGE_H

#include "weir/base.h"
#include "weir/report.h"

#include <stdio.h>

/* Keeps the lines of a log in a temporary file. Zero-initialise it. */
struct weir_run_page {
    FILE *html;  /* output file; NULL = no page */
    FILE *lines; /* temporary file; owned */
    FILE *log;   /* output file for the same lines; can be NULL; borrowed */
    FILE *both_; /* stream to lines and log; owned */
};

/* Opens the output file, unless path is NULL, and replaces *log, which can be NULL, with a stream that also keeps the
 * lines. Returns 0 or -errno. */
int weir_run_page_open(struct weir_run_page *page, const char *path, FILE **log, struct weir_err *err);
/* Closes that stream and sets *log to the output file again. Without --html it has no effect. */
int weir_run_page_detach(struct weir_run_page *page, FILE **log);
/* Writes the page, unless the run has written no lines, and closes it. Returns 0 or -errno. */
int weir_run_page_close(struct weir_run_page *page, const char *path, enum weir_lang lang, struct weir_err *err);

#endif
