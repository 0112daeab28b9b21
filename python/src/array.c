#include "python/src/array.h"
#include "pipeline/loader.h"
#include "python/src/dlpack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct array {
    PyObject_HEAD struct weir_view_of view;                      /* holds a reference of view.lent */
    Py_ssize_t shape[WEIR_ARRAY_DIMS], strides[WEIR_ARRAY_DIMS]; /* for buffers; strides in bytes */
};

/* A capsule's memory: the structure that is handed out, and what it points to. */
struct exported {
    union {
        struct weir_dl_managed managed;
        struct weir_dl_versioned versioned;
    } form;
    int64_t shape[WEIR_ARRAY_DIMS], strides[WEIR_ARRAY_DIMS];
    struct weir_lent *lent;
};

static PyObject *array_type;

/* ---- shapes ---- */

static const struct {
    int bytes;
    const char *name, *typestr, *format;
} dtypes[] = {
    [WEIR_DTYPE_U8] = {1, "uint8", "|u1", "B"},
    [WEIR_DTYPE_F32] = {4, "float32", "<f4", "f"},
    [WEIR_DTYPE_U16] = {2, "uint16", "<u2", "H"},
};

static const char *dtype_name(const struct weir_view_of *view)
{
    return view->is_bool ? "bool" : dtypes[view->dtype].name;
}

static int item_bytes(const struct weir_view_of *view)
{
    return dtypes[view->dtype].bytes;
}

static int64_t count_of(const struct weir_view_of *view)
{
    int64_t count = 1;
    for (int i = 0; i < view->ndim; i++)
        count *= view->shape[i];
    return count;
}

static void dense_strides(const struct weir_view_of *view, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = view->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= view->shape[i];
    }
}

static bool is_dense(const struct weir_view_of *view)
{
    int64_t strides[WEIR_ARRAY_DIMS];
    dense_strides(view, strides);
    for (int i = 0; i < view->ndim; i++)
        if (view->shape[i] != 1 && view->strides[i] != strides[i])
            return false;
    return true;
}

void weir_view_tensor(struct weir_view_of *view, struct weir_lent *lent, const struct weir_tensor *tensor)
{
    *view = (struct weir_view_of){.lent = lent, .data = tensor->data, .dtype = tensor->dtype, .ndim = tensor->ndim};
    view->is_bool = strcmp(tensor->name, "is_pad") == 0;
    memcpy(view->shape, tensor->shape, sizeof view->shape);
    dense_strides(view, view->strides);
}

/* Leaves out dimension dim, at one index of it. */
static void pick(struct weir_view_of *view, int dim, int64_t index)
{
    view->data += index * view->strides[dim] * item_bytes(view);
    for (int i = dim; i + 1 < view->ndim; i++) {
        view->shape[i] = view->shape[i + 1];
        view->strides[i] = view->strides[i + 1];
    }
    view->ndim--;
}

void weir_view_camera(struct weir_view_of *view, int index)
{
    pick(view, 1, index);
}

/* ---- DLPack ---- */

static void dl_fill(struct weir_dl_tensor *tensor, struct exported *exported, const struct weir_view_of *view,
                    bool knows_bool)
{
    uint8_t code = view->dtype == WEIR_DTYPE_F32 ? WEIR_DL_FLOAT : WEIR_DL_UINT;
    memcpy(exported->shape, view->shape, sizeof exported->shape);
    memcpy(exported->strides, view->strides, sizeof exported->strides);
    *tensor = (struct weir_dl_tensor){
        .data = view->data,
        .device = {WEIR_DL_CPU, 0},
        .ndim = view->ndim,
        .dtype = {knows_bool && view->is_bool ? WEIR_DL_BOOL : code, (uint8_t)(8 * item_bytes(view)), 1},
        .shape = exported->shape,
        .strides = exported->strides,
    };
}

/* Any thread, without the interpreter. */
static void exported_free(struct exported *exported)
{
    weir_lent_drop(exported->lent);
    free(exported);
}

static void managed_delete(struct weir_dl_managed *self)
{
    exported_free(self->context);
}

static void versioned_delete(struct weir_dl_versioned *self)
{
    exported_free(self->context);
}

/* Of a capsule that nobody took: who takes one renames it, and deletes what is in it. */
static void capsule_free(PyObject *capsule)
{
    struct exported *exported = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor"))
        exported = ((struct weir_dl_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->context;
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        exported = ((struct weir_dl_versioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned"))->context;
    if (exported)
        exported_free(exported);
}

static PyObject *export(const struct weir_view_of *view, bool versioned, bool copied)
{
    struct exported *exported = calloc(1, sizeof *exported);
    if (!exported)
        return PyErr_NoMemory();
    exported->lent = view->lent;
    weir_lent_take(view->lent);
    void *pointer = &exported->form;
    if (versioned) {
        exported->form.versioned = (struct weir_dl_versioned){.major = 1,
                                                              .minor = 0,
                                                              .context = exported,
                                                              .deleter = versioned_delete,
                                                              .flags = copied ? WEIR_DL_FLAG_COPIED : 0};
        dl_fill(&exported->form.versioned.tensor, exported, view, true);
    } else {
        exported->form.managed = (struct weir_dl_managed){.context = exported, .deleter = managed_delete};
        dl_fill(&exported->form.managed.tensor, exported, view, false);
    }
    PyObject *capsule = PyCapsule_New(pointer, versioned ? "dltensor_versioned" : "dltensor", capsule_free);
    if (!capsule)
        exported_free(exported);
    return capsule;
}

PyObject *weir_array_capsule(const struct weir_view_of *view)
{
    return export(view, false, false);
}

static void copy_rows(const struct weir_view_of *from, char *to)
{
    if (is_dense(from)) {
        memcpy(to, from->data, (size_t)(count_of(from) * item_bytes(from)));
        return;
    }
    for (int64_t i = 0; i < from->shape[0]; i++) {
        struct weir_view_of row = *from;
        pick(&row, 0, i);
        copy_rows(&row, to + i * count_of(&row) * item_bytes(from));
    }
}

/* The same values in memory of their own; view->lent is the caller's reference. -1 with an exception. */
static int copy_of(const struct weir_view_of *view, struct weir_view_of *copy)
{
    size_t bytes = (size_t)(count_of(view) * item_bytes(view));
    bytes = bytes ? bytes : 1;
    struct weir_lent *lent = weir_lent_new();
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!lent || memory == MAP_FAILED) {
        if (memory != MAP_FAILED)
            munmap(memory, bytes);
        free(lent);
        PyErr_Format(PyExc_MemoryError, "no memory for a copy of %zu bytes", bytes);
        return -1;
    }
    weir_lent_give(lent, memory, bytes);
    copy_rows(view, memory);
    *copy = *view;
    copy->lent = lent;
    copy->data = memory;
    dense_strides(copy, copy->strides);
    return 0;
}

/* True when the two are numbers, as a tuple; -1 with an exception for what is none. */
static int pair(PyObject *object, const char *name, long *first, long *second)
{
    if (!PyTuple_Check(object) || PyTuple_Size(object) != 2) {
        PyErr_Format(PyExc_TypeError, "%s is a tuple of two integers", name);
        return -1;
    }
    *first = PyLong_AsLong(PyTuple_GetItem(object, 0));
    *second = PyLong_AsLong(PyTuple_GetItem(object, 1));
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    const struct weir_view_of *view = &((struct array *)self)->view;
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    long major = 0, minor, type = WEIR_DL_CPU, number = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &max_version, &device, &copy))
        return NULL;
    if (stream != Py_None) {
        PyErr_SetString(PyExc_ValueError, "stream is None for arrays on the CPU");
        return NULL;
    }
    if (max_version != Py_None && pair(max_version, "max_version", &major, &minor) < 0)
        return NULL;
    if (device != Py_None && pair(device, "dl_device", &type, &number) < 0)
        return NULL;
    if (type != WEIR_DL_CPU || number != 0) {
        PyErr_Format(PyExc_BufferError,
                     "the array is on the CPU, dl_device (1, 0); it cannot be handed over on (%ld, %ld)", type, number);
        return NULL;
    }
    int wanted = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (wanted <= 0)
        return wanted < 0 ? NULL : export(view, major >= 1, false);
    struct weir_view_of own;
    if (copy_of(view, &own) < 0)
        return NULL;
    PyObject *capsule = export(&own, major >= 1, true);
    weir_lent_drop(own.lent);
    return capsule;
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", WEIR_DL_CPU, 0);
}

/* ---- Python's own protocols ---- */

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

static PyObject *array_interface(PyObject *self, void *unused)
{
    (void)unused;
    const struct weir_view_of *view = &((struct array *)self)->view;
    PyObject *shape = tuple_of(view->shape, view->ndim, 1);
    PyObject *strides = tuple_of(view->strides, view->ndim, item_bytes(view));
    PyObject *interface = NULL;
    if (shape && strides)
        interface = Py_BuildValue("{s:i,s:s,s:O,s:O,s:(NO)}", "version", 3, "typestr",
                                  view->is_bool ? "|b1" : dtypes[view->dtype].typestr, "shape", shape, "strides",
                                  is_dense(view) ? Py_None : strides, "data", PyLong_FromVoidPtr(view->data), Py_False);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    return interface;
}

static int array_buffer(PyObject *self, Py_buffer *buffer, int flags)
{
    struct array *array = (struct array *)self;
    const struct weir_view_of *view = &array->view;
    bool dense = is_dense(view);
    bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    bool contiguous =
        (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
    bool fortran = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
    buffer->obj = NULL;
    if ((!dense && (!strided || contiguous)) || (fortran && view->ndim > 1)) {
        PyErr_SetString(PyExc_BufferError, "the array is not contiguous in the order asked for");
        return -1;
    }
    buffer->buf = view->data;
    buffer->len = (Py_ssize_t)(count_of(view) * item_bytes(view));
    buffer->itemsize = item_bytes(view);
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
    if (index < 0 || index >= view.shape[0]) {
        PyErr_Format(PyExc_IndexError, "index %zd of an array of %lld", index, (long long)view.shape[0]);
        return NULL;
    }
    if (view.ndim == 1) {
        PyErr_SetString(PyExc_TypeError, "an array of one dimension gives its items by numpy.asarray or memoryview");
        return NULL;
    }
    pick(&view, 0, index);
    return weir_array_new(&view);
}

static PyObject *array_repr(PyObject *self)
{
    PyObject *shape = PyObject_GetAttrString(self, "shape");
    PyObject *text = shape ? PyUnicode_FromFormat("weir.Array(shape=%R, dtype='%s')", shape,
                                                  dtype_name(&((struct array *)self)->view))
                           : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyObject *array_shape(PyObject *self, void *unused)
{
    (void)unused;
    const struct weir_view_of *view = &((struct array *)self)->view;
    return tuple_of(view->shape, view->ndim, 1);
}

static PyObject *array_strides(PyObject *self, void *unused)
{
    (void)unused;
    const struct weir_view_of *view = &((struct array *)self)->view;
    return tuple_of(view->strides, view->ndim, item_bytes(view));
}

static PyObject *array_ndim(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((struct array *)self)->view.ndim);
}

static PyObject *array_nbytes(PyObject *self, void *unused)
{
    (void)unused;
    const struct weir_view_of *view = &((struct array *)self)->view;
    return PyLong_FromLongLong(count_of(view) * item_bytes(view));
}

static PyObject *array_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(dtype_name(&((struct array *)self)->view));
}

static void array_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    weir_lent_drop(((struct array *)self)->view.lent);
    PyObject_Free(self);
    Py_DECREF(type);
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
        array->strides[i] = (Py_ssize_t)view->strides[i] * item_bytes(view);
    }
    return (PyObject *)array;
}

int weir_array_begin(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
         "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
         "A capsule for numpy.from_dlpack, torch.from_dlpack and others; they call it.\n\n"
         "Of version 1.0 when max_version is (1, 0) or later, else of the form before, in which is_pad is uint8."},
        {"__dlpack_device__", array_dlpack_device, METH_NOARGS, "__dlpack_device__($self)\n--\n\n(1, 0): the CPU."},
        {0}};
    static PyGetSetDef properties[] = {
        {"__array_interface__", array_interface, NULL, "What numpy.asarray looks at.", NULL},
        {"shape", array_shape, NULL, "Sizes of the dimensions; the first is the batch.", NULL},
        {"strides", array_strides, NULL, "Bytes from one index to the next, of each dimension.", NULL},
        {"ndim", array_ndim, NULL, "Number of dimensions.", NULL},
        {"nbytes", array_nbytes, NULL, "Bytes of all values.", NULL},
        {"dtype", array_dtype, NULL, "'uint8', 'uint16', 'float32' or 'bool'.", NULL},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A tensor of a batch. numpy.asarray(a), torch.from_dlpack(a) and memoryview(a) show its memory "
                    "without a copy;\n"
                    "the memory is yours for as long as any of these lives, also after the loader was closed."},
        {Py_tp_methods, methods},
        {Py_tp_getset, properties},
        {Py_tp_dealloc, array_free},
        {Py_tp_repr, array_repr},
        {Py_bf_getbuffer, array_buffer},
        {Py_sq_length, array_length},
        {Py_sq_item, array_item},
        {0, NULL}};
    static PyType_Spec spec = {.name = "weir.Array",
                               .basicsize = sizeof(struct array),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    return weir_py_add_type(module, &spec, &array_type);
}
