/* format_ops.h: the interface that file formats implement. A format turns one file into episodes, whose arrays a layout
 * names. */
#ifndef WEIR_DATASETS_FORMAT_OPS_H
#define WEIR_DATASETS_FORMAT_OPS_H

#include "datasets/index.h"

struct weir_format_ops {
    const char *name, *summary;
    /* Returns true when files of this name, without folders, have this format. */
    bool (*names)(const char *name);
    /* Returns true when the open folder of this name is, as a whole, a dataset of this format. NULL: no folder is. */
    bool (*is_folder)(int folder, const char *name);
    /* Returns the split that a file of this name belongs to, and its length; NULL for names without a split. */
    const char *(*split)(const char *name, size_t *length);
    /* Fills result, whose file is identified, with its episodes and the places of all their frames. Returns result->rc.
     * Any thread, each with its own opening. */
    int (*open)(struct weir_file_result *result, const char *path, struct weir_opening *opening);
    /* Reads row t of a dataset through the format's own library, for frames without extents. One thread at a time, with
     * its own opening. -ENOSPC (err not set) when *length exceeds capacity. NULL: all frames have extents. */
    int (*read_row)(struct weir_opening *opening, const struct weir_dataset_file *file, const char *key, uint64_t t,
                    void *buffer, size_t capacity, size_t *length, struct weir_err *err);
    /* Reads a whole file and verifies what reading frames does not, such as checksums of records. Calls damaged for
     * each damaged part. Returns 0 regardless of damage; the nonzero result of damaged; or negative with err, without
     * the path, when the file cannot be read. Any thread. NULL: nothing to verify. */
    int (*check)(const struct weir_dataset_file *file, weir_damaged_fn *damaged, void *user, struct weir_err *err);
    /* name of a companion file that belongs to the dataset; NULL: none */
    const char *beside;
    bool is_held; /* the result of open is valid only while it holds a resource: never use an index file */
};

extern const struct weir_format_ops weir_format_hdf5, weir_format_tfrecord, weir_format_zarr, weir_format_lmdb,
    weir_format_packed;

/* Returns the format of a file by its name, or NULL. */
const struct weir_format_ops *weir_format_of(const char *path);
/* The same for a file that the user named: HDF5 for unknown names. */
const struct weir_format_ops *weir_format_of_named(const char *path);
/* Returns the format of an open folder that is a dataset as a whole, or NULL. */
const struct weir_format_ops *weir_format_of_folder(int folder, const char *path);

#endif
