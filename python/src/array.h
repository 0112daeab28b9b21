/* array.h: weir.Array, a part of a batch's memory with a shape. Other libraries can share it without copying through
 * DLPack, the buffer protocol, __array_interface__ or __cuda_array_interface__. */
#ifndef WEIR_PYTHON_SRC_ARRAY_H
#define WEIR_PYTHON_SRC_ARRAY_H

#include "python/src/lent.h"
#include "python/src/py.h"
#include "weir/loader.h"

enum { WEIR_ARRAY_DIMS = 6 };

/* A view of a batch's memory. */
struct weir_view_of {
    struct weir_lent *lent; /* borrowed */
    char *data;
    enum weir_dtype dtype;
    bool is_bool; /* the dtype is u8, and all values are 0 or 1 */
    int gpu;      /* number of the GPU; -1 for the CPU */
    int ndim;
    int64_t shape[WEIR_ARRAY_DIMS], strides[WEIR_ARRAY_DIMS]; /* strides in elements */
};

/* Views a whole tensor. */
void weir_view_tensor(struct weir_view_of *view, struct weir_lent *lent, const struct weir_batch *batch, int tensor_n);
/* Removes dimension dim by choosing one of its indices. Dimension 1 of images is the camera. */
void weir_view_pick(struct weir_view_of *view, int dim, int64_t index);
int weir_view_item_bytes(const struct weir_view_of *view);
int64_t weir_view_count(const struct weir_view_of *view);
/* Gets the strides that the view would have in dense memory, in elements. */
void weir_view_dense_strides(const struct weir_view_of *view, int64_t *strides);
bool weir_view_is_dense(const struct weir_view_of *view);

/* Returns a new array, which holds a reference to the memory, or NULL with an exception. */
PyObject *weir_array_new(const struct weir_view_of *view);
const struct weir_view_of *weir_array_view(PyObject *self);
/* Returns 0, or -1 with an exception if the memory is on a GPU and this process is a forked child. */
int weir_array_check_fork(const struct weir_view_of *view);

/* Returns a new DLPack capsule in the format before version 1, in which bool is uint8, or NULL with an exception. The
 * capsule holds a reference to the memory. On a GPU, the caller must synchronise streams. */
PyObject *weir_array_capsule(const struct weir_view_of *view);
/* Implement weir.Array.__dlpack__ and __dlpack_device__. */
PyObject *weir_array_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *weir_array_dlpack_device(PyObject *self, PyObject *unused);

#endif
