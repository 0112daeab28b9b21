/* format_ops.h: what a format of files implements. A format turns one file into episodes, whose datasets a layout
 * names. */
#ifndef WEIR_DATASETS_FORMAT_OPS_H
#define WEIR_DATASETS_FORMAT_OPS_H

#include "datasets/index.h"

struct weir_format_ops {
    const char *name, *summary;
    /* Whether files of this name, without folders, are of this format. */
    bool (*names)(const char *name);
    /* Whether the open folder of this name is a dataset of this format, as a whole. NULL: no folder is. */
    bool (*is_folder)(int folder, const char *name);
    /* The split of the dataset that a file of this name belongs to, and its length; NULL where names say none. */
    const char *(*split)(const char *name, size_t *length);
    /* Fills result, whose file is identified, with its episodes, all of their frames located. Returns result->rc. Any
     * thread, with an opening of its own. */
    int (*open)(struct weir_file_result *result, const char *path, struct weir_opening *opening);
    /* Reads row t of a dataset through the format's own library, for frames without extents. One thread at a time, with
     * an opening of its own. *length: -ENOSPC (err not set) when it is over capacity. NULL: all frames have extents. */
    int (*read_row)(struct weir_opening *opening, const struct weir_dataset_file *file, const char *key, uint64_t t,
                    void *buffer, size_t capacity, size_t *length, struct weir_err *err);
    /* Reads all of a file and checks what nobody checks while frames are read, such as checksums of records: tells
     * damaged of each part that is not as it was written. 0 whatever was found; what damaged returned, when that is not
     * 0; negative with err, without the path, when the file cannot be read. Any thread. NULL: there is nothing to
     * check.
     */
    int (*check)(const struct weir_dataset_file *file, weir_damaged_fn *damaged, void *user, struct weir_err *err);
    /* Name of a file beside one of this format that is part of the dataset; NULL: there is none. */
    const char *beside;
    bool is_held; /* what open finds is good while something is held that it opens: never from an index file */
};

extern const struct weir_format_ops weir_format_hdf5, weir_format_tfrecord, weir_format_zarr, weir_format_lmdb,
    weir_format_packed;

/* The format of a file by its name; NULL when it is none's. */
const struct weir_format_ops *weir_format_of(const char *path);
/* The same for a file that the user named: HDF5 when its name is none's. */
const struct weir_format_ops *weir_format_of_named(const char *path);
/* The format of an open folder that is a dataset as a whole; NULL when it is none's. */
const struct weir_format_ops *weir_format_of_folder(int folder, const char *path);

#endif
