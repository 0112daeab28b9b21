/* h5_read.h: reading HDF5. h5_read.c, h5_attributes.c, h5_numbers.c, h5_errors.c, h5_guard.c,
 * h5_sources.c and h5_external.c alone include hdf5.h for reading; they are in the helper program (datasets/helper) and
 * run in its HDF5 helper processes, one thread each. */
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

/* Calls from now on are about this file of a dataset in folder root (weir_inside_root; NULL = the file's own folder):
 * what its objects name elsewhere is not opened, unless allow_external. */
void weir_h5_ask_about(const char *root, const char *path, bool allow_external);
/* 0, or -EPERM with err replaced when something was refused since then: the results cannot be trusted, because the
 * library treats what it cannot open as absent. */
int weir_h5_refused(struct weir_err *err);

int weir_h5_open(struct weir_h5 **out, const char *path, struct weir_err *err);
void weir_h5_close(struct weir_h5 **h5);

/* Paths given from now on lie below this group: "/data/demo_0", or "" for the whole file. */
void weir_h5_enter(struct weir_h5 *h5, const char *root);

/* Bytes before HDF5's own: addresses count from there. */
uint64_t weir_h5_user_block(const struct weir_h5 *h5);

/* True when every part of the path exists and leads to an object. */
bool weir_h5_has(struct weir_h5 *h5, const char *path);
bool weir_h5_is_group(struct weir_h5 *h5, const char *path);
bool weir_h5_has_attribute(struct weir_h5 *h5, const char *path, const char *name);
/* True when the file has this attribute at its root, a bool as h5py writes it, and it is false. */
bool weir_h5_is_false(struct weir_h5 *h5, const char *name);
/* 0; or -EBADMSG with err when an attribute that weir_h5_is_false was asked about exists and cannot be read. */
int weir_h5_unreadable(const struct weir_h5 *h5, struct weir_err *err);

/* 1 and the text that the file has as this attribute at its root, cut to size; 0 when it has none; negative with err
 * when it is no text or cannot be read. */
int weir_h5_text(struct weir_h5 *h5, const char *name, char *text, size_t size, struct weir_err *err);
/* Tells take of each attribute of an object (its path from the file's root) that is one text, by name; both are lent
 * for the call. The value is NULL for one that cannot be read. 0, or what take returned when that was negative: it ends
 * there. */
typedef int weir_h5_text_fn(void *user, const char *name, const char *value);
int weir_h5_texts(struct weir_h5 *h5, const char *path, weir_h5_text_fn *take, void *user);
/* The text that a dataset of one element holds, cut to size; false when it is none. */
bool weir_h5_text_of(struct weir_h5 *h5, const char *path, char *text, size_t size);

/* Names in a group, sorted; each at most WEIR_NAME_MAX - 1 long, -ENAMETOOLONG for longer ones.
 * free(*names). */
int weir_h5_list(struct weir_h5 *h5, const char *group, char (**names)[64], int *n, struct weir_err *err);

int weir_h5_shape(struct weir_h5 *h5, const char *path, struct weir_array_shape *shape, struct weir_err *err);

/* Reads a numeric dataset whole, in its own type (but float16 as float32, and what is wider than 8 bytes as float64);
 * at most 1 GiB. free(*values). */
int weir_h5_read_numbers(struct weir_h5 *h5, const char *path, enum weir_number_type *type, void **values,
                         struct weir_array_shape *shape, struct weir_err *err);
/* The texts of a dataset, row by row, of up to 63 bytes each; at most 65,536. free(*names). */
int weir_h5_read_names(struct weir_h5 *h5, const char *path, char (**names)[64], struct weir_array_shape *shape,
                       struct weir_err *err);

enum weir_h5_layout { WEIR_H5_CONTIGUOUS, WEIR_H5_CHUNKED, WEIR_H5_COMPACT, WEIR_H5_VIRTUAL, WEIR_H5_EXTERNAL };

/* All that the library reports about how a dataset is stored. */
struct weir_h5_description {
    struct weir_array_shape shape;
    enum weir_h5_layout layout;
    bool other_file;  /* lies behind an external link */
    bool plain_sizes; /* addresses and lengths of 8 bytes */
    bool written;
    uint64_t offset;         /* contiguous: from the start of the file; UINT64_MAX = none */
    uint64_t object_address; /* of its header, user block left out */
    struct weir_chunk_grid grid;
    struct weir_filters filters;
    bool filters_kept;  /* false: there are more than fit */
    int filter_missing; /* one that the library here cannot undo; 0 = none */
    bool fill_is_zero, fill_is_known;
    uint8_t fill[16]; /* one element */
    bool has_probe;   /* the first chunked dataset of a file: one chunk as the library sees it */
    uint64_t probe_coord[WEIR_GRID_RANK_MAX];
    struct weir_chunk probe;
};
int weir_h5_describe(struct weir_h5 *h5, const char *path, struct weir_h5_description *out, struct weir_err *err);

/* Reads row t through the library: bytes of a raw or padded row (16-bit numbers in the machine's order), or the
 * content of a variable-length element. *length is its size; -ENOSPC (err not set) when that is over capacity. */
int weir_h5_read_row(struct weir_h5 *h5, const char *path, uint64_t t, void *buffer, size_t capacity, size_t *length,
                     struct weir_err *err);

/* "HDF5 1.10.8 (thread-safe build, one global lock)". */
void weir_h5_library(char *text, size_t size);

#endif
