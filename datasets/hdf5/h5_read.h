/* h5_read.h: reads HDF5 through its library. Only the helper program includes hdf5.h for reading. Its HDF5 helper
 * processes run this code, each with one thread. */
#ifndef WEIR_DATASETS_HDF5_H5_READ_H
#define WEIR_DATASETS_HDF5_H5_READ_H

#include "base/numbers.h"
#include "datasets/chunks/chunk_grid.h"
#include "datasets/chunks/filters.h"
#include "datasets/store.h"
#include "weir/base.h"

#include <stddef.h>
#include <stdint.h>

struct weir_h5; /* an open file; used by one thread at a time */

/* Selects the file that subsequent calls work on. root: folder of the file's dataset (struct weir_opening), or NULL for
 * the file's own folder. Objects may not refer to files outside root, unless allow_external is set. */
void weir_h5_ask_about(const char *root, const char *path, bool allow_external);

/* Supplies the bytes of the file that subsequent calls work on; read = NULL: it is a file of this machine. read(user,
 * at, buffer, n) reads bytes that are inside the file and returns 0 or -errno. */
struct weir_h5_supply {
    uint64_t size_bytes;
    int (*read)(void *user, uint64_t at, void *buffer, size_t n);
    void *user;
};
void weir_h5_supply_from(const struct weir_h5_supply *supply);
/* Returns 0, or -EPERM with err replaced if a file was refused since weir_h5_ask_about. Results are then unreliable,
 * because the library treats files that it cannot open as absent. */
int weir_h5_refused(struct weir_err *err);
/* Failures and refused files between these calls do not count. weir_h5_search_begin returns false if there was one
 * before, or if the file is supplied, because reading all headers would take many requests. */
bool weir_h5_search_begin(void);
void weir_h5_search_end(void);

int weir_h5_open(struct weir_h5 **out, const char *path, struct weir_err *err);
void weir_h5_close(struct weir_h5 **h5);

/* Sets the group that paths are relative to: "/data/demo_0", or "" for the file's root. */
void weir_h5_enter(struct weir_h5 *h5, const char *root);

/* Returns the size of the user block. Addresses count from its end. */
uint64_t weir_h5_user_block(const struct weir_h5 *h5);

/* Returns true if all parts of the path exist and the last one is an object. */
bool weir_h5_has(struct weir_h5 *h5, const char *path);
bool weir_h5_is_group(struct weir_h5 *h5, const char *path);
bool weir_h5_has_attribute(struct weir_h5 *h5, const char *path, const char *name);
/* Returns true if the object has this attribute, its type is the bool that h5py writes, and its value is false. */
bool weir_h5_is_false(struct weir_h5 *h5, const char *path, const char *name);
/* Reads a numeric or bool attribute of the root. Returns false if it does not exist. */
bool weir_h5_number(struct weir_h5 *h5, const char *name, double *value);
/* Returns 0, or -EBADMSG with err if an attribute passed to weir_h5_is_false exists but cannot be read. */
int weir_h5_unreadable(const struct weir_h5 *h5, struct weir_err *err);

/* Reads a string attribute of the root. Returns 1 with the string, truncated to size; 0 if the attribute is missing; a
 * negative code with err if it is not a string or cannot be read. */
int weir_h5_text(struct weir_h5 *h5, const char *name, char *text, size_t size, struct weir_err *err);
/* weir_h5_texts calls `take` for each attribute of an object that is a single string. The object's path starts at the
 * file's root. name and value are lent for the call; value is NULL if the attribute is unreadable. Returns 0, or the
 * first negative result of `take`, which ends the iteration. */
typedef int weir_h5_text_fn(void *user, const char *name, const char *value);
int weir_h5_texts(struct weir_h5 *h5, const char *path, weir_h5_text_fn *take, void *user);
/* Reads the string in a dataset of one element, truncated to size. Returns false for other datasets. */
bool weir_h5_text_of(struct weir_h5 *h5, const char *path, char *text, size_t size);

/* Lists the names in a group, sorted. Returns -ENAMETOOLONG if a name is longer than WEIR_NAME_MAX - 1 bytes. The
 * caller frees *names. */
int weir_h5_list(struct weir_h5 *h5, const char *group, char (**names)[64], int *n, struct weir_err *err);

int weir_h5_shape(struct weir_h5 *h5, const char *path, struct weir_array_shape *shape, struct weir_err *err);

/* Reads a whole numeric dataset of at most 1 GiB in its own type, except that float16 becomes float32, and types over 8
 * bytes become float64. The caller frees *values. */
int weir_h5_read_numbers(struct weir_h5 *h5, const char *path, enum weir_number_type *type, void **values,
                         struct weir_array_shape *shape, struct weir_err *err);
/* Reads a dataset of strings: at most 65,536 strings of up to 63 bytes each. The caller frees *names. */
int weir_h5_read_names(struct weir_h5 *h5, const char *path, char (**names)[64], struct weir_array_shape *shape,
                       struct weir_err *err);

enum weir_h5_layout { WEIR_H5_CONTIGUOUS, WEIR_H5_CHUNKED, WEIR_H5_COMPACT, WEIR_H5_VIRTUAL, WEIR_H5_EXTERNAL };

/* The storage of a dataset, as reported by the library. */
struct weir_h5_description {
    struct weir_array_shape shape;
    enum weir_h5_layout layout;
    bool other_file;  /* an external link leads to the dataset */
    bool plain_sizes; /* addresses and lengths have 8 bytes */
    bool written;
    uint64_t offset;         /* contiguous storage: offset in the file; UINT64_MAX = none */
    uint64_t object_address; /* address of the dataset's header, without the user block */
    struct weir_chunk_grid grid;
    struct weir_filters filters;
    bool filters_kept;  /* false: the dataset has too many filters */
    int filter_missing; /* a filter that the library does not have; 0 = none */
    bool fill_is_zero, fill_is_known;
    uint8_t fill[16]; /* fill value of one element */
    bool
        has_probe; /* probe is set: the library's location of one chunk, only for the first chunked dataset of a file */
    uint64_t probe_coord[WEIR_GRID_RANK_MAX];
    struct weir_chunk probe;
};
int weir_h5_describe(struct weir_h5 *h5, const char *path, struct weir_h5_description *out, struct weir_err *err);

/* Reads row t through the library: the bytes of a raw or padded row (16-bit numbers in native order), or the contents
 * of a variable-length element. Returns -ENOSPC (err not set) if they exceed capacity. */
int weir_h5_read_row(struct weir_h5 *h5, const char *path, uint64_t t, void *buffer, size_t capacity, size_t *length,
                     struct weir_err *err);

/* Writes the version, such as "HDF5 1.10.8 (thread-safe build: one global lock)". */
void weir_h5_library(char *text, size_t size);

#endif
