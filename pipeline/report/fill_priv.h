/* fill_priv.h: fills in a report with the differences between two moments of a loader. */
#ifndef WEIR_PIPELINE_REPORT_FILL_PRIV_H
#define WEIR_PIPELINE_REPORT_FILL_PRIV_H

#include "pipeline/samples/steps.h"
#include "weir/loader.h"
#include "weir/report.h"

/* Fills in reads and decoding between `then` (NULL = the beginning) and `now`, with paths relative to folder. The
 * longest calls and each file's max are those of the window that begins at `then` (weir_sources_widen). Returns 0 or
 * -ENOMEM. */
int weir_fill_sources(struct weir_report_sources *to, const struct weir_loader *loader, const char *folder,
                      const struct weir_source_figures *now, const struct weir_source_figures *then);

/* Fills in the reads through the HDF5 helper process. */
void weir_fill_server(struct weir_report_server *to, const struct weir_loader_counts *now,
                      const struct weir_loader_counts *then, double wall_s);
void weir_fill_fallbacks(struct weir_report_fallbacks *to, const struct weir_loader_counts *now,
                         const struct weir_loader_counts *then, double wall_s);

/* Copies a file's path without the folder that all files share. If the rest is longer than size, only its end is kept.
 */
void weir_fill_file_name(char *to, size_t size, const char *path, const char *folder);

/* Fills in the consumer's steps between `then` and `now`, and the tasks that completed the batches that it waited for.
 */
void weir_fill_steps(struct weir_loader_report *report, const struct weir_loader *loader, const char *folder,
                     int number, const struct weir_steps *now, const struct weir_steps *then);
/* Fills in the epochs from first_epoch on (counted from 0). device_bytes: bytes read from storage so far
 * (weir_storage_bytes). */
void weir_fill_epochs(struct weir_loader_report *report, const struct weir_steps *now, int first_epoch,
                      uint64_t device_bytes);
enum { WEIR_COPY_RATE_BYTES = 32 << 20 }; /* memory in which the copy rate is measured */

/* measure: if *copy_bytes_per_s is 0, measures the memory copy rate, which takes about 15 ms, and stores it there. */
void weir_fill_setup(struct weir_report_setup *setup, const struct weir_loader *loader, bool measure,
                     double *copy_bytes_per_s);

/* Fills in the GPU's figures between `then` and `now`, which are wall_s apart. */
void weir_fill_gpu(struct weir_report_gpu *report, const struct weir_loader *loader, const struct weir_gpu_figures *now,
                   const struct weir_gpu_figures *then, double wall_s);
/* Fills in frames and times per GPU decoder between `then` and `now`, which are wall_s apart. The caller adds the
 * CPU's. */
void weir_fill_gpu_decode(struct weir_report_gpu *gpu, const struct weir_gpu_decode_figures *now,
                          const struct weir_gpu_decode_figures *then, double wall_s);

#endif
