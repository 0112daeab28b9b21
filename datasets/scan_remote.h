/* scan_remote.h: finds the files of datasets on servers. */
#ifndef WEIR_DATASETS_SCAN_REMOTE_H
#define WEIR_DATASETS_SCAN_REMOTE_H

#include "weir/dataset.h"

struct weir_origin;

/* Opens the origin of the dataset's files; *origin is NULL for files of this machine. */
int weir_remote_origin(const struct weir_dataset_config *config, struct weir_origin **origin, struct weir_err *err);
/* Ends the use of the configuration's callback, when opening is complete. origin may be NULL. */
void weir_remote_opened(struct weir_origin *origin);

/* Reads a file of at most 64 MiB of a server, with the endpoint and the callback of the configuration, whose path is
 * the file's URL. The caller frees *text. Returns 0, or a negative code with err. */
int weir_remote_text(const struct weir_dataset_config *config, char **text, size_t *n, struct weir_err *err);

/* Returns the origin of an open dataset's files; NULL = this machine. */
struct weir_origin *weir_dataset_origin(const struct weir_dataset *dataset);

/* Makes all reads of files on servers fail with -ECANCELED, now and later. Safe in signal handlers. */
void weir_dataset_cancel_reads(const struct weir_dataset *dataset);
/* While the calling thread waits for a server, polls the callback, which ends all reads if it returns true; NULL = not
 * any more. */
void weir_dataset_watch(const struct weir_dataset *dataset, bool (*interrupted)(void *user), void *user);
/* Lists the files of a dataset, on this machine or on a server, like weir_scan. */
int weir_scan_config(const struct weir_dataset_config *config, struct weir_path_list *files,
                     struct weir_path_list *left_out, struct weir_err *err);

/* Like weir_scan. */
int weir_scan_remote(struct weir_origin *origin, const char *url, struct weir_path_list *files,
                     struct weir_path_list *left_out, struct weir_err *err);

#endif
