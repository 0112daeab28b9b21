/* watch_text.h: prints the report of a watched loader: verdict, stages, workers, ready batches, slow items and files.
 */
#ifndef WEIR_ANALYZE_WATCH_WATCH_TEXT_H
#define WEIR_ANALYZE_WATCH_WATCH_TEXT_H

#include "analyze/jobs/job_verdict.h"

/* What a report is about: the loader's name, epochs ended, and worker processes, 0 = the loop loads itself. */
struct weir_watch_about {
    char name[WEIR_WATCH_TEXT];
    double epochs;
    int workers;
};

/* Makes the report of a loader, since the watch began or since the previous report that was not whole: for metrics, and
 * for records of several ranks. The caller clears it (weir_loader_report_clear). Thread-safe. Returns 0 or -errno. */
int weir_watch_report_take(struct weir_watch *watch, int loader, bool whole, struct weir_loader_report *report,
                           struct weir_watch_about *about);

/* Prints the verdict, wrapped at the width of the output, or with one line per cause, advice and so on, however long,
 * and without colour. */
void weir_watch_verdict_print(FILE *out, const struct weir_job_verdict *verdict,
                              const struct weir_dataloader_figures *figures);
void weir_watch_verdict_lines(FILE *out, const struct weir_job_verdict *verdict,
                              const struct weir_dataloader_figures *figures);

/* verdict_only: the verdict without tables. */
void weir_watch_print(FILE *out, const struct weir_dataloader_figures *figures, const struct weir_loader_report *report,
                      enum weir_lang lang, bool verdict_only);

/* Prints what weir.Loader gives, if that was measured; the verdict contains it. */
void weir_watch_trial_print(FILE *out, const struct weir_dataloader_figures *figures);

/* Adds the members "watch" and "verdict", and "weir_loader" if that was measured, to the open object of a log line. */
void weir_watch_json(struct weir_json *json, const struct weir_dataloader_figures *figures);

#endif
