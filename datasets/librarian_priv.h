/* librarian_priv.h: the HDF5 library in a process of its own.
 *
 * A damaged file can crash the library, keep it busy for ever or make it write where it should not (1.10.8 does all of
 * this), and one lock lets in one thread at a time. So each librarian is a process, made when it is first asked; what
 * happens to it becomes an error of the file it was asked about, and several of them work at once. It only asks the
 * library: what it sends is checked here, and frames are placed here.
 *
 * A librarian is for one thread at a time. */
#ifndef WEIR_DATASETS_LIBRARIAN_PRIV_H
#define WEIR_DATASETS_LIBRARIAN_PRIV_H

#include "datasets/index.h"

struct weir_librarian;

/* NULL = out of memory. config is used for describing, and lent; NULL for rows alone. root: real path of the dataset's
 * folder, lent; what HDF5 objects name outside it is not opened unless allow_external. */
struct weir_librarian *weir_librarian_open(const struct weir_dataset_config *config, const char *root,
                                           bool allow_external);
void weir_librarian_close(struct weir_librarian **librarian);

/* weir_file_describe, in the other process. */
void weir_librarian_describe(struct weir_librarian *librarian, const char *path, struct weir_file_result *result);

/* weir_h5_read_row, in the other process, which keeps the last file open. -ESTALE when it is not the file that was
 * indexed. */
int weir_librarian_row(struct weir_librarian *librarian, const struct weir_dataset_file *file, const char *key,
                       uint64_t t, void *buffer, size_t capacity, size_t *length, struct weir_err *err);

#endif
