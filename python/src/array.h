/* array.h: weir.Array, a part of a batch's memory with a shape, which other libraries share without copying by DLPack,
 * the buffer protocol, __array_interface__ or __cuda_array_interface__. */
#ifndef WEIR_PYTHON_SRC_ARRAY_H
#define WEIR_PYTHON_SRC_ARRAY_H

#include "python/src/lent.h"
#include "python/src/py.h"
#include "weir/loader.h"

enum { WEIR_ARRAY_DIMS = 6 };

/* The memory that an array shows. */
struct weir_view_of {
    struct weir_lent *lent; /* borrowed */
    char *data;
    enum weir_dtype dtype;
    bool is_bool; /* u8 of 0 and 1 */
    int gpu;      /* number of its GPU; -1 = the CPU */
    int ndim;
    int64_t shape[WEIR_ARRAY_DIMS], strides[WEIR_ARRAY_DIMS]; /* in elements */
};

/* Views a whole tensor; then one camera of it, number index of dimension 1. */
void weir_view_tensor(struct weir_view_of *view, struct weir_lent *lent, const struct weir_batch *batch, int tensor_n);
void weir_view_camera(struct weir_view_of *view, int index);
/* Removes dimension dim by choosing one index. */
void weir_view_pick(struct weir_view_of *view, int dim, int64_t index);
int weir_view_item_bytes(const struct weir_view_of *view);
int64_t weir_view_count(const struct weir_view_of *view);
/* Strides of dense memory, in elements. */
void weir_view_dense_strides(const struct weir_view_of *view, int64_t *strides);
bool weir_view_is_dense(const struct weir_view_of *view);

/* A new array, which holds a reference to the memory; NULL with an exception. */
PyObject *weir_array_new(const struct weir_view_of *view);
const struct weir_view_of *weir_array_view(PyObject *self);
/* 0, or -1 with an exception for GPU memory in a child of fork(). */
int weir_array_check_fork(const struct weir_view_of *view);

/* A DLPack capsule in the format before version 1, where bool is uint8. On a GPU the caller synchronises streams. A new
 * reference, which holds one to the memory; NULL with an exception. */
PyObject *weir_array_capsule(const struct weir_view_of *view);
/* weir.Array.__dlpack__ and __dlpack_device__. */
PyObject *weir_array_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *weir_array_dlpack_device(PyObject *self, PyObject *unused);

#endif
