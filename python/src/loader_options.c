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
    OPTION("prefetch", INT, prefetch),
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
    OPTION("decode_cache_bytes", U64, decode_cache_bytes),
    OPTION("train_split", DOUBLE, train_split),
};

static int set_text(struct weir_loader_object *self, const char **field, PyObject *value)
{
    const char *text = PyUnicode_AsUTF8AndSize(value, NULL);
    for (int i = 0; text && i < WEIR_LOADER_TEXTS; i++) {
        if (self->texts[i])
            continue;
        *field = self->texts[i] = strdup(text);
        if (!*field)
            PyErr_NoMemory();
        return *field ? 0 : -1;
    }
    if (text)
        PyErr_SetString(PyExc_SystemError, "more texts than the loader has room for");
    return -1;
}

static int set_option(struct weir_loader_object *self, const struct option *option, PyObject *value)
{
    void *field = (char *)&self->config + option->offset;
    if (option->kind == TEXT)
        return set_text(self, field, value);
    if (option->kind == BOOL) {
        int is_true = PyObject_IsTrue(value);
        *(bool *)field = is_true > 0;
    } else if (option->kind == DOUBLE) {
        *(double *)field = PyFloat_AsDouble(value);
    } else if (option->kind == U64) {
        *(uint64_t *)field = PyLong_AsUnsignedLongLong(value);
    } else {
        long number = PyLong_AsLong(value);
        if (!PyErr_Occurred() && (number < INT32_MIN || number > INT32_MAX))
            PyErr_SetString(PyExc_OverflowError, "it does not fit 32 bits");
        *(int *)field = (int)number;
    }
    return PyErr_Occurred() ? -1 : 0;
}

int weir_loader_options(struct weir_loader_object *self, PyObject *dict)
{
    weir_loader_config_default(&self->config);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        PyObject *value = PyDict_GetItemString(dict, options[i].name);
        if (!value || value == Py_None || set_option(self, &options[i], value) == 0)
            continue;
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        PyErr_Format(PyExc_ValueError, "%s=%R: %S", options[i].name, value, error ? error : type);
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
        return -1;
    }
    return 0;
}
