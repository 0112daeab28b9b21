/* hdf5_helper.h: calls the HDF5 library in a helper process, so that a damaged file cannot crash the loader. Any
 * failure of that process becomes an error of the file that it was working on.
 *
 * A damaged file can crash the library, keep it busy forever or make it write outside its buffers (1.10.8 does all of
 * this). Its global lock admits one thread at a time, but several processes can work in parallel. The process starts
 * with the first request. It only queries the library; this side checks the replies and locates the frames.
 *
 * A helper is used by one thread at a time. */
#ifndef WEIR_DATASETS_HDF5_HDF5_HELPER_H
#define WEIR_DATASETS_HDF5_HDF5_HELPER_H

#include "datasets/file_array.h"
#include "datasets/hdf5/hdf5_open.h"

struct weir_hdf5_helper;

/* Returns NULL if out of memory. config is lent and needed for describing files; NULL: only rows are read. root: real
 * path of the dataset's folder, lent; files outside it are not opened unless allow_external is set. */
struct weir_hdf5_helper *weir_hdf5_helper_open(const struct weir_dataset_config *config, const char *root,
                                               bool allow_external);
/* Declares that the files are those of an origin, which the caller's side reads for the process. */
void weir_hdf5_helper_use(struct weir_hdf5_helper *helper, struct weir_origin *origin);
void weir_hdf5_helper_close(struct weir_hdf5_helper **helper);

/* Runs weir_hdf5_describe in the helper process. */
void weir_hdf5_helper_describe(struct weir_hdf5_helper *helper, const char *path, struct weir_file_result *result,
                               struct weir_hdf5_described *described);

/* Runs weir_h5_read_row in the helper process, which keeps the last file open. Returns -ESTALE if the file changed
 * after it was indexed. */
int weir_hdf5_helper_read_row(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *key,
                              uint64_t t, void *buffer, size_t capacity, size_t *length, struct weir_err *err);

/* Reads a whole dataset of numbers or strings in the helper process; float16 becomes float32, and types over 8 bytes
 * become float64. Free the array with weir_file_array_free. Returns -ENOENT if the dataset does not exist, -EBADMSG,
 * -EFBIG, -ESTALE and others, all with err. */
int weir_hdf5_helper_read_array(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *key,
                                struct weir_file_array *array, struct weir_err *err);

struct weir_hdf5_member {
    char name[WEIR_NAME_MAX];
    uint64_t is_group; /* 0 or 1 */
};

/* Lists the members of a group ("/" = the file's root), sorted by name. The caller frees *members. */
int weir_hdf5_helper_list(struct weir_hdf5_helper *helper, const struct weir_dataset_file *file, const char *group,
                          struct weir_hdf5_member **members, size_t *n, struct weir_err *err);

/* Main loop of the helper process: serves requests from fd until the loader closes it. */
void weir_hdf5_helper_serve(int fd);

/* Returns true if an episode and its n_maps descriptions are plausible. They come from the helper process, so they may
 * be any bytes. */
bool weir_hdf5_described_is_sane(const struct weir_episode *episode, const struct weir_h5_description *cameras);

#endif
