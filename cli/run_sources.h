/* run_sources.h: where frames came from, as a report has it: which camera, which file, the HDF5 helper process. */
#ifndef WEIR_CLI_RUN_SOURCES_H
#define WEIR_CLI_RUN_SOURCES_H

#include "pipeline/loader.h"
#include "pipeline/source_figures.h"
#include "prof/report/report.h"

/* Paths are given without folder. What was read and decoded from then (NULL: the beginning) to now. -ENOMEM. */
int weir_run_sources(struct weir_report_sources *to, const struct weir_loader *loader, const char *folder,
                     const struct weir_source_figures *now, const struct weir_source_figures *then);

/* What went through the HDF5 helper process in the time covered. */
void weir_run_fallbacks(struct weir_report_fallbacks *to, const struct weir_loader_counts *now,
                        const struct weir_loader_counts *then, double wall_s);

#endif
