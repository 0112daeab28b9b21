/* fill_priv.h: what a loader has done between two moments, as a report has it. */
#ifndef WEIR_PIPELINE_REPORT_FILL_PRIV_H
#define WEIR_PIPELINE_REPORT_FILL_PRIV_H

#include "pipeline/loader.h"
#include "pipeline/report/loader_report.h"
#include "pipeline/source_figures.h"

/* Paths are given without folder. What was read and decoded from then (NULL: the beginning) to now. -ENOMEM. */
int weir_fill_sources(struct weir_report_sources *to, const struct weir_loader *loader, const char *folder,
                      const struct weir_source_figures *now, const struct weir_source_figures *then);

/* What went through the HDF5 helper process in the time covered. */
void weir_fill_fallbacks(struct weir_report_fallbacks *to, const struct weir_loader_counts *now,
                         const struct weir_loader_counts *then, double wall_s);

/* What the GPU did between then and now, wall_s long. */
void weir_fill_gpu(struct weir_report_gpu *report, const struct weir_loader *loader, const struct weir_gpu_figures *now,
                   const struct weir_gpu_figures *then, double wall_s);
/* Who decoded how much between then and now, wall_s long; the CPU's part is left to the caller. */
void weir_fill_gpu_decode(struct weir_report_gpu *gpu, const struct weir_gpu_decode_figures *now,
                          const struct weir_gpu_decode_figures *then, double wall_s);

#endif
