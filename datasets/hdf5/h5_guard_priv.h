/* h5_guard_priv.h: opening files and reading for the HDF5 library, where it would follow what a file names by itself.
 * For h5_read.c and its processes of one thread. Identifiers are the library's hid_t. */
#ifndef WEIR_DATASETS_HDF5_H5_GUARD_PRIV_H
#define WEIR_DATASETS_HDF5_H5_GUARD_PRIV_H

#include "datasets/inside.h"
#include "weir/base.h"

#include <stdint.h>

/* What this process may open, for the question that it is answering. */
extern struct weir_inside weir_h5_inside;

/* A file access list whose driver opens by weir_h5_inside, and external links and virtual sources with it: what it
 * checked is what the library reads. Negative when there is none. Kept; not to be closed. */
int64_t weir_h5_guarded(void);

/* H5Dread, for datasets of any storage. The library reads zeros where a virtual source or the end of an external file
 * is missing; here that is an error that names the source. space: the dataset's, with what is selected of it; memory:
 * as many elements. must_be_written: an array that was never written is an error too. path: for messages. */
struct weir_h5_read {
    const char *path;
    int64_t memory_type;
    bool must_be_written;
};
int weir_h5_read_selected(const struct weir_h5_read *read, int64_t dataset, int64_t space, int64_t memory, void *buffer,
                          struct weir_err *err);

/* The library shortens a virtual dataset whose unlimited mappings have a source that does not open. 0 when those that
 * grow all open, and the part after the last of each numbered series is absent or opens; else -errno with the source's
 * name. A part that is absent cannot be told from the end of its series. path: for messages. */
int weir_h5_check_extent(const char *path, int64_t dataset, struct weir_err *err);

/* Looks at what an external or virtual dataset names, so that weir_h5_inside refuses it before anything is read. */
void weir_h5_look_outside(int64_t dataset);

/* ---- what these share ---- */

/* Path of the file that a dataset is in. */
bool weir_h5_file_name(int64_t dataset, char name[WEIR_INSIDE_PATH_MAX]);
/* name in the folder of a file; "" when that is too long. */
void weir_h5_beside(const char *file, const char *name, char path[WEIR_INSIDE_PATH_MAX]);
/* name behind a prefix of the environment (length bytes), in which "${ORIGIN}" stands for the folder of from. */
void weir_h5_prefixed(const char *prefix, int length, const char *from, const char *name,
                      char path[WEIR_INSIDE_PATH_MAX]);
/* Opens and closes, for what weir_h5_inside has to say. */
void weir_h5_look_at(const char *path);
void weir_h5_look_at_external(int64_t dataset, int64_t plist);
/* The part of weir_h5_read_selected for a dataset with external files. */
int weir_h5_read_external(const struct weir_h5_read *read, int64_t dataset, int64_t plist, int64_t space,
                          int64_t memory, void *buffer, struct weir_err *err);

#endif
