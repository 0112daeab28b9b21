/* safetensors.h: named arrays of float32 in one file, in the format of https://github.com/huggingface/safetensors (the
 * section "Format" of its README): the length of a JSON header in 8 bytes (little-endian), the header, the arrays. The
 * header gives for each name the type of the elements, the shape and where the array lies; arrays follow each other
 * without gaps, in C order. The header's "__metadata__" has texts by key.
 *
 * Any thread; one at a time writes a path. */
#ifndef WEIR_EXTRAS_TRAIN_SAFETENSORS_H
#define WEIR_EXTRAS_TRAIN_SAFETENSORS_H

#include "weir/base.h"

#include <stdint.h>

enum { WEIR_SAFETENSOR_DIMS = 4, WEIR_SAFETENSORS_TEXT = 128 };

/* Everything is borrowed for the call. */
struct weir_safetensor {
    const char *name;                    /* UTF-8 */
    int ndim;                            /* 0 (one value) .. WEIR_SAFETENSOR_DIMS */
    int64_t shape[WEIR_SAFETENSOR_DIMS]; /* from 0 */
    float *data; /* of shape. Writing does not change it; reading puts the values there. NULL: shape has a 0 */
};

struct weir_safetensors_meta { /* an entry of "__metadata__" */
    const char *key;
    char value[WEIR_SAFETENSORS_TEXT];
};

/* -EINVAL with a line when something stands at path that weir_safetensors_write would not replace. */
int weir_safetensors_check(const char *path, struct weir_err *err);
/* Writes the arrays in their order and the metadata into PATH.partial, which replaces path once it is on the storage.
 * So path is the old file or the new one, whatever happens; after an error PATH.partial is removed (a process that is
 * killed leaves it, and the next call overwrites it). 0; -EINVAL when a name is empty, not UTF-8, given twice or
 * "__metadata__", or path is there and is not a file; or what the system reports. err names path and what to do. */
int weir_safetensors_write(const char *path, const struct weir_safetensor *tensors, int n,
                           const struct weir_safetensors_meta *meta, int n_meta, struct weir_err *err);

/* Fills the arrays, and the values of the metadata whose keys are given (empty where the file has none). The file must
 * hold exactly these arrays, in any order; tensors NULL: the metadata alone is read, whatever the arrays. Every byte of
 * it is taken for hostile: lengths are bounded before anything is allocated, and all is checked before the first value
 * is stored, so that after -EINVAL nothing is changed. 0; -EINVAL, naming path and array, when one is missing or was
 * not asked for, is not of float32, has another shape, lies outside the file or overlaps another, when a wanted
 * metadata value is no text that fits, or when path is no such file; -ENOMEM; or what the system reports of opening and
 * reading it: a read that fails may leave arrays partly filled. */
int weir_safetensors_read(const char *path, const struct weir_safetensor *tensors, int n,
                          struct weir_safetensors_meta *meta, int n_meta, struct weir_err *err);

#endif
