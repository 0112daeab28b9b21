/* safetensors.h: reads and writes named float32 arrays in one file, in the format of
 * https://github.com/huggingface/safetensors (section "Format" of its README). The file consists of the length of a
 * JSON header (8 bytes, little-endian), the header and the arrays. The header contains the element type, shape and
 * position of each named array. Arrays are contiguous, in C order. The header's entry "__metadata__" maps keys to
 * strings.
 *
 * Thread-safe, but only one thread may write to a path. */
#ifndef WEIR_EXTRAS_TRAIN_CLI_SAFETENSORS_H
#define WEIR_EXTRAS_TRAIN_CLI_SAFETENSORS_H

#include "weir/base.h"

#include <stdint.h>

enum { WEIR_SAFETENSOR_DIMS = 4, WEIR_SAFETENSORS_TEXT = 128 };

/* All pointers are borrowed during the call. */
struct weir_safetensor {
    const char *name;                    /* UTF-8 */
    int ndim;                            /* 0 (a single value) to WEIR_SAFETENSOR_DIMS */
    int64_t shape[WEIR_SAFETENSOR_DIMS]; /* each at least 0 */
    float *data; /* values to write, or memory for the values read; may be NULL if shape contains 0 */
};

struct weir_safetensors_meta { /* an entry of "__metadata__" */
    const char *key;
    char value[WEIR_SAFETENSORS_TEXT];
};

/* Returns -EINVAL if path exists but is not a regular file, because weir_safetensors_write would refuse it. */
int weir_safetensors_check(const char *path, struct weir_err *err);
/* Writes the arrays, in order, and the metadata to PATH.partial, syncs it, and then renames it to path. So path is
 * always either the old file or the complete new file. After an error, PATH.partial is removed. A killed process leaves
 * PATH.partial, and the next call overwrites it. 0, -EINVAL (a name is empty, not UTF-8, duplicate or "__metadata__",
 * or path exists but is not a regular file) or a system error. err contains the path and advice. */
int weir_safetensors_write(const char *path, const struct weir_safetensor *tensors, int n,
                           const struct weir_safetensors_meta *meta, int n_meta, struct weir_err *err);

/* Reads the arrays, and the metadata values of the given keys (an empty string if missing). The file must contain
 * exactly these arrays, in any order. If tensors is NULL, only the metadata is read. The file is not trusted: lengths
 * are checked before memory is allocated, and the whole header is checked before the first value is stored. So after
 * -EINVAL the arrays and the metadata are unchanged. After another error, the arrays may be partly overwritten.
 *
 * 0, -EINVAL, -ENOMEM or a system error. -EINVAL means that path is not a safetensors file, that an array is missing,
 * unexpected, not float32, of the wrong shape, out of bounds or overlapping, or that a metadata value is too long or
 * not a string. err contains the path and the name of the array. */
int weir_safetensors_read(const char *path, const struct weir_safetensor *tensors, int n,
                          struct weir_safetensors_meta *meta, int n_meta, struct weir_err *err);

#endif
