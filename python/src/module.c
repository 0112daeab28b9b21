/* weir._weir, the extension module that weir/__init__.py uses. */
#include "analyze/live/live.h"
#include "analyze/page/page.h"
#include "base/extras.h"
#include "python/src/array.h"
#include "python/src/profile_parts.h"
#include "python/src/py.h"
#include "python/src/session.h"
#include "weir/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

PyObject *weir_py_error;

PyObject *weir_py_raise(int code, const struct weir_err *err)
{
    PyObject *type = weir_py_error;
    if (code == -ENOENT)
        type = PyExc_FileNotFoundError;
    else if (code == -EACCES || code == -EPERM)
        type = PyExc_PermissionError;
    else if (code == -ENOMEM)
        type = PyExc_MemoryError;
    else if (code == -EINVAL)
        type = PyExc_ValueError;
    char text[2 * sizeof err->text];
    weir_name_keywords(text, sizeof text, err->text);
    const char *line = text[0] ? text : strerror(-code);
    PyObject *message = PyUnicode_DecodeUTF8(line, (Py_ssize_t)strlen(line), "backslashreplace");
    if (message)
        PyErr_SetObject(type, message);
    Py_XDECREF(message);
    return NULL;
}

int weir_py_check(int code, const struct weir_err *err)
{
    if (code < 0)
        weir_py_raise(code, err);
    return code < 0 ? -1 : 0;
}

int weir_py_numbers(PyObject *object, Py_buffer *buffer, const char *formats, size_t bytes, const char *what,
                    const void **numbers)
{
    buffer->obj = NULL;
    if (PyLong_Check(object)) {
        *numbers = PyLong_AsVoidPtr(object);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (PyObject_GetBuffer(object, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return -1;
    const char *format = buffer->format && strchr("@=<", buffer->format[0]) ? buffer->format + 1 : buffer->format;
    if (!format || strlen(format) != 1 || !strchr(formats, format[0]) || (size_t)buffer->len != bytes) {
        PyErr_Format(PyExc_TypeError, "%s: got %zd bytes of format '%s', but %zu bytes of %s are required", what,
                     buffer->len, buffer->format ? buffer->format : "B", bytes,
                     formats[0] == 'f' ? "float32" : "int64");
        return -1;
    }
    *numbers = buffer->buf;
    return 0;
}

PyObject *weir_py_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

const char *weir_py_name(PyObject *name)
{
    Py_ssize_t bytes;
    const char *text = PyUnicode_AsUTF8AndSize(name, &bytes);
    if (text && bytes > 0 && strlen(text) == (size_t)bytes)
        return text;
    PyErr_Format(PyExc_ValueError, "a name must be a non-empty str of valid Unicode without zero bytes, not %.100R",
                 name);
    return NULL;
}

PyObject *weir_py_shown(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *weir_py_printed(int (*print)(void *user, FILE *out), void *user)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return PyErr_NoMemory();
    int rc = print(user, out);
    if (fclose(out) != 0 || rc < 0) {
        free(text);
        return rc < 0 && rc != -ENOMEM ? PyErr_Format(weir_py_error, "the report cannot be created: %s", strerror(-rc))
                                       : PyErr_NoMemory();
    }
    PyObject *object = PyUnicode_DecodeUTF8(text, (Py_ssize_t)bytes, "replace");
    free(text);
    return object;
}

int weir_py_append(PyObject *list, PyObject *item)
{
    int rc = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return rc;
}

int weir_py_put(PyObject *dict, const char *key, PyObject *item)
{
    int rc = item ? PyDict_SetItemString(dict, key, item) : -1;
    Py_XDECREF(item);
    return rc;
}

int weir_py_add_type(PyObject *module, const char *name, size_t size, unsigned flags, PyType_Slot *slots,
                     PyObject **type)
{
    PyType_Spec spec = {.name = name,
                        .basicsize = (int)size,
                        .flags = Py_TPFLAGS_DEFAULT | (flags ? flags : Py_TPFLAGS_DISALLOW_INSTANTIATION),
                        .slots = slots};
    *type = PyType_FromSpec(&spec);
    return *type ? PyModule_AddObjectRef(module, strrchr(name, '.') + 1, *type) : -1;
}

void weir_py_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *py_page(PyObject *module, PyObject *args)
{
    const char *lines, *lang;
    Py_ssize_t length;
    struct weir_err err = WEIR_ERR_NONE;
    char *html = NULL;
    size_t size;
    if (!PyArg_ParseTuple(args, "s#s", &lines, &length, &lang))
        return NULL;
    FILE *out = open_memstream(&html, &size);
    if (!out)
        return PyErr_NoMemory();
    int rc = weir_page_of_log(out, lines, (size_t)length, strcmp(lang, "zh") == 0 ? WEIR_LANG_ZH : WEIR_LANG_EN, &err);
    if (fclose(out) != 0 && rc == 0)
        rc = -ENOMEM;
    PyObject *page = rc < 0 ? weir_py_raise(rc, &err) : weir_py_text(html);
    free(html);
    return page;
}

/* The address of weir_live_page, for the library of weir.watch. */
static PyObject *py_live_page(PyObject *module, PyObject *unused)
{
    return PyLong_FromVoidPtr((void *)weir_live_page);
}

static PyObject *callbacks; /* tuple, owned; the module's first call sets it */

static PyObject *py_set_callbacks(PyObject *module, PyObject *args)
{
    Py_XDECREF(callbacks);
    callbacks = Py_NewRef(args);
    Py_RETURN_NONE;
}

PyObject *weir_py_call(enum weir_py_callback callback, PyObject *first, PyObject *second)
{
    PyObject *function = callbacks ? PyTuple_GetItem(callbacks, callback) : NULL;
    return function ? PyObject_CallFunctionObjArgs(function, first, second, NULL) : Py_NewRef(Py_None);
}

PyObject *weir_py_own_files(void)
{
    return callbacks ? PyTuple_GetItem(callbacks, WEIR_PY_OWN_FILES) : NULL;
}

static PyMethodDef functions[] = {
    {"_page", py_page, METH_VARARGS, "_page(lines, lang): the HTML page of log lines."},
    {"_live_page", py_live_page, METH_NOARGS, NULL},
    {"_set_callbacks", py_set_callbacks, METH_VARARGS, "Sets the values of enum weir_py_callback."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "weir._weir", .m_doc = "The C part of weir.",
                                        .m_size = -1, .m_methods = functions};

#define ROW(name) weir_##name##_begin,
WEIR_EXTRA_PYTHON(WEIR_PY_DECLARE_)

static int (*const begins[])(PyObject *module) = {WEIR_PY_PARTS(ROW) WEIR_EXTRA_PYTHON(ROW)};

PyMODINIT_FUNC PyInit__weir(void);
PyMODINIT_FUNC PyInit__weir(void)
{
    PyObject *module = PyModule_Create(&definition);
    weir_py_error = PyErr_NewExceptionWithDoc(
        "weir.Error", "A failure of the library: one line with what failed, where, and what to do.", PyExc_RuntimeError,
        NULL);
    if (!module || !weir_py_error || PyModule_AddObjectRef(module, "Error", weir_py_error) < 0 ||
        PyModule_AddStringConstant(module, "version", WEIR_VERSION) < 0)
        Py_CLEAR(module);
    for (size_t i = 0; module && i < sizeof begins / sizeof begins[0]; i++)
        if (begins[i](module) < 0)
            Py_CLEAR(module);
    return module;
}
