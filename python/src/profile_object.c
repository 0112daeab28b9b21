/* weir._Profiler, the base class of weir.profile. It records windows and calls self._window(trace) at the end of each.
 *
 * A process can have only one open profiler, and only one call can be in progress. A second call, from another thread
 * or from _window(), raises an exception. */
#include "prof/gpu/gpu_trace.h"
#include "python/src/gpu_timing.h"
#include "python/src/profile_parts.h"
#include "python/src/session.h"
#include "weir/profiler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct profiler_object {
    PyObject_HEAD struct weir_profiler *profiler; /* NULL while not recording */
    enum weir_action action;                      /* action in the next step */
    bool busy;
    PyThreadState *state; /* thread state of the call in progress, saved when it released the interpreter's lock */
    bool raised;          /* _window raised an exception, which the call in progress must raise */
    PyObject *error[3];
    pthread_mutex_t lock; /* protects the messages, which any thread can add */
    char *messages;       /* lines; NULL = none */
};

static enum weir_action next_action(void *user, int64_t step)
{
    return ((struct profiler_object *)user)->action;
}

static void on_message(void *user, const char *line)
{
    struct profiler_object *self = user;
    pthread_mutex_lock(&self->lock);
    size_t used = self->messages ? strlen(self->messages) : 0, room = strlen(line) + 2;
    char *more = realloc(self->messages, used + room);
    if (more) {
        snprintf(more + used, room, "%s\n", line);
        self->messages = more;
    }
    pthread_mutex_unlock(&self->lock);
}

/* ---- windows ---- */

static void hand_out(struct profiler_object *self, struct weir_trace *trace)
{
    PyObject *object = trace ? weir_profile_trace_new(trace) : PyErr_NoMemory();
    PyObject *done = object ? PyObject_CallMethod((PyObject *)self, "_window", "O", object) : NULL;
    if (!done && !self->raised) {
        PyErr_Fetch(&self->error[0], &self->error[1], &self->error[2]);
        self->raised = true;
    }
    PyErr_Clear();
    Py_XDECREF(object);
    Py_XDECREF(done);
}

static void on_window_end(void *user)
{
    struct profiler_object *self = user;
    weir_profiler_flush(self->profiler);
    struct weir_trace *trace = weir_profiler_take(self->profiler);
    if (!self->state) { /* no callback, because the object is being freed */
        weir_trace_free(&trace);
        return;
    }
    PyEval_RestoreThread(self->state);
    hand_out(self, trace);
    self->state = PyEval_SaveThread();
}

/* ---- calls ---- */

static bool is_free(const struct profiler_object *self)
{
    if (self->busy)
        PyErr_SetString(weir_py_error,
                        "start, step and stop of a profile must not be called from its on_trace_ready, or on "
                        "two threads simultaneously");
    return !self->busy;
}

static bool begin_call(struct profiler_object *self)
{
    if (!is_free(self))
        return false;
    self->busy = true;
    self->state = PyEval_SaveThread();
    return true;
}

/* Returns None, or NULL with the exception that _window raised. */
static PyObject *end_call(struct profiler_object *self)
{
    PyEval_RestoreThread(self->state);
    self->state = NULL;
    self->busy = false;
    if (!self->raised)
        Py_RETURN_NONE;
    self->raised = false;
    PyErr_Restore(self->error[0], self->error[1], self->error[2]);
    memset(self->error, 0, sizeof self->error);
    return NULL;
}

static PyObject *profiler_open(PyObject *object, PyObject *args)
{
    struct profiler_object *self = (struct profiler_object *)object;
    struct weir_profiler_config config;
    struct weir_err err = WEIR_ERR_NONE;
    int gpu, shapes, memory, stack, steps, action;
    long long first_step;
    if (!PyArg_ParseTuple(args, "pppppLi:_open", &gpu, &shapes, &memory, &stack, &steps, &first_step, &action))
        return NULL;
    if (self->profiler)
        return PyErr_Format(weir_py_error, "the profile is already running; stop it first");
    if (!weir_session()) /* attaches this thread, so that its stages are recorded */
        return NULL;
    weir_profiler_config_default(&config);
    config.gpu = gpu;
    config.record_shapes = shapes;
    config.profile_memory = memory;
    config.with_stack = stack;
    config.action = steps ? next_action : NULL;
    config.first_step = first_step;
    config.on_window_end = on_window_end;
    config.on_message = on_message;
    config.on_sample = weir_profile_count_loader;
    config.user = self;
    self->action = (enum weir_action)action;
    if (!begin_call(self))
        return NULL;
    int rc = weir_profiler_open(&self->profiler, &config, &err);
    if (rc == 0 && !steps)
        rc = weir_profiler_start(self->profiler, &err);
    if (rc < 0)
        weir_profiler_close(&self->profiler);
    PyObject *done = end_call(self);
    if (rc == 0 || !done)
        return done;
    Py_DECREF(done);
    return weir_py_raise(rc, &err);
}

static PyObject *profiler_advance(PyObject *object, PyObject *number)
{
    struct profiler_object *self = (struct profiler_object *)object;
    long action = PyLong_AsLong(number);
    if (PyErr_Occurred() || !begin_call(self))
        return NULL;
    self->action = (enum weir_action)action;
    weir_profiler_step(self->profiler);
    return end_call(self);
}

static PyObject *profiler_close(PyObject *object, PyObject *unused)
{
    struct profiler_object *self = (struct profiler_object *)object;
    if (!begin_call(self))
        return NULL;
    weir_profiler_close(&self->profiler);
    return end_call(self);
}

static PyObject *profiler_check(PyObject *object, PyObject *unused)
{
    if (!is_free((struct profiler_object *)object))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *profiler_messages(PyObject *object, PyObject *unused)
{
    struct profiler_object *self = (struct profiler_object *)object;
    pthread_mutex_lock(&self->lock);
    char *lines = self->messages;
    self->messages = NULL;
    pthread_mutex_unlock(&self->lock);
    PyObject *text = weir_py_shown(lines ? lines : "");
    free(lines);
    return text;
}

/* Returns None if the GPU can be recorded. Otherwise returns a tuple (reason, whether another tool is recording it). If
 * there is a GPU, this process then counts as using it. */
static PyObject *py_gpu_check(PyObject *module, PyObject *unused)
{
    char library[128];
    struct weir_err err = WEIR_ERR_NONE;
    int rc = weir_gpu_usable(&err);
    if (rc == 0) {
        Py_BEGIN_ALLOW_THREADS rc = weir_gpu_take_check(library, sizeof library, &err);
        Py_END_ALLOW_THREADS
    }
    if ((rc == 0 || rc == -EBUSY) && weir_gpu_use("weir.profile") < 0)
        return NULL;
    if (rc == 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(sO)", err.text, rc == -EBUSY ? Py_True : Py_False);
}

static PyObject *py_loader_text(PyObject *module, PyObject *unused)
{
    char text[256];
    weir_profile_loader_text(text, sizeof text);
    return PyUnicode_FromString(text);
}

/* Returns the action that a schedule (wait, warmup, active, repeat, skip_first, skip_first_wait) has for a step. */
static PyObject *py_schedule_action(PyObject *module, PyObject *args)
{
    struct weir_err err = WEIR_ERR_NONE;
    long long n[6], step;
    if (!PyArg_ParseTuple(args, "(LLLLLL)L:_schedule_action", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &step))
        return NULL;
    const struct weir_schedule schedule = {
        .wait = n[0], .warmup = n[1], .active = n[2], .repeat = n[3], .skip_first = n[4], .skip_first_wait = n[5]};
    int rc = weir_schedule_check(&schedule, &err);
    if (rc == 0 && (step < 0 || step > (long long)1 << 40))
        rc = weir_err_set(&err, -EINVAL, "step must be 0..2^40, not %lld", step);
    return rc < 0 ? weir_py_raise(rc, &err) : PyLong_FromLong(weir_schedule_action(&schedule, step));
}

/* ---- the class ---- */

static PyObject *profiler_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct profiler_object *self = (struct profiler_object *)allocate(type, 0);
    if (!self)
        return NULL;
    pthread_mutex_init(&self->lock, NULL);
    return (PyObject *)self;
}

static void profiler_free(PyObject *object)
{
    struct profiler_object *self = (struct profiler_object *)object;
    Py_BEGIN_ALLOW_THREADS weir_profiler_close(&self->profiler);
    Py_END_ALLOW_THREADS free(self->messages);
    pthread_mutex_destroy(&self->lock);
    weir_py_free(object);
}

int weir_profile_object_begin(PyObject *module)
{
    static PyObject *type;
    static PyMethodDef methods[] = {
        {"_open", profiler_open, METH_VARARGS, NULL},        {"_advance", profiler_advance, METH_O, NULL},
        {"_close", profiler_close, METH_NOARGS, NULL},       {"_check", profiler_check, METH_NOARGS, NULL},
        {"_messages", profiler_messages, METH_NOARGS, NULL}, {0}};
    static PyType_Slot slots[] = {
        {Py_tp_methods, methods}, {Py_tp_new, profiler_new}, {Py_tp_dealloc, profiler_free}, {0, NULL}};
    static PyMethodDef functions[] = {{"_gpu_check", py_gpu_check, METH_NOARGS, NULL},
                                      {"_loader_text", py_loader_text, METH_NOARGS, NULL},
                                      {"_schedule_action", py_schedule_action, METH_VARARGS, NULL},
                                      {0}};
    return PyModule_AddFunctions(module, functions) < 0
               ? -1
               : weir_py_add_type(module, "weir._Profiler", sizeof(struct profiler_object), Py_TPFLAGS_BASETYPE, slots,
                                  &type);
}
