/* h5_guard_priv.h: opens and reads for the HDF5 library where it would follow names from the file by itself. For
 * h5_read.c and its single-threaded processes. Identifiers are the library's hid_t. */
#ifndef WEIR_DATASETS_HDF5_H5_GUARD_PRIV_H
#define WEIR_DATASETS_HDF5_H5_GUARD_PRIV_H

#include "datasets/inside.h"
#include "weir/base.h"

#include <stdint.h>

/* The files that this process may open for the current request. */
extern struct weir_inside weir_h5_inside;

/* Returns a file access list whose driver opens files by weir_h5_inside, including external links and virtual sources,
 * so that the library reads the checked files. Negative on failure. Borrowed; do not close. */
int64_t weir_h5_guarded(void);

/* H5Dread for any storage. The library reads zeros where a virtual source or the end of an external file is missing;
 * here that is an error that names the source. space: the dataset's, with a selection; memory: as many elements.
 * must_be_written: an array that was never written is also an error. path: for messages. */
struct weir_h5_read {
    const char *path;
    int64_t memory_type;
    bool must_be_written;
};
int weir_h5_read_selected(const struct weir_h5_read *read, int64_t dataset, int64_t space, int64_t memory, void *buffer,
                          struct weir_err *err);

/* The library shortens a virtual dataset if a source of an unlimited mapping does not open. Returns 0 when all growing
 * sources open and the part after the last of each numbered series is absent or opens; else -errno with the source's
 * name. A missing part is indistinguishable from the end of its series. path: for messages. */
int weir_h5_check_extent(const char *path, int64_t dataset, struct weir_err *err);

/* Opens the files that an external or virtual dataset names, so that weir_h5_inside refuses them before any read. */
void weir_h5_look_outside(int64_t dataset);

/* ---- what these share ---- */

/* Writes the path of the file that contains a dataset. */
bool weir_h5_file_name(int64_t dataset, char name[WEIR_INSIDE_PATH_MAX]);
/* Writes the path of name in the folder of a file; "" when it is too long. */
void weir_h5_beside(const char *file, const char *name, char path[WEIR_INSIDE_PATH_MAX]);
/* Writes name after a prefix from the environment (length bytes), in which "${ORIGIN}" is the folder of from. */
void weir_h5_prefixed(const char *prefix, int length, const char *from, const char *name,
                      char path[WEIR_INSIDE_PATH_MAX]);
/* Opens and closes a file, for the verdict of weir_h5_inside. */
void weir_h5_look_at(const char *path);
void weir_h5_look_at_external(int64_t dataset, int64_t plist);
/* weir_h5_read_selected for a dataset with external files. */
int weir_h5_read_external(const struct weir_h5_read *read, int64_t dataset, int64_t plist, int64_t space,
                          int64_t memory, void *buffer, struct weir_err *err);

#endif
