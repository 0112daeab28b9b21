/* format_ops.h: the interface that file formats implement. A format turns one file into episodes. A layout names the
 * arrays of each episode. */
#ifndef WEIR_DATASETS_FORMAT_OPS_H
#define WEIR_DATASETS_FORMAT_OPS_H

#include "datasets/index.h"
#include "datasets/open_dataset.h"

#include <string.h>

struct weir_format_ops {
    const char *name, *summary;
    /* Returns true if files with this name (without folders) have this format. NULL: the format has only folders. */
    bool (*names)(const char *name);
    /* Returns true if the open folder with this name is, as a whole, a dataset of this format. NULL: folders never are.
     */
    bool (*is_folder)(int folder, const char *name);
    /* Returns the split in a file's name, and its length in *length. Returns NULL if the name contains no split. */
    const char *(*split)(const char *name, size_t *length);
    /* Adds the files that are missing among those of a folder, sorted and of one split, to left_out, as "PATH: why".
     * Returns 0 or a negative code. NULL: names do not show it. */
    int (*missing)(const struct weir_path_list *files, struct weir_path_list *left_out);
    /* Fills result with the file's episodes and the locations of all their frames; the file in result is already
     * identified. Returns result->rc. Any thread can call it, with an opening of its own. */
    int (*open)(struct weir_file_result *result, const char *path, struct weir_opening *opening);
    /* Reads frame t of a camera in this file through the format's own library, for frames without extents. One thread
     * at a time, with an opening of its own. Returns -ENOSPC (err not set) if the frame exceeds capacity. NULL: all
     * frames have extents. */
    int (*read_row)(struct weir_opening *opening, const struct weir_file_index *file, struct weir_frame_map *map,
                    uint64_t t, void *buffer, size_t capacity, size_t *length, struct weir_err *err);
    /* Finds the locations of a map's frames (map->located) by reading the file. Any thread, and several may find the
     * same at once. Returns 0 or a negative code. NULL: open() finds all. */
    int (*find_frames)(struct weir_origin *origin, const struct weir_file_index *file, struct weir_frame_map *map,
                       struct weir_err *err);
    /* Reads a whole file and verifies the parts that loading frames does not verify, such as checksums of records.
     * Calls `damaged` for each damaged part. Returns 0 whether or not parts are damaged; the result of `damaged` if it
     * is nonzero; or a negative code with err (without the path) if the file cannot be read. Any thread. NULL: nothing
     * to verify. */
    int (*check)(struct weir_origin *origin, const struct weir_dataset_file *file, weir_damaged_fn *damaged, void *user,
                 struct weir_err *err);
    /* Reports the faults of a dataset that loading its frames does not show. See weir_dataset_review. NULL: none. */
    int (*review)(struct weir_origin *origin, const struct weir_dataset_file *file, const char *episodes,
                  weir_review_fn *found, void *user, struct weir_err *err);
    /* name of a companion file that belongs to the dataset; NULL: none */
    const char *beside;
    /* Returns the file that stands for a folder with this name on a server, which contains it if it is a dataset. NULL:
     * the name is that of a file. NULL instead of the function: the format has no folders on servers. */
    const char *(*mark)(const char *name);
    bool reads_origins;   /* opens files of an origin (origin/origin.h), not only of this machine */
    bool has_filter_keys; /* files can name lists of their episodes (config.filter_key) */
    bool is_held;         /* open() holds a resource that its result depends on, so index files are never used */
};

extern const struct weir_format_ops weir_format_hdf5, weir_format_tfrecord, weir_format_zarr, weir_format_lmdb,
    weir_format_packed, weir_format_lerobot;

/* Returns the format of a file according to its name, or NULL. */
const struct weir_format_ops *weir_format_of(const char *path);
/* Like weir_format_of, but for a file that the user named: if the name is unknown, HDF5 is assumed. */
const struct weir_format_ops *weir_format_of_named(const char *path);
/* Adds the files that are missing among those of a folder to left_out. See missing() above. */
int weir_find_missing(const struct weir_path_list *files, struct weir_path_list *left_out);
/* Returns the format of a file of a dataset. */
const struct weir_format_ops *weir_file_format(const struct weir_file_index *file);
/* Returns the format of an open folder that is a dataset as a whole, or NULL. */
const struct weir_format_ops *weir_format_of_folder(int folder, const char *path);

/* Returns the file that stands for a folder of this format on a server; NULL if the path is that of a file. */
static inline const char *weir_format_mark(const struct weir_format_ops *format, const char *path)
{
    const char *slash = strrchr(path, '/');
    return format->mark ? format->mark(slash ? slash + 1 : path) : NULL;
}
/* Returns the format whose folders contain a file of this name ("meta/info.json"), or NULL. */
const struct weir_format_ops *weir_format_of_mark(const char *name);
/* Returns the format of a folder on a server, or NULL. */
const struct weir_format_ops *weir_format_of_url(struct weir_origin *origin, const char *url);

#endif
