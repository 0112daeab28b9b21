/* h5_guard_priv.h: opens and reads files in the cases in which the HDF5 library would by itself follow names from the
 * file. For h5_read.c and its single-threaded processes. Identifiers are the library's hid_t. */
#ifndef WEIR_DATASETS_HDF5_H5_GUARD_PRIV_H
#define WEIR_DATASETS_HDF5_H5_GUARD_PRIV_H

#include "weir/base.h"

#include "datasets/hdf5/h5_read.h"

#include <stdint.h>

/* ---- inside.c: decides which files the HDF5 objects of an episode may refer to through external links, external
 * storage and virtual sources.
 *
 * Paths in the file are hostile: a recording must not be able to make the password file part of the training data.
 * Links in the file system are trusted: an episode, a folder of episodes, or a file next to an episode can be a
 * symbolic link (as in a Hugging Face cache). One thread. */

enum { WEIR_INSIDE_PATH_MAX = 4096 };

struct weir_inside {
    char episode[WEIR_INSIDE_PATH_MAX]; /* path of the episode's file, which may be in any folder */
    char root[WEIR_INSIDE_PATH_MAX]; /* real path of the dataset's folder; if unknown, that of the episode's own folder
                                      */
    char folder[WEIR_INSIDE_PATH_MAX];      /* real path of the episode's own folder, which a link may have led to */
    bool all;                               /* --allow-external was given */
    char refusal[2 * WEIR_INSIDE_PATH_MAX]; /* the first refused file, with the reason; "" = none */
};

/* root: real path of the dataset's folder, or NULL to permit only the episode's folder. Clears the refusal. */
void weir_inside_set(struct weir_inside *inside, const char *root, const char *episode, bool all);

/* Records the refusal of a file, unless one is recorded. Returns -EPERM. */
int weir_inside_refuse(struct weir_inside *inside, const char *path, const char *why);

/* Opens a regular file for reading, without waiting if it is a FIFO. Returns the descriptor or -errno; -EPERM with
 * inside->refusal for a file that may not be read. A path is permitted if its last component lies in one of the two
 * folders, even if it is a link that leads elsewhere, or if its target lies there. The checked file is the one that is
 * opened, even if the path is replaced in the meantime. */
int weir_inside_open(struct weir_inside *inside, const char *path);

/* ---- h5_guard.c ---- */

/* The files that this process may open for the current request. */
extern struct weir_inside weir_h5_inside;
/* Reads the current request's file if it is not a file of this machine; all other files are then refused. */
extern struct weir_h5_supply weir_h5_supply;

/* Returns a file access property list whose driver opens only files that weir_h5_inside permits, also for external
 * links and virtual sources. So the library reads exactly the files that were checked. Negative on failure. Borrowed;
 * do not close it. */
int64_t weir_h5_guarded(void);

/* weir_h5_read_selected calls H5Dread for any storage. If a virtual source or the end of an external file is missing,
 * the library would return zeros; here this is an error that names the source. space: the dataset's dataspace, with a
 * selection; memory: a dataspace with as many selected elements. must_be_written: an array that was never written is
 * also an error. path: for messages. */
struct weir_h5_read {
    const char *path;
    int64_t memory_type;
    bool must_be_written;
};
int weir_h5_read_selected(const struct weir_h5_read *read, int64_t dataset, int64_t space, int64_t memory, void *buffer,
                          struct weir_err *err);

/* If a source of an unlimited mapping cannot be opened, the library shortens the virtual dataset without an error. This
 * function returns 0 if all sources of unlimited mappings can be opened and if, after the last source of each numbered
 * series, the next one is either absent or readable. Otherwise returns -errno with the source's name. A missing source
 * in a series cannot be distinguished from the end of the series. path: for messages. */
int weir_h5_check_extent(const char *path, int64_t dataset, struct weir_err *err);

/* Opens the files that an external or virtual dataset refers to, so that weir_h5_inside can refuse them before any
 * read. */
void weir_h5_look_outside(int64_t dataset);

/* ---- functions for h5_external.c and h5_sources.c ---- */

/* Writes the path of the file that contains a dataset. */
bool weir_h5_file_name(int64_t dataset, char name[WEIR_INSIDE_PATH_MAX]);
/* Writes the path of `name` in the folder of `file`; "" if the path is too long. */
void weir_h5_beside(const char *file, const char *name, char path[WEIR_INSIDE_PATH_MAX]);
/* Writes `name` after a prefix of `length` bytes from the environment. In the prefix, "${ORIGIN}" stands for the folder
 * of the file `from`. */
void weir_h5_prefixed(const char *prefix, int length, const char *from, const char *name,
                      char path[WEIR_INSIDE_PATH_MAX]);
/* Opens and closes a file, so that weir_h5_inside checks it. */
void weir_h5_look_at(const char *path);
void weir_h5_look_at_external(int64_t dataset, int64_t plist);
/* Like weir_h5_read_selected, for a dataset with external files. */
int weir_h5_read_external(const struct weir_h5_read *read, int64_t dataset, int64_t plist, int64_t space,
                          int64_t memory, void *buffer, struct weir_err *err);

#endif
