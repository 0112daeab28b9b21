/* array.h: weir.Array, a part of a batch's memory with a shape, which other libraries take without a copy by DLPack
 * (capsule.h), the buffer protocol, __array_interface__ or __cuda_array_interface__. */
#ifndef WEIR_PYTHON_SRC_ARRAY_H
#define WEIR_PYTHON_SRC_ARRAY_H

#include "python/src/lent.h"
#include "python/src/py.h"
#include "weir/loader.h"

enum { WEIR_ARRAY_DIMS = 6 };

/* What an array shows. */
struct weir_view_of {
    struct weir_lent *lent; /* borrowed */
    char *data;
    enum weir_dtype dtype;
    bool is_bool; /* of u8: 0 and 1 */
    int gpu;      /* that it is on; -1 = the CPU */
    int ndim;
    int64_t shape[WEIR_ARRAY_DIMS], strides[WEIR_ARRAY_DIMS]; /* in elements */
};

/* A whole tensor, and one camera (number index of its dimension 1) of it. */
void weir_view_tensor(struct weir_view_of *view, struct weir_lent *lent, const struct weir_batch *batch, int tensor_n);
void weir_view_camera(struct weir_view_of *view, int index);
/* Leaves out dimension dim, at one index of it. */
void weir_view_pick(struct weir_view_of *view, int dim, int64_t index);
int weir_view_item_bytes(const struct weir_view_of *view);
int64_t weir_view_count(const struct weir_view_of *view);
/* In elements, of memory without gaps. */
void weir_view_dense_strides(const struct weir_view_of *view, int64_t *strides);
bool weir_view_is_dense(const struct weir_view_of *view);

int weir_array_begin(PyObject *module);
/* A new reference, which holds one of the memory; NULL with an exception. */
PyObject *weir_array_new(const struct weir_view_of *view);
const struct weir_view_of *weir_array_view(PyObject *self);
/* 0, or -1 with an exception in a child of fork(), where a GPU's memory is not to be had. */
int weir_array_check_fork(const struct weir_view_of *view);

#endif
