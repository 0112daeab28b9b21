/* weir.record_function, which records a named range in a trace. */
#include "python/src/profile_parts.h"
#include "python/src/session.h"
#include "weir/recorder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A range, which exists once per name until the process ends. It contains only a number, so any thread can use it at
 * any time. */
struct range_object {
    PyObject_HEAD weir_name name;
};

enum { RANGES_DEEP = 64 };

/* Ranges open on a thread. Ranges nested deeper than RANGES_DEEP are counted, but not recorded. */
struct opened {
    int depth;
    struct weir_range ranges[RANGES_DEEP];
};

static PyObject *range_type;
static PyObject *ranges; /* dict from name to range_object */
static pthread_key_t thread_end;
static __thread struct opened *opened_here; /* a pointer, since libraries loaded late get little thread-local storage */

static struct opened *open_thread(void)
{
    struct opened *opened = calloc(1, sizeof *opened);
    if (!opened || pthread_setspecific(thread_end, opened) != 0) {
        free(opened);
        PyErr_NoMemory();
        return NULL;
    }
    return opened_here = opened;
}

static void end_thread(void *opened)
{
    opened_here = NULL;
    free(opened);
}

static PyObject *range_enter(PyObject *self, PyObject *unused)
{
    struct opened *opened = opened_here;
    if (!opened && !(opened = open_thread()))
        return NULL;
    if (opened->depth < RANGES_DEEP)
        opened->ranges[opened->depth] = weir_range_begin(((struct range_object *)self)->name);
    opened->depth++;
    Py_INCREF(self);
    return self;
}

/* Ends the innermost range with this name, and all ranges inside it. Direct calls to __exit__, and generators, can exit
 * ranges out of order, or on a thread that did not enter them. */
static PyObject *range_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct opened *opened = opened_here;
    weir_name name = ((struct range_object *)self)->name;
    int at = opened ? opened->depth - 1 : -1;
    while (at >= 0 && at < RANGES_DEEP && opened->ranges[at].name != name)
        at--;
    if (at >= 0) {
        opened->depth = at;
        uint32_t stack = weir_profile_stack_here();
        if (at < RANGES_DEEP)
            weir_range_end(&opened->ranges[at]);
        weir_stack_self = stack;
    }
    Py_RETURN_NONE;
}

/* Returns a new reference to the range of this name, or NULL with an exception. */
static PyObject *range_of(PyObject *name)
{
    PyObject *known = PyUnicode_Check(name) ? PyDict_GetItemWithError(ranges, name) : NULL;
    if (known || PyErr_Occurred()) {
        Py_XINCREF(known);
        return known;
    }
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "a record_function's name must be a str, not %R", Py_TYPE(name));
    const char *text = weir_py_name(name);
    if (!text)
        return NULL;
    struct range_object *range = PyObject_New(struct range_object, (PyTypeObject *)range_type);
    if (!range)
        return NULL;
    range->name = weir_name_intern(text, WEIR_CAT_USER_ANNOTATION);
    if (PyDict_SetItem(ranges, name, (PyObject *)range) < 0)
        Py_CLEAR(range);
    return (PyObject *)range;
}

static PyObject *py_record_function(PyObject *module, PyObject *name)
{
    return range_of(name);
}

int weir_profile_range_begin(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"__enter__", range_enter, METH_NOARGS, "Begins the range on this thread."},
        {"__exit__", (PyCFunction)(void (*)(void))range_exit, METH_FASTCALL, "Ends the range."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A range in a trace: a context manager and decorator, created by weir.record_function."},
        {Py_tp_methods, methods},
        {Py_tp_call, weir_py_decorated},
        {Py_tp_dealloc, weir_py_free},
        {0, NULL}};
    static PyMethodDef functions[] = {
        {"record_function", py_record_function, METH_O,
         "record_function(name, /)\n--\n\n"
         "Creates a range in the traces of weir.profile, like torch.profiler.record_function. It has no\n"
         "row in weir.table(), and almost no cost while nothing is being recorded.\n\n"
         "    with weir.record_function(\"augment\"):\n"
         "        ...\n\n"
         "    @weir.record_function(\"loss\")\n"
         "    def loss(): ..."},
        {0}};
    ranges = PyDict_New();
    if (!ranges || pthread_key_create(&thread_end, end_thread) != 0) {
        PyErr_SetString(PyExc_ImportError, "weir's ranges cannot be registered");
        return -1;
    }
    return PyModule_AddFunctions(module, functions) < 0
               ? -1
               : weir_py_add_type(module, "weir.RecordFunction", sizeof(struct range_object), 0, slots, &range_type);
}
