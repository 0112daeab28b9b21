/* fill_priv.h: fills in a report with the differences between two moments of a loader. */
#ifndef WEIR_PIPELINE_REPORT_FILL_PRIV_H
#define WEIR_PIPELINE_REPORT_FILL_PRIV_H

#include "pipeline/samples/steps.h"
#include "weir/loader.h"
#include "weir/report.h"

/* Fills in reads and decoding from then (NULL: the beginning) to now, with paths relative to folder. The longest calls
 * and each file's max are those of then's window (weir_sources_widen). Returns 0 or -ENOMEM. */
int weir_fill_sources(struct weir_report_sources *to, const struct weir_loader *loader, const char *folder,
                      const struct weir_source_figures *now, const struct weir_source_figures *then);

/* Fills in the reads through the HDF5 helper process. */
void weir_fill_fallbacks(struct weir_report_fallbacks *to, const struct weir_loader_counts *now,
                         const struct weir_loader_counts *then, double wall_s);

/* Copies a file's name without the folder common to all; keeps the end of a name longer than size. */
void weir_fill_file_name(char *to, size_t size, const char *path, const char *folder);

/* Fills in the consumer's steps from then to now, and the tasks that completed the batches it waited for. */
void weir_fill_steps(struct weir_loader_report *report, const struct weir_loader *loader, const char *folder,
                     int number, const struct weir_steps *now, const struct weir_steps *then);
/* Fills in the epochs from first_epoch (from 0) on. device_bytes: read from storage so far (weir_storage_bytes). */
void weir_fill_epochs(struct weir_loader_report *report, const struct weir_steps *now, int first_epoch,
                      uint64_t device_bytes);
/* measure: measures the memory copy rate, in about 15 ms, if *copy_bytes_per_s is 0, and stores it there. */
void weir_fill_setup(struct weir_report_setup *setup, const struct weir_loader *loader, bool measure,
                     double *copy_bytes_per_s);

/* Fills in the GPU's figures from then to now, a time of wall_s. */
void weir_fill_gpu(struct weir_report_gpu *report, const struct weir_loader *loader, const struct weir_gpu_figures *now,
                   const struct weir_gpu_figures *then, double wall_s);
/* Fills in frames and times per decoder from then to now, a time of wall_s; the caller adds the CPU's. */
void weir_fill_gpu_decode(struct weir_report_gpu *gpu, const struct weir_gpu_decode_figures *now,
                          const struct weir_gpu_decode_figures *then, double wall_s);

#endif
