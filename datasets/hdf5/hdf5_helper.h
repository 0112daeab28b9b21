/* hdf5_helper.h: calls the HDF5 library in a helper process, so that a damaged file cannot take the loader down.
 * What happens to the process becomes an error of the file that it was working on.
 *
 * A damaged file can crash the library, keep it busy for ever or make it write outside its buffers (1.10.8 does all of
 * this), and its global lock admits one thread at a time; several processes work at once. A helper starts its process
 * at the first request. The process only asks the library: this side checks what it sends and locates the frames.
 *
 * One thread at a time uses a helper. */
#ifndef WEIR_DATASETS_HDF5_HDF5_HELPER_H
#define WEIR_DATASETS_HDF5_HDF5_HELPER_H

#include "datasets/file_array.h"
#include "datasets/hdf5/hdf5_open.h"

struct weir_hdf5_helper;

/* NULL = out of memory. config is used for describing, and lent; NULL for rows alone. root: real path of the dataset's
 * folder, lent; what HDF5 objects name outside it is not opened unless allow_external. */
struct weir_hdf5_helper *weir_hdf5_helper_open(const struct weir_dataset_config *config, const char *root,
                                               bool allow_external);
void weir_hdf5_helper_close(struct weir_hdf5_helper **helper);

/* weir_hdf5_describe, in the other process. */
void weir_hdf5_helper_describe(struct weir_hdf5_helper *helper, const char *path, struct weir_file_result *result,
                               struct weir_hdf5_described *described);

/* weir_h5_read_row, in the other process, which keeps the last file open. -ESTALE when it is not the file that was
 * indexed. */
int weir_hdf5_helper_read_row(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *key,
                              uint64_t t, void *buffer, size_t capacity, size_t *length, struct weir_err *err);

/* A dataset of numbers or texts, read whole in the other process, for weir_file_array_free: float16 as float32, what is
 * wider than 8 bytes as float64. -ENOENT when there is none; -EBADMSG, -EFBIG, -ESTALE and others, with err. */
int weir_hdf5_helper_read_array(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *key,
                                struct weir_file_array *array, struct weir_err *err);

struct weir_hdf5_member {
    char name[WEIR_NAME_MAX];
    uint64_t is_group; /* 0 or 1 */
};

/* The members of a group ("/": of the file), sorted by name; free(*members). */
int weir_hdf5_helper_list(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *group,
                          struct weir_hdf5_member **members, size_t *n, struct weir_err *err);

/* The helper process: serves requests from fd until the other side closes it. */
void weir_hdf5_helper_serve(int fd);

#endif
