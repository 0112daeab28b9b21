/* dlpack.h: the structures by which array libraries hand memory to each other, as the DLPack specification lays them
 * out (https://dmlc.github.io/dlpack/latest/c_api.html): the form before version 1, and that of version 1.x. */
#ifndef WEIR_PYTHON_SRC_DLPACK_H
#define WEIR_PYTHON_SRC_DLPACK_H

#include <stdint.h>

enum { WEIR_DL_CPU = 1, WEIR_DL_CUDA = 2 };
enum { WEIR_DL_INT = 0, WEIR_DL_UINT = 1, WEIR_DL_FLOAT = 2, WEIR_DL_BFLOAT = 4, WEIR_DL_BOOL = 6 };
enum { WEIR_DL_FLAG_COPIED = 2 };

struct weir_dl_device {
    int32_t type, number;
};

struct weir_dl_type {
    uint8_t code, bits;
    uint16_t lanes;
};

struct weir_dl_tensor {
    void *data;
    struct weir_dl_device device;
    int32_t ndim;
    struct weir_dl_type dtype;
    int64_t *shape, *strides; /* in elements */
    uint64_t byte_offset;
};

/* Capsule "dltensor". */
struct weir_dl_managed {
    struct weir_dl_tensor tensor;
    void *context;
    void (*deleter)(struct weir_dl_managed *self);
};

/* Capsule "dltensor_versioned". */
struct weir_dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct weir_dl_versioned *self);
    uint64_t flags;
    struct weir_dl_tensor tensor;
};

#endif
