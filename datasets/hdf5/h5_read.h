/* h5_read.h: reads HDF5 through its library. Only the helper program includes hdf5.h for reading; its HDF5 helper
 * processes run this code, one thread each. */
#ifndef WEIR_DATASETS_HDF5_H5_READ_H
#define WEIR_DATASETS_HDF5_H5_READ_H

#include "base/numbers.h"
#include "datasets/chunks/filters.h"
#include "datasets/hdf5/chunk_index.h"
#include "datasets/store.h"
#include "weir/base.h"

#include <stddef.h>
#include <stdint.h>

struct weir_h5; /* an open file; one thread at a time */

/* Selects the file that subsequent calls work on, of a dataset in folder root (weir_inside_root; NULL = the file's own
 * folder). Objects may not refer to files outside, unless allow_external. */
void weir_h5_ask_about(const char *root, const char *path, bool allow_external);
/* Returns 0, or -EPERM with err replaced if a file was refused since then: results are unreliable, because the library
 * treats files that it cannot open as absent. */
int weir_h5_refused(struct weir_err *err);

int weir_h5_open(struct weir_h5 **out, const char *path, struct weir_err *err);
void weir_h5_close(struct weir_h5 **h5);

/* Sets the group that paths start from: "/data/demo_0", or "" for the file's root. */
void weir_h5_enter(struct weir_h5 *h5, const char *root);

/* Returns the size of the user block, at which addresses start. */
uint64_t weir_h5_user_block(const struct weir_h5 *h5);

/* Returns true when all parts of the path exist and the last is an object. */
bool weir_h5_has(struct weir_h5 *h5, const char *path);
bool weir_h5_is_group(struct weir_h5 *h5, const char *path);
bool weir_h5_has_attribute(struct weir_h5 *h5, const char *path, const char *name);
/* Returns true when the root's attribute is a bool, as h5py writes it, and false. */
bool weir_h5_is_false(struct weir_h5 *h5, const char *name);
/* Returns 0; or -EBADMSG with err if an attribute of weir_h5_is_false exists and cannot be read. */
int weir_h5_unreadable(const struct weir_h5 *h5, struct weir_err *err);

/* Reads a text attribute of the root. 1 with the text, cut to size; 0 when it is missing; negative with err when it is
 * not a text or cannot be read. */
int weir_h5_text(struct weir_h5 *h5, const char *name, char *text, size_t size, struct weir_err *err);
/* Calls take for each attribute of an object (path from the file's root) that is a single text; both are lent for the
 * call. value is NULL for an unreadable attribute. 0, or the first negative result of take, which ends the iteration.
 */
typedef int weir_h5_text_fn(void *user, const char *name, const char *value);
int weir_h5_texts(struct weir_h5 *h5, const char *path, weir_h5_text_fn *take, void *user);
/* Reads the text of a dataset of one element, cut to size; false for other datasets. */
bool weir_h5_text_of(struct weir_h5 *h5, const char *path, char *text, size_t size);

/* Lists the names in a group, sorted, each at most WEIR_NAME_MAX - 1 long, else -ENAMETOOLONG. free(*names). */
int weir_h5_list(struct weir_h5 *h5, const char *group, char (**names)[64], int *n, struct weir_err *err);

int weir_h5_shape(struct weir_h5 *h5, const char *path, struct weir_array_shape *shape, struct weir_err *err);

/* Reads a whole numeric dataset of at most 1 GiB in its own type; float16 becomes float32, and types over 8 bytes
 * become float64. free(*values). */
int weir_h5_read_numbers(struct weir_h5 *h5, const char *path, enum weir_number_type *type, void **values,
                         struct weir_array_shape *shape, struct weir_err *err);
/* Reads the texts of a dataset, up to 63 bytes each and at most 65,536. free(*names). */
int weir_h5_read_names(struct weir_h5 *h5, const char *path, char (**names)[64], struct weir_array_shape *shape,
                       struct weir_err *err);

enum weir_h5_layout { WEIR_H5_CONTIGUOUS, WEIR_H5_CHUNKED, WEIR_H5_COMPACT, WEIR_H5_VIRTUAL, WEIR_H5_EXTERNAL };

/* The library's facts about the storage of a dataset. */
struct weir_h5_description {
    struct weir_array_shape shape;
    enum weir_h5_layout layout;
    bool other_file;  /* reached by an external link */
    bool plain_sizes; /* addresses and lengths of 8 bytes */
    bool written;
    uint64_t offset;         /* contiguous: file offset; UINT64_MAX = none */
    uint64_t object_address; /* of its header, without user block */
    struct weir_chunk_grid grid;
    struct weir_filters filters;
    bool filters_kept;  /* false: too many filters */
    int filter_missing; /* a filter that the library lacks; 0 = none */
    bool fill_is_zero, fill_is_known;
    uint8_t fill[16]; /* one element */
    bool has_probe;   /* for the first chunked dataset of a file: the library's location of one chunk */
    uint64_t probe_coord[WEIR_GRID_RANK_MAX];
    struct weir_chunk probe;
};
int weir_h5_describe(struct weir_h5 *h5, const char *path, struct weir_h5_description *out, struct weir_err *err);

/* Reads row t through the library: bytes of a raw or padded row (16-bit numbers in native order), or the contents of a
 * variable-length element. -ENOSPC (err not set) when *length exceeds capacity. */
int weir_h5_read_row(struct weir_h5 *h5, const char *path, uint64_t t, void *buffer, size_t capacity, size_t *length,
                     struct weir_err *err);

/* Writes "HDF5 1.10.8 (thread-safe build, one global lock)". */
void weir_h5_library(char *text, size_t size);

#endif
