#include "python/src/loader_parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind { INT, BOOL, U64, DOUBLE, TEXT };

struct option {
    const char *name;
    enum kind kind;
    size_t offset;
};

#define OPTION(name, kind, field)                                                                                      \
    {                                                                                                                  \
        name, kind, offsetof(struct weir_loader_config, field)                                                         \
    }

static const char *const wanted[] = {
    [INT] = "an int of 32 bits",          [BOOL] = "True or False",
    [U64] = "an int from 0 to 2**64 - 1", [DOUBLE] = "a number",
    [TEXT] = "a text without zero bytes",
};

/* Enums are ints. */
static const struct option options[] = {
    OPTION("data", TEXT, data),
    OPTION("cameras", TEXT, cameras),
    OPTION("qpos_keys", TEXT, qpos_keys),
    OPTION("action_keys", TEXT, action_keys),
    OPTION("image_keys", TEXT, image_keys),
    OPTION("file_split", TEXT, split),
    OPTION("index", TEXT, index),
    OPTION("crop", TEXT, crop),
    OPTION("io", TEXT, io),
    OPTION("decoder", TEXT, decoder),
    OPTION("device", TEXT, device),
    OPTION("deterministic", BOOL, deterministic),
    OPTION("allow_ragged", BOOL, allow_ragged),
    OPTION("allow_external", BOOL, allow_external),
    OPTION("no_shuffle", BOOL, no_shuffle),
    OPTION("drop_last", BOOL, drop_last),
    OPTION("wrap", BOOL, wrap),
    OPTION("raw_state", BOOL, raw_state),
    OPTION("batch_size", INT, batch_size),
    OPTION("num_workers", INT, num_workers),
    OPTION("prefetch_factor", INT, prefetch),
    OPTION("max_batches", INT, max_batches),
    OPTION("sampling", INT, sampling),
    OPTION("splits", INT, splits),
    OPTION("obs_history", INT, obs_history),
    OPTION("chunk_size", INT, chunk_size),
    OPTION("pad", INT, pad),
    OPTION("action_offset", INT, action_offset),
    OPTION("color", INT, format.color),
    OPTION("dtype", INT, format.dtype),
    OPTION("layout", INT, format.layout),
    OPTION("image_width", INT, image_width),
    OPTION("image_height", INT, image_height),
    OPTION("rank", INT, rank),
    OPTION("world_size", INT, world_size),
    OPTION("local_rank", INT, local_rank),
    OPTION("local_size", INT, local_size),
    OPTION("local_cores", INT, local_cores),
    OPTION("on_error", INT, on_error),
    OPTION("seed", U64, seed),
    OPTION("decode_cache", U64, decode_cache_bytes),
    OPTION("train_split", DOUBLE, train_split),
};

/* Text as UTF-8, and bytes as they are: a new reference to bytes without zeros; NULL, with or without an exception. */
static PyObject *bytes_of(PyObject *value)
{
    char *text;
    PyObject *bytes = PyBytes_Check(value)     ? Py_NewRef(value)
                      : PyUnicode_Check(value) ? PyUnicode_AsEncodedString(value, "utf-8", "surrogateescape")
                                               : NULL;
    if (bytes && PyBytes_AsStringAndSize(bytes, &text, NULL) < 0)
        Py_CLEAR(bytes);
    return bytes;
}

static bool set_text(struct weir_loader_object *self, const char **field, PyObject *value)
{
    PyObject *bytes = bytes_of(value);
    for (int i = 0; bytes && i < WEIR_LOADER_TEXTS; i++) {
        if (self->texts[i])
            continue;
        *field = self->texts[i] = strdup(PyBytes_AsString(bytes));
        if (!*field)
            PyErr_NoMemory();
        break;
    }
    Py_XDECREF(bytes);
    return bytes != NULL;
}

static bool set_int(int *field, PyObject *value)
{
    long number = PyLong_AsLong(value);
    *field = (int)number;
    return number >= INT32_MIN && number <= INT32_MAX;
}

static bool set_bool(bool *field, PyObject *value)
{
    int is_true = PyUnicode_Check(value) || PyBytes_Check(value) || value == Py_None ? -1 : PyObject_IsTrue(value);
    *field = is_true > 0;
    return is_true >= 0;
}

/* False, or an exception: the value does not fit the kind. */
static bool set_option(struct weir_loader_object *self, const struct option *option, PyObject *value)
{
    void *field = (char *)&self->config + option->offset;
    if (option->kind == TEXT)
        return set_text(self, field, value);
    if (option->kind == BOOL)
        return set_bool(field, value);
    if (option->kind == INT)
        return set_int(field, value);
    if (option->kind == DOUBLE)
        *(double *)field = PyFloat_AsDouble(value);
    else
        *(uint64_t *)field = PyLong_AsUnsignedLongLong(value);
    return true;
}

int weir_loader_options(struct weir_loader_object *self, PyObject *dict)
{
    weir_loader_config_default(&self->config);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        PyObject *value = PyDict_GetItemString(dict, options[i].name);
        if (!value || (value == Py_None && options[i].kind == TEXT))
            continue;
        bool set = set_option(self, &options[i], value);
        if (set && !PyErr_Occurred())
            continue;
        if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
            !PyErr_ExceptionMatches(PyExc_OverflowError))
            return -1; /* of the value itself, or no memory */
        PyErr_Format(PyExc_ValueError, "%s must be %s, not %.100R", options[i].name, wanted[options[i].kind], value);
        return -1;
    }
    return 0;
}
