/* safetensors.h: named float32 arrays in one file, in the format of https://github.com/huggingface/safetensors (section
 * "Format" of its README): the length of a JSON header in 8 bytes (little-endian), the header, the arrays. For each
 * name the header has the element type, the shape and the position of the array. Arrays are contiguous, in C order.
 * "__metadata__" in the header maps keys to texts.
 *
 * Any thread; one writer per path. */
#ifndef WEIR_EXTRAS_TRAIN_SAFETENSORS_H
#define WEIR_EXTRAS_TRAIN_SAFETENSORS_H

#include "weir/base.h"

#include <stdint.h>

enum { WEIR_SAFETENSOR_DIMS = 4, WEIR_SAFETENSORS_TEXT = 128 };

/* All pointers are borrowed for the call. */
struct weir_safetensor {
    const char *name;                    /* UTF-8 */
    int ndim;                            /* 0 (one value) .. WEIR_SAFETENSOR_DIMS */
    int64_t shape[WEIR_SAFETENSOR_DIMS]; /* each at least 0 */
    float *data;                         /* values; input of a write, output of a read. NULL if shape has a 0 */
};

struct weir_safetensors_meta { /* an entry of "__metadata__" */
    const char *key;
    char value[WEIR_SAFETENSORS_TEXT];
};

/* -EINVAL if path exists and weir_safetensors_write would refuse to replace it. */
int weir_safetensors_check(const char *path, struct weir_err *err);
/* Writes the arrays in order, and the metadata, to PATH.partial, which replaces path once it is on the storage. So path
 * is always the old file or the new one. After an error PATH.partial is removed; a killed process leaves it, and the
 * next call overwrites it. 0, -EINVAL (a name is empty, not UTF-8, given twice or "__metadata__"; path exists and is
 * not a regular file) or a system error. err names path and what to do. */
int weir_safetensors_write(const char *path, const struct weir_safetensor *tensors, int n,
                           const struct weir_safetensors_meta *meta, int n_meta, struct weir_err *err);

/* Reads the arrays, and the metadata values of the given keys (empty if missing). The file must hold exactly these
 * arrays, in any order; with tensors NULL only the metadata is read. The file is not trusted: lengths are bounded
 * before any allocation, and everything is checked before the first value is stored, so -EINVAL changes nothing. 0,
 * -EINVAL (err names path and array: missing, unexpected, not float32, wrong shape, out of bounds, overlapping; a
 * metadata value that is not a text or too long; not such a file), -ENOMEM or a system error; a failed read may leave
 * arrays partly filled. */
int weir_safetensors_read(const char *path, const struct weir_safetensor *tensors, int n,
                          struct weir_safetensors_meta *meta, int n_meta, struct weir_err *err);

#endif
