/* page.h: the runs of logs as one HTML page that needs no network: verdict, limits, charts and tables.
 *
 *     weir_page_open(&page, WEIR_LANG_EN);
 *     weir_page_add_log(page, "run.jsonl", in, &err);      once per log, such as those of all ranks
 *     weir_page_write(out, page);
 *     weir_page_close(&page);
 *
 * The page depends only on the logs and on the trace that a log names, so a run and a later report of its log make the
 * same page. Its size does not grow with the length of a run: neighbouring epochs are merged from 1,024 on. Texts are
 * untrusted. Not thread-safe; use each page on one thread at a time. */
#ifndef WEIR_ANALYZE_PAGE_PAGE_H
#define WEIR_ANALYZE_PAGE_PAGE_H

#include "analyze/ranks/rank_verdict.h"
#include "weir/base.h"
#include "weir/report.h"

#include <stdio.h>

enum { WEIR_PAGE_RUNS = 64 }; /* newer runs replace older ones */

struct weir_page;

/* Creates an empty page. Returns 0 or -ENOMEM. */
int weir_page_open(struct weir_page **page, enum weir_lang lang);
void weir_page_close(struct weir_page **page);

/* Adds the runs of a log of weir run, weir train or weir.watch, up to an incomplete last line, or a plain log with
 * stage tables. name distinguishes the logs of a page (copied). Returns 0, -ENODATA if the log has neither, or -errno.
 */
int weir_page_add_log(struct weir_page *page, const char *name, FILE *in, struct weir_err *err);

/* Adds the table over ranks, which must remain valid until the page is written. */
void weir_page_add_ranks(struct weir_page *page, const struct weir_rank_verdict *verdict, const struct weir_rank *ranks,
                         int n);

/* Writes the page. The caller checks ferror(out). Returns 0 or -ENOMEM. */
int weir_page_write(FILE *out, const struct weir_page *page);

/* Writes the page of one log, whose lines are in memory. Returns 0 or -errno. */
int weir_page_of_log(FILE *out, const char *lines, size_t length, enum weir_lang lang, struct weir_err *err);

/* Writes the page of a result: the object that weir compare, bench or tune prints with --json. Returns 0 or -errno. */
int weir_page_of_result(FILE *out, const char *json, size_t length, struct weir_err *err);

#endif
