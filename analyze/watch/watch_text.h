/* watch_text.h: prints the report of a watched loader: verdict, stages, workers, ready batches, slow items and files.
 */
#ifndef WEIR_ANALYZE_WATCH_WATCH_TEXT_H
#define WEIR_ANALYZE_WATCH_WATCH_TEXT_H

#include "analyze/jobs/job_verdict.h"

/* Makes the report of a loader since the previous call, or since the watch began: for records of several ranks. The
 * caller clears it (weir_loader_report_clear). Returns 0 or -errno. */
int weir_watch_report_next(struct weir_watch *watch, int loader, struct weir_loader_report *report);

/* Makes the report of a loader since the watch began, and copies its name. epochs: epochs ended; workers: worker
 * processes, 0 = the loop loads itself. The caller clears the report. Thread-safe. Returns 0 or -errno. */
int weir_watch_report_whole(struct weir_watch *watch, int loader, struct weir_loader_report *report, char *name,
                            size_t name_size, double *epochs, int *workers);

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
