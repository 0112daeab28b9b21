/* watch_text.h: prints the report of a watched loader: verdict, stages, workers, ready batches, slow items and files.
 */
#ifndef WEIR_ANALYZE_WATCH_WATCH_TEXT_H
#define WEIR_ANALYZE_WATCH_WATCH_TEXT_H

#include "analyze/watch/watch_figures.h"

/* verdict_only: the verdict without tables. */
void weir_watch_print(FILE *out, const struct weir_watch_figures *figures, const struct weir_loader_report *report,
                      enum weir_lang lang, bool verdict_only);

/* Adds the members "watch" and "verdict" to the open object of a log line. */
void weir_watch_json(struct weir_json *json, const struct weir_watch_figures *figures,
                     const struct weir_loader_report *report);

#endif
