/* fill_priv.h: what a loader has done between two moments, as a report has it. */
#ifndef WEIR_PIPELINE_REPORT_FILL_PRIV_H
#define WEIR_PIPELINE_REPORT_FILL_PRIV_H

#include "pipeline/steps.h"
#include "weir/loader.h"
#include "weir/report.h"

/* Reads and decodes between then (NULL = open) and now, paths relative to folder; the longest calls and each file's max
 * are those of then's window (weir_sources_widen). -ENOMEM. */
int weir_fill_sources(struct weir_report_sources *to, const struct weir_loader *loader, const char *folder,
                      const struct weir_source_figures *now, const struct weir_source_figures *then);

/* What went through the HDF5 helper process in the time covered. */
void weir_fill_fallbacks(struct weir_report_fallbacks *to, const struct weir_loader_counts *now,
                         const struct weir_loader_counts *then, double wall_s);

/* A file's name without the folder that all of them lie in; its end where it is longer than size. */
void weir_fill_file_name(char *to, size_t size, const char *path, const char *folder);

/* The consumer's steps, and what completed the batches that it waited for, from then to now. */
void weir_fill_steps(struct weir_loader_report *report, const struct weir_loader *loader, const char *folder,
                     int number, const struct weir_steps *now, const struct weir_steps *then);
/* The epochs from first_epoch (from 0) on; device_bytes have been read by now (weir_storage_bytes). */
void weir_fill_epochs(struct weir_loader_report *report, const struct weir_steps *now, int first_epoch,
                      uint64_t device_bytes);
/* With measure it measures how fast memory is copied, some 15 ms, where *copy_bytes_per_s is 0, and keeps it there. */
void weir_fill_setup(struct weir_report_setup *setup, const struct weir_loader *loader, bool measure,
                     double *copy_bytes_per_s);

/* What the GPU did between then and now, wall_s long. */
void weir_fill_gpu(struct weir_report_gpu *report, const struct weir_loader *loader, const struct weir_gpu_figures *now,
                   const struct weir_gpu_figures *then, double wall_s);
/* Who decoded how much between then and now, wall_s long; the CPU's part is left to the caller. */
void weir_fill_gpu_decode(struct weir_report_gpu *gpu, const struct weir_gpu_decode_figures *now,
                          const struct weir_gpu_decode_figures *then, double wall_s);

#endif
