#include "python/src/array.h"

#include <stdio.h>
#include <string.h>

struct array {
    PyObject_HEAD struct weir_view_of view;                      /* holds a reference to view.lent */
    Py_ssize_t shape[WEIR_ARRAY_DIMS], strides[WEIR_ARRAY_DIMS]; /* for the buffer protocol; strides in bytes */
};

static PyObject *array_type;

/* ---- shapes ---- */

static const struct {
    int bytes;
    const char *name, *typestr, *format;
} dtypes[] = {
    [WEIR_DTYPE_U8] = {1, "uint8", "|u1", "B"},       [WEIR_DTYPE_F32] = {4, "float32", "<f4", "f"},
    [WEIR_DTYPE_U16] = {2, "uint16", "<u2", "H"},     [WEIR_DTYPE_F16] = {2, "float16", "<f2", "e"},
    [WEIR_DTYPE_BF16] = {2, "bfloat16", "<V2", NULL}, /* exists only on GPUs */
    [WEIR_DTYPE_I64] = {8, "int64", "<i8", "q"},      [WEIR_DTYPE_BOOL] = {1, "bool", "|b1", "?"},
};

static const char *dtype_name(const struct weir_view_of *view)
{
    return view->is_bool ? "bool" : dtypes[view->dtype].name;
}

int weir_view_item_bytes(const struct weir_view_of *view)
{
    return dtypes[view->dtype].bytes;
}

int64_t weir_view_count(const struct weir_view_of *view)
{
    int64_t count = 1;
    for (int i = 0; i < view->ndim; i++)
        count *= view->shape[i];
    return count;
}

void weir_view_dense_strides(const struct weir_view_of *view, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = view->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= view->shape[i];
    }
}

bool weir_view_is_dense(const struct weir_view_of *view)
{
    int64_t strides[WEIR_ARRAY_DIMS];
    weir_view_dense_strides(view, strides);
    for (int i = 0; i < view->ndim; i++)
        if (view->shape[i] != 1 && view->strides[i] != strides[i])
            return false;
    return true;
}

void weir_view_tensor(struct weir_view_of *view, struct weir_lent *lent, const struct weir_batch *batch, int tensor_n)
{
    const struct weir_tensor *tensor = &batch->tensors[tensor_n];
    *view = (struct weir_view_of){
        .lent = lent, .data = tensor->data, .dtype = tensor->dtype, .ndim = tensor->ndim, .gpu = batch->device};
    view->is_bool = strncmp(tensor->name, "is_pad", 6) == 0 || tensor->dtype == WEIR_DTYPE_BOOL;
    memcpy(view->shape, tensor->shape, sizeof view->shape);
    view->shape[0] = batch->n;
    weir_view_dense_strides(view, view->strides);
}

void weir_view_pick(struct weir_view_of *view, int dim, int64_t index)
{
    view->data += index * view->strides[dim] * weir_view_item_bytes(view);
    for (int i = dim; i + 1 < view->ndim; i++) {
        view->shape[i] = view->shape[i + 1];
        view->strides[i] = view->strides[i + 1];
    }
    view->ndim--;
}

/* ---- Python's protocols ---- */

static PyObject *tuple_of(const int64_t *values, int n, int64_t factor)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *value = PyLong_FromLongLong(values[i] * factor);
        if (!value || PyTuple_SetItem(tuple, i, value) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

int weir_array_check_fork(const struct weir_view_of *view)
{
    if (!weir_lent_is_foreign(view->lent))
        return 0;
    PyErr_SetString(weir_py_error,
                    "the array is on a GPU, but this process was forked from the process that uses the GPU; start "
                    "processes with spawn or forkserver");
    return -1;
}

/* Creates the members that both array interfaces share. */
static PyObject *interface_of(const struct weir_view_of *view)
{
    int bytes = weir_view_item_bytes(view);
    return Py_BuildValue("{s:i,s:s,s:N,s:N,s:(NO)}", "version", 3, "typestr",
                         view->is_bool ? "|b1" : dtypes[view->dtype].typestr, "shape",
                         tuple_of(view->shape, view->ndim, 1), "strides",
                         weir_view_is_dense(view) ? Py_NewRef(Py_None) : tuple_of(view->strides, view->ndim, bytes),
                         "data", PyLong_FromVoidPtr(view->data), Py_False);
}

static PyObject *array_interface(PyObject *self, void *unused)
{
    const struct weir_view_of *view = &((struct array *)self)->view;
    if (view->gpu >= 0)
        return PyErr_Format(PyExc_AttributeError, "__array_interface__: the array is on GPU %d", view->gpu);
    return interface_of(view);
}

/* Makes the values valid on the legacy default stream. The consumer must make its own stream wait for the legacy
 * stream. */
static PyObject *array_cuda_interface(PyObject *self, void *unused)
{
    const struct weir_view_of *view = &((struct array *)self)->view;
    struct weir_err err = WEIR_ERR_NONE;
    if (view->gpu < 0)
        return PyErr_Format(PyExc_AttributeError, "__cuda_array_interface__: the array is on the CPU");
    if (weir_array_check_fork(view) < 0)
        return NULL;
    int rc = weir_lent_ready(view->lent, NULL, true, &err);
    if (rc < 0)
        return weir_py_raise(rc, &err);
    PyObject *interface = interface_of(view);
    if (interface && weir_py_put(interface, "stream", PyLong_FromLong(1)) < 0)
        Py_CLEAR(interface);
    return interface;
}

static PyObject *not_on_host(PyObject *self, PyObject *unused)
{
    return PyErr_Format(PyExc_TypeError,
                        "the array is on GPU %d; use numpy.from_dlpack(array, device='cpu') to copy it to the host, or "
                        "torch.from_dlpack(array) to share it",
                        ((struct array *)self)->view.gpu);
}

/* Defined only for arrays on a GPU. Without it, numpy would build an array of objects from their items. */
static PyObject *array_to_numpy(PyObject *self, void *unused)
{
    static PyMethodDef method = {"__array__", (PyCFunction)(void (*)(void))not_on_host, METH_VARARGS, NULL};
    if (((struct array *)self)->view.gpu < 0)
        return PyErr_Format(PyExc_AttributeError, "__array__");
    return PyCFunction_NewEx(&method, self, NULL);
}

static int array_buffer(PyObject *self, Py_buffer *buffer, int flags)
{
    struct array *array = (struct array *)self;
    const struct weir_view_of *view = &array->view;
    bool dense = weir_view_is_dense(view);
    bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    bool contiguous =
        (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
    bool fortran = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
    buffer->obj = NULL;
    if (view->gpu >= 0) {
        PyErr_Format(PyExc_BufferError, "the array is on GPU %d, so it has no buffer that the host can read",
                     view->gpu);
        return -1;
    }
    if ((!dense && (!strided || contiguous)) || (fortran && view->ndim > 1)) {
        PyErr_SetString(PyExc_BufferError, "the array is not contiguous in the requested order");
        return -1;
    }
    buffer->buf = view->data;
    buffer->len = (Py_ssize_t)(weir_view_count(view) * weir_view_item_bytes(view));
    buffer->itemsize = weir_view_item_bytes(view);
    buffer->readonly = 0;
    buffer->ndim = view->ndim;
    buffer->format = NULL;
    if (flags & PyBUF_FORMAT)
        buffer->format = (char *)(view->is_bool ? "?" : dtypes[view->dtype].format);
    buffer->shape = (flags & PyBUF_ND) ? array->shape : NULL;
    buffer->strides = strided ? array->strides : NULL;
    buffer->suboffsets = NULL;
    buffer->internal = NULL;
    Py_INCREF(self);
    buffer->obj = self;
    return 0;
}

static Py_ssize_t array_length(PyObject *self)
{
    return (Py_ssize_t)((struct array *)self)->view.shape[0];
}

static PyObject *array_item(PyObject *self, Py_ssize_t index)
{
    struct weir_view_of view = ((struct array *)self)->view;
    if (index < 0 || index >= view.shape[0])
        return PyErr_Format(PyExc_IndexError, "index %zd is out of range for an array of %lld", index,
                            (long long)view.shape[0]);
    if (view.ndim == 1 && view.gpu >= 0)
        return not_on_host(self, NULL);
    if (view.ndim == 1)
        return PyErr_Format(PyExc_TypeError, "use numpy.asarray or memoryview to get items of a one-dimensional array");
    weir_view_pick(&view, 0, index);
    return weir_array_new(&view);
}

enum { SHAPE, STRIDES, NDIM, NBYTES, DTYPE, DEVICE };

static PyObject *array_get(PyObject *self, void *what)
{
    const struct weir_view_of *view = &((struct array *)self)->view;
    switch ((int)(intptr_t)what) {
    case SHAPE:
        return tuple_of(view->shape, view->ndim, 1);
    case STRIDES:
        return tuple_of(view->strides, view->ndim, weir_view_item_bytes(view));
    case NDIM:
        return PyLong_FromLong(view->ndim);
    case NBYTES:
        return PyLong_FromLongLong(weir_view_count(view) * weir_view_item_bytes(view));
    case DTYPE:
        return PyUnicode_FromString(dtype_name(view));
    default:
        return view->gpu < 0 ? PyUnicode_FromString("cpu") : PyUnicode_FromFormat("cuda:%d", view->gpu);
    }
}

static PyObject *array_repr(PyObject *self)
{
    PyObject *shape = array_get(self, (void *)SHAPE);
    const struct weir_view_of *view = &((struct array *)self)->view;
    char device[32] = "";
    if (view->gpu >= 0)
        snprintf(device, sizeof device, ", device='cuda:%d'", view->gpu);
    PyObject *text =
        shape ? PyUnicode_FromFormat("weir.Array(shape=%R, dtype='%s'%s)", shape, dtype_name(view), device) : NULL;
    Py_XDECREF(shape);
    return text;
}

static void array_free(PyObject *self)
{
    weir_lent_drop(((struct array *)self)->view.lent);
    weir_py_free(self);
}

PyObject *weir_array_new(const struct weir_view_of *view)
{
    struct array *array = PyObject_New(struct array, (PyTypeObject *)array_type);
    if (!array)
        return NULL;
    array->view = *view;
    weir_lent_take(view->lent);
    for (int i = 0; i < view->ndim; i++) {
        array->shape[i] = (Py_ssize_t)view->shape[i];
        array->strides[i] = (Py_ssize_t)view->strides[i] * weir_view_item_bytes(view);
    }
    return (PyObject *)array;
}

const struct weir_view_of *weir_array_view(PyObject *self)
{
    return &((struct array *)self)->view;
}

int weir_array_begin(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"__dlpack__", (PyCFunction)(void (*)(void))weir_array_dlpack, METH_VARARGS | METH_KEYWORDS,
         "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
         "Returns a capsule for numpy.from_dlpack, torch.from_dlpack and others.\n\n"
         "The capsule has version 1.0 if max_version is (1, 0) or later, and otherwise the older format,\n"
         "in which is_pad is uint8.\n\n"
         "On a GPU the consumer's stream waits for the batch. After the last array is dropped, the memory\n"
         "is reused once the stream's work is complete. stream is None or 1 for the legacy default stream,\n"
         "2 for the calling thread's default stream, or the number of another cudaStream_t. -1 leaves all\n"
         "synchronisation to the caller. dl_device=(1, 0) copies the array to the host, and returns when\n"
         "the copy is complete."},
        {"__dlpack_device__", weir_array_dlpack_device, METH_NOARGS,
         "__dlpack_device__($self)\n--\n\n(1, 0): the CPU. (2, N): GPU N."},
        {0}};
    static PyGetSetDef properties[] = {
        {"__array_interface__", array_interface, NULL, "For numpy.asarray; on the CPU only.", NULL},
        {"__cuda_array_interface__", array_cuda_interface, NULL,
         "For CuPy and Numba; on a GPU only. The values are valid on the legacy default stream.", NULL},
        {"__array__", array_to_numpy, NULL, NULL, NULL},
        {"device", array_get, NULL, "'cpu', or 'cuda:N'.", (void *)DEVICE},
        {"shape", array_get, NULL, "Sizes of the dimensions; the first is the batch.", (void *)SHAPE},
        {"strides", array_get, NULL, "Distance in bytes from one index to the next, for each dimension.",
         (void *)STRIDES},
        {"ndim", array_get, NULL, "Number of dimensions.", (void *)NDIM},
        {"nbytes", array_get, NULL, "Total size of the values in bytes.", (void *)NBYTES},
        {"dtype", array_get, NULL, "'uint8', 'uint16', 'float32', 'float16', 'bfloat16' or 'bool'.", (void *)DTYPE},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A tensor of a batch. numpy.asarray(a), torch.from_dlpack(a) and memoryview(a) share its memory.\n"
                    "On a GPU only torch.from_dlpack(a) and similar functions do. The memory remains valid while any\n"
                    "of these objects exists, even after the loader is closed."},
        {Py_tp_methods, methods},
        {Py_tp_getset, properties},
        {Py_tp_dealloc, array_free},
        {Py_tp_repr, array_repr},
        {Py_bf_getbuffer, array_buffer},
        {Py_sq_length, array_length},
        {Py_sq_item, array_item},
        {0, NULL}};
    return weir_py_add_type(module, "weir.Array", sizeof(struct array), 0, slots, &array_type);
}
