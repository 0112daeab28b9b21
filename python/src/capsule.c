#include "pipeline/gpu/gpu.h"
#include "python/src/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the structures of DLPack, see https://dmlc.github.io/dlpack/latest/c_api.html ---- */

enum { DL_CPU = 1, DL_CUDA = 2 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };
enum { DL_FLAG_COPIED = 2 };

struct dl_device {
    int32_t type, number;
};

struct dl_type {
    uint8_t code, bits;
    uint16_t lanes;
};

struct dl_tensor {
    void *data;
    struct dl_device device;
    int32_t ndim;
    struct dl_type dtype;
    int64_t *shape, *strides; /* in elements */
    uint64_t byte_offset;
};

/* Content of a "dltensor" capsule, the format before version 1. */
struct dl_managed {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
};

/* Content of a "dltensor_versioned" capsule, the format of version 1.x. */
struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    struct dl_tensor tensor;
};

/* ---- capsules ---- */

/* Memory of a capsule: the DLPack structure and everything it points to. */
struct exported {
    union {
        struct dl_managed managed;
        struct dl_versioned versioned;
    } form;
    int64_t shape[WEIR_ARRAY_DIMS], strides[WEIR_ARRAY_DIMS];
    struct weir_lent *lent;
};

static struct dl_device device_of(const struct weir_view_of *view)
{
    return view->gpu < 0 ? (struct dl_device){DL_CPU, 0} : (struct dl_device){DL_CUDA, view->gpu};
}

static void dl_fill(struct dl_tensor *tensor, struct exported *exported, const struct weir_view_of *view,
                    bool knows_bool)
{
    static const uint8_t codes[] = {
        [WEIR_DTYPE_U8] = DL_UINT,   [WEIR_DTYPE_F32] = DL_FLOAT,   [WEIR_DTYPE_U16] = DL_UINT,
        [WEIR_DTYPE_F16] = DL_FLOAT, [WEIR_DTYPE_BF16] = DL_BFLOAT, [WEIR_DTYPE_I64] = DL_INT,
        [WEIR_DTYPE_BOOL] = DL_UINT};
    uint8_t code = knows_bool && view->is_bool ? DL_BOOL : codes[view->dtype];
    memcpy(exported->shape, view->shape, sizeof exported->shape);
    memcpy(exported->strides, view->strides, sizeof exported->strides);
    *tensor = (struct dl_tensor){
        .data = view->data,
        .device = device_of(view),
        .ndim = view->ndim,
        .dtype = {code, (uint8_t)(8 * weir_view_item_bytes(view)), 1},
        .shape = exported->shape,
        .strides = exported->strides,
    };
}

/* Can be called on any thread, without the interpreter's lock. */
static void exported_free(struct exported *exported)
{
    weir_lent_drop(exported->lent);
    free(exported);
}

static void managed_delete(struct dl_managed *self)
{
    exported_free(self->context);
}

static void versioned_delete(struct dl_versioned *self)
{
    exported_free(self->context);
}

/* Frees the content of an unconsumed capsule. A consumer renames the capsule and frees the content itself. */
static void capsule_free(PyObject *capsule)
{
    struct exported *exported = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor"))
        exported = ((struct dl_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->context;
    else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        exported = ((struct dl_versioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned"))->context;
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
        exported->form.versioned = (struct dl_versioned){.major = 1,
                                                         .minor = 0,
                                                         .context = exported,
                                                         .deleter = versioned_delete,
                                                         .flags = copied ? DL_FLAG_COPIED : 0};
        dl_fill(&exported->form.versioned.tensor, exported, view, true);
    } else {
        exported->form.managed = (struct dl_managed){.context = exported, .deleter = managed_delete};
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

/* ---- copies ---- */

/* How the rows of a copy are copied, and the first error. */
struct copying {
    struct weir_device *device; /* GPU of the source; NULL for the CPU */
    void *stream;
    bool to_gpu;
    struct weir_err err;
};

static int copy_row(struct copying *c, char *to, const char *from, size_t bytes)
{
    if (!c->device)
        memcpy(to, from, bytes);
    else if (c->to_gpu)
        return weir_device_copy(c->device, to, from, bytes, c->stream, &c->err);
    else
        return weir_device_copy_out(c->device, to, from, bytes, c->stream, &c->err);
    return 0;
}

static int copy_rows(struct copying *c, const struct weir_view_of *from, char *to)
{
    size_t bytes = (size_t)(weir_view_count(from) * weir_view_item_bytes(from));
    if (bytes == 0 || weir_view_is_dense(from))
        return bytes == 0 ? 0 : copy_row(c, to, from->data, bytes);
    int rc = 0;
    for (int64_t i = 0; i < from->shape[0] && rc == 0; i++) {
        struct weir_view_of row = *from;
        weir_view_pick(&row, 0, i);
        rc = copy_rows(c, &row, to + i * weir_view_count(&row) * weir_view_item_bytes(from));
    }
    return rc;
}

/* Waits until the copies on the stream are complete. */
static int finish(struct copying *c)
{
    void *event = NULL;
    int rc = weir_device_event(c->device, &event, &c->err);
    if (rc == 0)
        rc = weir_device_record(c->device, event, c->stream, &c->err);
    if (rc == 0)
        rc = weir_device_wait(c->device, event, &c->err);
    if (event)
        weir_device_event_free(c->device, event);
    return rc;
}

/* Copies GPU memory on the consumer's stream, or with own_stream on a temporary stream. In the latter case it waits for
 * the copy to complete. Runs without the interpreter's lock. */
static int copy_from_gpu(struct copying *c, const struct weir_view_of *from, char *to, bool own_stream)
{
    int rc = own_stream ? weir_device_stream(c->device, &c->stream, &c->err) : 0;
    if (rc == 0)
        rc = weir_lent_ready(from->lent, c->stream, !own_stream, &c->err);
    if (rc == 0)
        rc = copy_rows(c, from, to);
    if (own_stream && c->stream) {
        int finish_rc = finish(c);
        rc = rc < 0 ? rc : finish_rc;
        weir_device_stream_free(c->device, c->stream);
    }
    return rc;
}

/* Copies the values to new memory. copy->lent becomes a reference that the caller owns. Returns 0, or -1 with an
 * exception. */
static int copy_of(const struct weir_view_of *view, struct weir_view_of *copy, bool to_gpu, bool own_stream,
                   void *stream)
{
    struct copying c = {view->gpu < 0 ? NULL : weir_lent_device(view->lent), stream, to_gpu, WEIR_ERR_NONE};
    size_t bytes = (size_t)(weir_view_count(view) * weir_view_item_bytes(view));
    void *memory = NULL;
    *copy = *view;
    copy->lent = weir_lent_new_memory(bytes, to_gpu ? c.device : NULL, &memory, &c.err);
    copy->data = memory;
    int rc = copy->lent ? 0 : c.err.code;
    if (rc == 0 && !c.device)
        rc = copy_rows(&c, view, copy->data);
    else if (rc == 0) {
        Py_BEGIN_ALLOW_THREADS rc = copy_from_gpu(&c, view, copy->data, own_stream);
        Py_END_ALLOW_THREADS
    }
    if (rc < 0 && copy->lent)
        weir_lent_drop(copy->lent);
    if (weir_py_check(rc, &c.err) < 0)
        return -1;
    if (!to_gpu)
        copy->gpu = -1;
    weir_view_dense_strides(copy, copy->strides);
    return 0;
}

/* ---- the protocol ---- */

/* Reads a tuple of two integers. Returns 0, or -1 with an exception. */
static int pair(PyObject *object, const char *name, long *first, long *second)
{
    if (!PyTuple_Check(object) || PyTuple_Size(object) != 2) {
        PyErr_Format(PyExc_TypeError, "%s must be a tuple of two integers", name);
        return -1;
    }
    *first = PyLong_AsLong(PyTuple_GetItem(object, 0));
    *second = PyLong_AsLong(PyTuple_GetItem(object, 1));
    return PyErr_Occurred() ? -1 : 0;
}

/* Arguments of a consumer's call to __dlpack__. */
struct request {
    bool versioned, copy, no_copy;
    struct dl_device device;
    bool has_stream, no_stream; /* a stream was specified; the stream is -1, so no synchronisation is wanted */
    void *stream;
};

static int parse_stream(struct request *request, PyObject *stream)
{
    request->has_stream = stream != Py_None;
    if (!request->has_stream)
        return 0;
    if (!PyLong_Check(stream)) {
        PyErr_Format(PyExc_TypeError, "stream must be None or an integer, not %R", stream);
        return -1;
    }
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(stream, &overflow);
    request->no_stream = number == -1 && !overflow;
    if (!overflow && (number == 0 || number < -1)) {
        PyErr_Format(
            PyExc_ValueError,
            "stream must be None, 1 (the legacy default stream), 2 (the thread's default stream), -1 (none) or the "
            "number of a cudaStream_t, not %lld",
            number);
        return -1;
    }
    request->stream = request->no_stream ? NULL : PyLong_AsVoidPtr(stream);
    return PyErr_Occurred() ? -1 : 0;
}

static int parse(struct request *request, const struct weir_view_of *view, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    long major = 0, minor;
    struct dl_device own = device_of(view);
    long type = own.type, number = own.number;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &max_version, &device, &copy))
        return -1;
    if (view->gpu < 0 && stream != Py_None) {
        PyErr_SetString(PyExc_ValueError, "stream must be None for arrays on the CPU");
        return -1;
    }
    if (parse_stream(request, stream) < 0 ||
        (max_version != Py_None && pair(max_version, "max_version", &major, &minor) < 0) ||
        (device != Py_None && pair(device, "dl_device", &type, &number) < 0))
        return -1;
    int wanted = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (wanted < 0)
        return -1;
    request->versioned = major >= 1;
    request->copy = wanted > 0;
    request->no_copy = copy != Py_None && wanted == 0;
    request->device = (struct dl_device){(int32_t)type, (int32_t)number};
    return 0;
}

/* Accepts only the array's own device and, if the array is on a GPU, the CPU, which requires a copy. */
static int check_device(const struct request *request, const struct weir_view_of *view)
{
    struct dl_device own = device_of(view), to = request->device;
    bool stays = to.type == own.type && to.number == own.number;
    bool to_host = view->gpu >= 0 && to.type == DL_CPU && to.number == 0;
    if (stays || (to_host && !request->no_copy && !request->has_stream))
        return 0;
    if (to_host && request->has_stream)
        PyErr_SetString(PyExc_ValueError, "stream must be None for a copy on the CPU");
    else if (to_host)
        PyErr_Format(PyExc_BufferError, "the array is on GPU %d, so dl_device (1, 0) requires a copy", view->gpu);
    else
        PyErr_Format(PyExc_BufferError, "the array is on dl_device (%d, %d) and cannot be exported to (%d, %d)",
                     (int)own.type, (int)own.number, (int)to.type, (int)to.number);
    return -1;
}

PyObject *weir_array_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    const struct weir_view_of *view = weir_array_view(self);
    struct request request = {0};
    struct weir_err err = WEIR_ERR_NONE;
    if (parse(&request, view, args, keywords) < 0 || check_device(&request, view) < 0 ||
        (view->gpu >= 0 && weir_array_check_fork(view) < 0))
        return NULL;
    bool to_gpu = request.device.type == DL_CUDA;
    if (!request.copy && to_gpu == (view->gpu >= 0)) {
        int rc = to_gpu && !request.no_stream ? weir_lent_ready(view->lent, request.stream, true, &err) : 0;
        return rc < 0 ? weir_py_raise(rc, &err) : export(view, request.versioned, false);
    }
    struct weir_view_of own;
    if (copy_of(view, &own, to_gpu, !to_gpu || request.no_stream, request.stream) < 0)
        return NULL;
    PyObject *capsule = export(&own, request.versioned, true);
    weir_lent_drop(own.lent);
    return capsule;
}

PyObject *weir_array_dlpack_device(PyObject *self, PyObject *unused)
{
    struct dl_device device = device_of(weir_array_view(self));
    return Py_BuildValue("(ii)", (int)device.type, (int)device.number);
}
