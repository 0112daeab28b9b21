/* array.h: weir.Array, a part of a batch's memory with a shape, which other libraries take without a copy by DLPack,
 * the buffer protocol or __array_interface__. */
#ifndef WEIR_PYTHON_SRC_ARRAY_H
#define WEIR_PYTHON_SRC_ARRAY_H

#include "pipeline/batch.h"
#include "python/src/lent.h"
#include "python/src/py.h"

enum { WEIR_ARRAY_DIMS = 6 };

/* What an array shows. */
struct weir_view_of {
    struct weir_lent *lent; /* borrowed */
    char *data;
    enum weir_dtype dtype; /* u8, u16, f32 */
    bool is_bool;          /* of u8: 0 and 1 */
    int ndim;
    int64_t shape[WEIR_ARRAY_DIMS], strides[WEIR_ARRAY_DIMS]; /* in elements */
};

/* A whole tensor, and one camera (number index of its dimension 1) of it. */
void weir_view_tensor(struct weir_view_of *view, struct weir_lent *lent, const struct weir_tensor *tensor);
void weir_view_camera(struct weir_view_of *view, int index);

int weir_array_begin(PyObject *module);
/* New references, which hold one of the memory; NULL with an exception. The capsule has the form before version 1,
 * which knows no bool: it says uint8. */
PyObject *weir_array_new(const struct weir_view_of *view);
PyObject *weir_array_capsule(const struct weir_view_of *view);

#endif
