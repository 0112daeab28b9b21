/* The trace of a window recorded by weir.profile, and the averages computed from it. */
#include "prof/trace/trace_read.h"
#include "python/src/profile_parts.h"
#include "python/src/session.h"
#include "weir/trace.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The lock is needed because writing and averaging sort the trace and intern strings without the interpreter's lock. */
struct trace_object {
    PyObject_HEAD struct weir_trace *trace;
    pthread_mutex_t lock;
};

struct averages_object {
    PyObject_HEAD struct trace_object *from; /* owned */
    struct weir_averages *averages;
};

static PyObject *trace_type, *averages_type;

PyObject *weir_profile_trace_new(struct weir_trace *trace)
{
    struct trace_object *object = PyObject_New(struct trace_object, (PyTypeObject *)trace_type);
    if (!object) {
        weir_trace_free(&trace);
        return NULL;
    }
    object->trace = trace;
    pthread_mutex_init(&object->lock, NULL);
    return (PyObject *)object;
}

static void trace_free(PyObject *object)
{
    struct trace_object *self = (struct trace_object *)object;
    weir_trace_free(&self->trace);
    pthread_mutex_destroy(&self->lock);
    weir_py_free(object);
}

/* Calls function, or exports stacks by a metric, with the trace and a path. Returns None, or NULL with an exception. */
static PyObject *with_file(PyObject *object, PyObject *path, const char *metric,
                           int (*function)(struct weir_trace *trace, const char *path, struct weir_err *err))
{
    struct trace_object *self = (struct trace_object *)object;
    struct weir_err err = WEIR_ERR_NONE;
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    const char *text = PyBytes_AsString(bytes);
    int rc;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->lock);
    rc = function ? function(self->trace, text, &err) : weir_stacks_export(self->trace, metric, text, &err);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    return weir_py_check(rc, &err) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *trace_export(PyObject *object, PyObject *path)
{
    return with_file(object, path, NULL, weir_trace_write);
}

static PyObject *trace_merge(PyObject *object, PyObject *path)
{
    return with_file(object, path, NULL, weir_trace_merge);
}

static PyObject *trace_stacks(PyObject *object, PyObject *args)
{
    PyObject *path;
    const char *metric;
    return PyArg_ParseTuple(args, "Os:stacks", &path, &metric) ? with_file(object, path, metric, NULL) : NULL;
}

/* Sets additional members of the trace file, as JSON. */
static PyObject *trace_set_metadata(PyObject *object, PyObject *args)
{
    struct trace_object *self = (struct trace_object *)object;
    const char *text;
    if (!PyArg_ParseTuple(args, "s:set_metadata", &text))
        return NULL;
    pthread_mutex_lock(&self->lock);
    self->trace->metadata = weir_trace_intern(self->trace, text, strlen(text));
    pthread_mutex_unlock(&self->lock);
    Py_RETURN_NONE;
}

static bool is_step(const struct weir_trace *trace, const struct weir_event *event)
{
    return strncmp(weir_trace_text(trace, event->name), "ProfilerStep#", 13) == 0;
}

static bool is_of_gpu(const struct weir_event *event)
{
    bool call = event->cat == WEIR_CAT_CUDA_RUNTIME || event->cat == WEIR_CAT_CUDA_DRIVER;
    if (event->kind == WEIR_EVENT_MEMORY)
        return event->memory.device >= 0;
    return event->kind == WEIR_EVENT_RANGE &&
           (call || event->cat == WEIR_CAT_OVERHEAD || weir_cat_is_device((enum weir_cat)event->cat));
}

/* Removes all events except GPU work, its launches, and steps, for a trace without CPU activity. */
static PyObject *trace_keep_gpu(PyObject *object, PyObject *unused)
{
    struct trace_object *self = (struct trace_object *)object;
    struct weir_trace *trace = self->trace;
    size_t n = 0;
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < trace->n_events; i++)
        if (is_of_gpu(&trace->events[i]) || is_step(trace, &trace->events[i]))
            trace->events[n++] = trace->events[i];
    trace->n_events = n;
    pthread_mutex_unlock(&self->lock);
    Py_RETURN_NONE;
}

/* ---- averages ---- */

static PyObject *trace_averages(PyObject *object, PyObject *args)
{
    struct trace_object *self = (struct trace_object *)object;
    struct weir_averages_config config = {0};
    struct weir_averages *made;
    int by_shape, rc;
    if (!PyArg_ParseTuple(args, "pi:averages", &by_shape, &config.by_stack))
        return NULL;
    config.by_shape = by_shape;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->lock);
    rc = weir_averages_open(&made, self->trace, &config);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS if (rc < 0) return PyErr_NoMemory();
    struct averages_object *averages = PyObject_New(struct averages_object, (PyTypeObject *)averages_type);
    if (!averages) {
        weir_averages_close(&made);
        return NULL;
    }
    averages->averages = made;
    averages->from = self;
    Py_INCREF(object);
    return (PyObject *)averages;
}

static void averages_free(PyObject *object)
{
    struct averages_object *self = (struct averages_object *)object;
    weir_averages_close(&self->averages);
    Py_DECREF((PyObject *)self->from);
    weir_py_free(object);
}

/* Names of functions and files can have any encoding. */
static PyObject *text_of(const struct weir_trace *trace, weir_text_id id)
{
    return weir_py_shown(weir_trace_text(trace, id));
}

/* Returns the fields of weir.Average in order, with times in us. */
static PyObject *row_of(const struct weir_averages *averages, const struct weir_averages_row *row)
{
    const struct weir_trace *trace = averages->trace;
    return Py_BuildValue("NddddLLLLKsNNOd", text_of(trace, row->name), (double)row->self_cpu_ns / 1e3,
                         (double)row->cpu_ns / 1e3, (double)row->self_device_ns / 1e3, (double)row->device_ns / 1e3,
                         (long long)row->self_cpu_bytes, (long long)row->cpu_bytes, (long long)row->self_device_bytes,
                         (long long)row->device_bytes, (unsigned long long)row->count, row->device ? "cuda" : "cpu",
                         text_of(trace, row->shapes), text_of(trace, row->stack), row->annotation ? Py_True : Py_False,
                         row->flops);
}

static PyObject *averages_rows(PyObject *object, PyObject *unused)
{
    struct averages_object *self = (struct averages_object *)object;
    PyObject *rows = PyList_New(0);
    pthread_mutex_lock(&self->from->lock);
    for (size_t i = 0; rows && i < self->averages->n_rows; i++)
        if (weir_py_append(rows, row_of(self->averages, &self->averages->rows[i])) < 0)
            Py_CLEAR(rows);
    pthread_mutex_unlock(&self->from->lock);
    return rows;
}

struct printing {
    const struct averages_object *self;
    struct weir_averages_table table;
};

static int print_table(void *user, FILE *out)
{
    struct printing *printing = user;
    struct trace_object *from = printing->self->from;
    pthread_mutex_lock(&from->lock);
    weir_averages_print(out, printing->self->averages, &printing->table);
    pthread_mutex_unlock(&from->lock);
    return 0;
}

static PyObject *averages_table(PyObject *object, PyObject *args)
{
    struct printing printing = {.self = (const struct averages_object *)object};
    struct weir_averages_table *table = &printing.table;
    struct weir_err err = WEIR_ERR_NONE;
    int top_level, rc;
    if (!PyArg_ParseTuple(args, "zizp:table", &table->sort_by, &table->row_limit, &table->header, &top_level))
        return NULL;
    table->top_level = top_level;
    rc = table->sort_by ? weir_averages_check_sort(table->sort_by, &err) : 0;
    return rc < 0 ? weir_py_raise(rc, &err) : weir_py_printed(print_table, &printing);
}

/* ---- file names ---- */

static PyObject *py_trace_path(PyObject *module, PyObject *args)
{
    struct weir_err err = WEIR_ERR_NONE;
    char path[PATH_MAX];
    PyObject *bytes;
    const char *worker;
    int gzip;
    if (!PyArg_ParseTuple(args, "O&zp:_trace_path", PyUnicode_FSConverter, &bytes, &worker, &gzip))
        return NULL;
    int rc = weir_trace_path(path, sizeof path, PyBytes_AsString(bytes), worker, gzip, &err);
    Py_DECREF(bytes);
    return rc < 0 ? weir_py_raise(rc, &err) : PyUnicode_DecodeFSDefault(path);
}

int weir_profile_trace_begin(PyObject *module)
{
    static PyMethodDef trace_methods[] = {{"export", trace_export, METH_O, NULL},
                                          {"merge", trace_merge, METH_O, NULL},
                                          {"stacks", trace_stacks, METH_VARARGS, NULL},
                                          {"set_metadata", trace_set_metadata, METH_VARARGS, NULL},
                                          {"keep_gpu", trace_keep_gpu, METH_NOARGS, NULL},
                                          {"averages", trace_averages, METH_VARARGS, NULL},
                                          {0}};
    static PyType_Slot trace_slots[] = {{Py_tp_methods, trace_methods}, {Py_tp_dealloc, trace_free}, {0, NULL}};
    static PyMethodDef methods[] = {
        {"rows", averages_rows, METH_NOARGS, NULL}, {"table", averages_table, METH_VARARGS, NULL}, {0}};
    static PyType_Slot slots[] = {{Py_tp_methods, methods}, {Py_tp_dealloc, averages_free}, {0, NULL}};
    static PyMethodDef functions[] = {{"_trace_path", py_trace_path, METH_VARARGS,
                                       "Returns a new file name that TensorBoard recognises, and creates the folder."},
                                      {0}};
    if (PyModule_AddFunctions(module, functions) < 0 ||
        weir_py_add_type(module, "weir._Trace", sizeof(struct trace_object), 0, trace_slots, &trace_type) < 0)
        return -1;
    return weir_py_add_type(module, "weir._Averages", sizeof(struct averages_object), 0, slots, &averages_type);
}
