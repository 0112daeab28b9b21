/* hdf5_helper.h: calls the HDF5 library in a helper process, so that a damaged file cannot take the loader down.
 * Whatever happens to the process becomes an error of the file that it was working on.
 *
 * A damaged file can crash the library, keep it busy forever or make it write outside its buffers (1.10.8 does all of
 * this). Its global lock admits one thread at a time; several processes work in parallel. The process starts with the
 * first request. It only queries the library: this side checks the replies and locates the frames.
 *
 * A helper is used by one thread at a time. */
#ifndef WEIR_DATASETS_HDF5_HDF5_HELPER_H
#define WEIR_DATASETS_HDF5_HDF5_HELPER_H

#include "datasets/file_array.h"
#include "datasets/hdf5/hdf5_open.h"

struct weir_hdf5_helper;

/* Returns NULL without memory. config, lent, is for describing; NULL: rows only. root: real path of the dataset's
 * folder, lent; files outside it are not opened unless allow_external. */
struct weir_hdf5_helper *weir_hdf5_helper_open(const struct weir_dataset_config *config, const char *root,
                                               bool allow_external);
void weir_hdf5_helper_close(struct weir_hdf5_helper **helper);

/* weir_hdf5_describe in the helper process. */
void weir_hdf5_helper_describe(struct weir_hdf5_helper *helper, const char *path, struct weir_file_result *result,
                               struct weir_hdf5_described *described);

/* weir_h5_read_row in the helper process, which keeps the last file open. -ESTALE when the file changed after it was
 * indexed. */
int weir_hdf5_helper_read_row(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *key,
                              uint64_t t, void *buffer, size_t capacity, size_t *length, struct weir_err *err);

/* Reads a whole dataset of numbers or texts in the helper process, for weir_file_array_free; float16 becomes float32,
 * types over 8 bytes become float64. -ENOENT when it does not exist; -EBADMSG, -EFBIG, -ESTALE and others, with err. */
int weir_hdf5_helper_read_array(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *key,
                                struct weir_file_array *array, struct weir_err *err);

struct weir_hdf5_member {
    char name[WEIR_NAME_MAX];
    uint64_t is_group; /* 0 or 1 */
};

/* Lists the members of a group ("/": of the file), sorted by name; free(*members). */
int weir_hdf5_helper_list(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *group,
                          struct weir_hdf5_member **members, size_t *n, struct weir_err *err);

/* Main loop of the helper process: serves requests from fd until the loader closes it. */
void weir_hdf5_helper_serve(int fd);

#endif
