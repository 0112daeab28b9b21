#include "analyze/ranks/rank_session.h"
#include "base/text.h"
#include "datasets/scan_remote.h"
#include "pipeline/gpu/gpu.h"
#include "python/src/gpu_timing.h"
#include "python/src/loader_parts.h"
#include "python/src/profile_parts.h"
#include "python/src/py.h"
#include "python/src/session.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An iterator over one epoch. */
struct iteration {
    PyObject_HEAD struct weir_loader_object *loader; /* owned */
    uint64_t number;                                 /* value of loader->iteration when this iteration began */
    uint64_t end;                                    /* number of the batch after the last one of this iteration */
    bool done;                                       /* the end of the iteration was reported to the program */
};

static PyObject *loader_type, *iteration_type;

/* ---- opening and closing ---- */

static bool interrupted(void *user)
{
    PyGILState_STATE state = PyGILState_Ensure();
    bool raised = PyErr_CheckSignals() < 0; /* if so, the exception is raised on the waiting thread */
    PyGILState_Release(state);
    return raised;
}

/* _read(url, endpoint, anonymous): the bytes of a small file on a server. */
static PyObject *loader_read(PyObject *object, PyObject *args)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset_config config = {.size = sizeof config, .interrupted = interrupted};
    char *text;
    size_t n = 0;
    int anonymous, rc;
    if (!PyArg_ParseTuple(args, "yzp", &config.path, &config.endpoint, &anonymous))
        return NULL;
    config.anonymous = anonymous;
    Py_BEGIN_ALLOW_THREADS rc = weir_remote_text(&config, &text, &n, &err);
    Py_END_ALLOW_THREADS if (rc < 0) return PyErr_Occurred() ? NULL : weir_py_raise(rc, &err);
    PyObject *bytes = PyBytes_FromStringAndSize(text, (Py_ssize_t)n);
    free(text);
    return bytes;
}

/* _first(path, endpoint, anonymous): the path of the first file, or folder that is a dataset, below a path; or None. */
static PyObject *loader_first(PyObject *object, PyObject *args)
{
    struct weir_err ignored = WEIR_ERR_NONE;
    struct weir_dataset_config config = {.size = sizeof config, .interrupted = interrupted};
    struct weir_path_list files, left_out;
    int anonymous, rc;
    if (!PyArg_ParseTuple(args, "yzp", &config.path, &config.endpoint, &anonymous))
        return NULL;
    config.anonymous = anonymous;
    Py_BEGIN_ALLOW_THREADS rc = weir_scan_config(&config, &files, &left_out, &ignored);
    Py_END_ALLOW_THREADS if (PyErr_Occurred()) return NULL;
    if (rc < 0)
        Py_RETURN_NONE;
    PyObject *first = files.n > 0 ? PyBytes_FromString(files.paths[0]) : PyBytes_FromString(config.path);
    weir_path_list_free(&files);
    weir_path_list_free(&left_out);
    return first;
}

int weir_loader_check(const struct weir_loader_object *self)
{
    if (self->loader && self->fork_depth != weir_fork_depth())
        PyErr_SetString(weir_py_error,
                        "the loader was opened before fork(), so its threads do not run in this process; "
                        "open the loader in the process that uses it");
    else if (self->busy)
        PyErr_SetString(weir_py_error, "another thread is waiting for a batch of this loader");
    else if (!self->loader)
        PyErr_SetString(weir_py_error, "the loader is closed");
    else
        return 0;
    return -1;
}

static void close_loader(struct weir_loader_object *self)
{
    if (!self->loader)
        return;
    if (self->fork_depth == weir_fork_depth()) {
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        self->busy = true;
        weir_profile_loader_closes(self->loader);
        Py_BEGIN_ALLOW_THREADS weir_loader_stop(self->loader); /* a silent server must not delay the end */
        weir_loader_live_end(self);
        weir_batches_leave(self);
        weir_loader_reports_end(&self->reports);
        weir_loader_close(&self->loader);
        weir_lender_drop(self->lender);
        Py_END_ALLOW_THREADS self->busy = false;
        PyErr_Restore(type, error, trace);
    }
    /* In a child of fork(), the loader is only forgotten, because its threads and memory belong to the parent. */
    weir_loader_number_give(self);
    self->loader = NULL;
    self->reports = NULL;
    self->lender = NULL;
    self->n_out = 0;
}

static int check_gpu(const struct weir_loader_config *config)
{
    struct weir_err err = WEIR_ERR_NONE;
    int number;
    if (weir_py_check(weir_device_parse(config->device, &number, &err), &err) < 0)
        return -1;
    return number < 0 ? 0 : weir_gpu_use("device='cuda'");
}

/* Opens the loader so that the batch with number `position` comes first. Returns 0, or -1 with an exception. */
static int open_at(struct weir_loader_object *self, uint64_t position)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_loader_config *config = &self->config;
    config->num_epochs = INT32_MAX; /* the program decides how many epochs to iterate over */
    config->recorder = weir_session();
    weir_loader_number_take(self);
    config->interrupted = interrupted;
    config->resume = self->state;
    config->resume.given = position > 0;
    config->resume.next = position;
    if (!config->recorder || check_gpu(config) < 0)
        return -1;
    struct weir_loader_reports_config reports = {.size = sizeof reports, .folder = config->data};
    int rc;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS rc = weir_loader_open(&self->loader, config, &err);
    if (rc == 0)
        rc = weir_loader_reports_begin(&self->reports, self->loader, &reports);
    if (rc == 0)
        rc = weir_loader_reports_restart(self->reports); /* excludes stages of earlier loaders */
    if (rc == 0)
        rc = weir_loader_live_begin(self, &err);
    if (rc == 0 && weir_device_of(self->loader) && !(self->lender = weir_lender_new(self->loader)))
        rc = -ENOMEM;
    Py_END_ALLOW_THREADS self->busy = false;
    self->fork_depth = weir_fork_depth();
    if (rc < 0) {
        close_loader(self);
        weir_loader_number_give(self);
        if (!PyErr_Occurred()) /* otherwise a signal handler has raised one */
            weir_py_raise(rc, &err);
        return -1;
    }
    if (weir_loader_periods_begin(self) < 0) {
        close_loader(self);
        PyErr_NoMemory();
        return -1;
    }
    weir_profile_loader_opened(self->loader);
    self->faults_reported = 0;
    weir_loader_state(self->loader, &self->state);
    const struct weir_sampler *sampler = weir_loader_sampler(self->loader);
    self->per_epoch = (uint64_t)weir_sampler_batches(sampler, WEIR_SPLIT_TRAIN) +
                      (uint64_t)weir_sampler_batches(sampler, WEIR_SPLIT_VAL);
    return 0;
}

/* Warns about each camera that the files contain but the batches do not, about skipped episodes, and about frames that
 * are not what they seem. Returns 0, or -1 if the warning raised an exception. */
static int warn_of_left_out(const struct weir_loader_object *self)
{
    char line[1024];
    const struct weir_dataset *dataset = weir_loader_dataset(self->loader);
    int bad = weir_dataset_bad_episodes(dataset);
    if (bad > 0) {
        snprintf(line, sizeof line, "%d episode%s cannot be opened and %s skipped; the first error: %s", bad,
                 bad == 1 ? "" : "s", bad == 1 ? "is" : "are", weir_dataset_bad_episode(dataset, 0));
        weir_text_printable(line); /* the end may have been cut off within a character */
        if (PyErr_WarnEx(PyExc_RuntimeWarning, line, 2) < 0)
            return -1;
    }
    for (int i = 0; weir_dataset_left_out(dataset, i, line, sizeof line); i++)
        if (PyErr_WarnEx(PyExc_RuntimeWarning, line, 2) < 0)
            return -1;
    if (weir_dataset_drift(dataset, line, sizeof line) && PyErr_WarnEx(PyExc_RuntimeWarning, line, 2) < 0)
        return -1;
    return weir_loader_unturned(self->loader, line, sizeof line) ? PyErr_WarnEx(PyExc_RuntimeWarning, line, 2) : 0;
}

/* Warns if bad frames have cost samples since the last warning. Returns 0, or -1 if the warning raised an exception. */
static int warn_of_faults(struct weir_loader_object *self)
{
    struct weir_loader_counts counts;
    char error[WEIR_FAULT_TEXT], text[WEIR_FAULT_TEXT + 200];
    uint64_t times;
    if (self->config.on_error == WEIR_ON_ERROR_FAIL || !weir_loader_fault(self->loader, 0, error, &times))
        return 0;
    weir_loader_counts(self->loader, &counts, false);
    if (counts.skipped_samples + counts.substituted_frames <= self->faults_reported)
        return 0;
    self->faults_reported = counts.skipped_samples + counts.substituted_frames;
    snprintf(text, sizeof text,
             "bad frames since the loader was opened (samples skipped: %llu, frames substituted: %llu); the first "
             "error: %s",
             (unsigned long long)counts.skipped_samples, (unsigned long long)counts.substituted_frames, error);
    weir_text_printable(text);
    self->busy = true; /* the warning can run other threads of the program */
    int rc = PyErr_WarnEx(PyExc_RuntimeWarning, text, 1);
    self->busy = false;
    return rc;
}

static void keep_object(PyObject **field, PyObject *object)
{
    object = object == Py_None ? NULL : object;
    Py_XINCREF(object);
    Py_XDECREF(*field);
    *field = object;
}

static PyObject *loader_open(PyObject *object, PyObject *args)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    PyObject *path, *options, *from_dlpack, *bool_dtype, *make, *current_stream;
    int local_rank, local_size, local_cores, keys, has_uint16;
    if (!PyArg_ParseTuple(args, "OO!(iii)iOOpOO:_open", &path, &PyDict_Type, &options, &local_rank, &local_size,
                          &local_cores, &keys, &from_dlpack, &bool_dtype, &has_uint16, &make, &current_stream))
        return NULL;
    if (self->loader)
        return PyErr_Format(weir_py_error, "the loader is open already");
    keep_object(&self->from_dlpack, from_dlpack);
    keep_object(&self->bool_dtype, bool_dtype);
    keep_object(&self->make, make);
    keep_object(&self->current_stream, current_stream);
    self->keys = (enum weir_keys)keys;
    self->has_uint16 = has_uint16;
    if (weir_loader_options(self, path, options) < 0)
        return NULL;
    self->config.local_rank = local_rank;
    self->config.local_size = local_size;
    self->config.local_cores = local_cores;
    self->config.columns = self->keys == WEIR_KEYS_LEROBOT && self->make;
    if (open_at(self, 0) < 0)
        return NULL;
    if (warn_of_left_out(self) < 0) {
        close_loader(self);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *loader_close(PyObject *object, PyObject *unused)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    if (self->busy && weir_loader_check(self) < 0)
        return NULL;
    weir_loader_end_ranks(self);
    close_loader(self);
    weir_loader_live_close(self);
    Py_RETURN_NONE;
}

static void loader_free(PyObject *object)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    weir_rank_session_close(&self->ranks);
    close_loader(self);
    weir_loader_live_close(self);
    weir_batches_clear_entries(self);
    Py_XDECREF(self->from_dlpack);
    Py_XDECREF(self->bool_dtype);
    Py_XDECREF(self->make);
    Py_XDECREF(self->current_stream);
    weir_loader_periods_end(self);
    Py_XDECREF(self->texts);
    weir_py_free(object);
}

/* ---- epochs ---- */

static PyObject *loader_iterate(PyObject *object)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    if (weir_loader_check(self) < 0)
        return NULL;
    uint64_t begin = self->resumed ? self->position : self->next_epoch * self->per_epoch;
    if (weir_loader_position(self->loader) != begin) { /* the next batch is not the one after the last iteration */
        close_loader(self);
        if (open_at(self, begin) < 0)
            return NULL;
    }
    self->resumed = self->unasked = true;
    self->position = begin;
    uint64_t epoch = begin / self->per_epoch;
    self->next_epoch = epoch + 1;
    struct iteration *iteration = PyObject_New(struct iteration, (PyTypeObject *)iteration_type);
    if (!iteration)
        return NULL;
    iteration->loader = self;
    Py_INCREF(object);
    iteration->number = ++self->iteration;
    iteration->end = (epoch + 1) * self->per_epoch;
    iteration->done = false;
    return (PyObject *)iteration;
}

/* Ends the last step, because the time until the next epoch does not belong to it. Returns NULL, with an exception only
 * on failure. */
static PyObject *end_of_epoch(struct iteration *self)
{
    if (self->done)
        return NULL;
    self->done = true;
    if (weir_loader_step_ends(self->loader) < 0)
        return PyErr_NoMemory();
    weir_loader_live_epoch(self->loader);
    if (warn_of_faults(self->loader) < 0)
        return NULL;
    Py_XDECREF(PyObject_CallMethod((PyObject *)self->loader, "_epoch_ended", NULL));
    return NULL;
}

static PyObject *iteration_next(PyObject *object)
{
    struct iteration *self = (struct iteration *)object;
    struct weir_loader_object *loader = self->loader;
    if (!weir_session() ||
        weir_loader_check(loader) < 0) /* checked before code that can run Python and so other threads */
        return NULL;
    if (self->number != loader->iteration)
        return PyErr_Format(weir_py_error, "this iteration ended when a later iteration of the same loader began");
    if (loader->unasked)
        loader->resumed = loader->unasked = false;
    if (loader->faults_reported == 0 && warn_of_faults(loader) < 0) /* the first ones at once */
        return NULL;
    uint32_t stack = weir_profile_stack_here();
    struct weir_zone_now wait = {.stage = WEIR_STAGE_WAIT_DATA, .start = weir_clock_ticks()};
    PyObject *batch = weir_batches_next(loader, self->end);
    weir_history_closed(&wait);
    weir_stack_self = stack;
    if (batch)
        weir_loader_poll_ranks(loader);
    return batch || PyErr_Occurred() ? batch : end_of_epoch(self);
}

static void iteration_free(PyObject *object)
{
    struct iteration *self = (struct iteration *)object;
    struct weir_loader_object *loader = self->loader;
    bool left = !self->done && self->number == loader->iteration && loader->loader && !loader->busy;
    if (left && loader->fork_depth == weir_fork_depth())
        (void)weir_loader_step_ends(loader); /* if this runs out of memory, the step lasts until the next request */
    Py_DECREF((PyObject *)loader);
    weir_py_free(object);
}

static Py_ssize_t loader_length(PyObject *object)
{
    return (Py_ssize_t)((struct weir_loader_object *)object)->per_epoch;
}

static PyObject *loader_set_epoch(PyObject *object, PyObject *number)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    long long epoch = PyLong_AsLongLong(number);
    if (epoch == -1 && PyErr_Occurred())
        return NULL;
    if (self->per_epoch == 0)
        return PyErr_Format(weir_py_error, "the loader was never opened");
    if (epoch < 0 || epoch >= INT32_MAX)
        return PyErr_Format(PyExc_ValueError, "epoch must be 0..%d, not %lld", INT32_MAX - 1, epoch);
    self->unasked = false;
    if (self->resumed && self->position / self->per_epoch == (uint64_t)epoch)
        Py_RETURN_NONE; /* keeps the position within the epoch that load_state_dict restored */
    self->resumed = true;
    self->position = (uint64_t)epoch * self->per_epoch;
    Py_RETURN_NONE;
}

/* ---- position in the run ---- */

static PyObject *loader_state(PyObject *object, PyObject *unused)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    PyObject *settings = PyDict_New();
    uint64_t position = self->position;
    if (!self->resumed || self->unasked) {
        if (weir_loader_check(self) < 0) {
            Py_XDECREF(settings);
            return NULL;
        }
        position = weir_loader_position(self->loader);
    }
    for (int i = 0; settings && weir_loader_state_name(i); i++)
        if (weir_py_put(settings, weir_loader_state_name(i), PyLong_FromUnsignedLongLong(self->state.values[i])) < 0)
            Py_CLEAR(settings);
    return settings ? Py_BuildValue("(KN)", (unsigned long long)position, settings) : NULL;
}

static PyObject *loader_resume(PyObject *object, PyObject *number)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    uint64_t position = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred())
        return NULL;
    if (self->per_epoch == 0)
        return PyErr_Format(weir_py_error, "the loader was never opened");
    if (position / self->per_epoch >= INT32_MAX)
        return PyErr_Format(PyExc_ValueError, "the state's position is too large");
    self->resumed = true;
    self->unasked = false;
    self->position = position;
    Py_RETURN_NONE;
}

static PyObject *loader_describe(PyObject *object, PyObject *unused)
{
    const struct weir_loader_object *self = (struct weir_loader_object *)object;
    return weir_loader_check(self) < 0 ? NULL : weir_loader_describe(self);
}

static PyObject *loader_closed(PyObject *object, void *unused)
{
    return PyBool_FromLong(!((struct weir_loader_object *)object)->loader);
}

/* ---- classes ---- */

int weir_loader_object_begin(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"_open", loader_open, METH_VARARGS, NULL},
        {"_read", loader_read, METH_VARARGS, NULL},
        {"_first", loader_first, METH_VARARGS, NULL},
        {"_state", loader_state, METH_NOARGS, NULL},
        {"_resume", loader_resume, METH_O, NULL},
        {"_describe", loader_describe, METH_NOARGS, NULL},
        {"close", loader_close, METH_NOARGS,
         "close($self, /)\n--\n\nStops the worker threads. Batches that you hold remain valid."},
        {"set_epoch", loader_set_epoch, METH_O,
         "set_epoch($self, epoch, /)\n--\n\n"
         "Selects the epoch, counted from 0, of the next iteration. By default, epochs follow each other."},
        {"_open_ranks", weir_loader_py_open_ranks, METH_VARARGS, NULL},
        {"_ranks_table", weir_loader_py_ranks_table, METH_O, NULL},
        {"_open_live", weir_loader_py_open_live, METH_VARARGS, NULL},
        {"_metrics", weir_loader_py_metrics, METH_NOARGS, NULL},
        {"_published", weir_loader_py_published, METH_NOARGS, NULL},
        {"_reset", weir_loader_py_reset, METH_NOARGS, NULL},
        {"_steps", weir_loader_py_steps, METH_O, NULL},
        {"table", (PyCFunction)(void (*)(void))weir_loader_py_table, METH_VARARGS | METH_KEYWORDS,
         "table($self, lang='en', *, whole=False)\n--\n\n"
         "Returns the stage table and the verdict in English ('en') or Chinese ('zh'). They cover the time\n"
         "since the last table of this loader. With whole=True they cover the time since the loader was\n"
         "opened, or since weir.reset(), and the next table is not affected."},
        {"verdict", weir_loader_py_verdict, METH_VARARGS,
         "verdict($self, lang='en', /)\n--\n\n"
         "Returns the run's bottleneck, evidence and advice, for the time since the loader was opened or\n"
         "since weir.reset()."},
        {0}};
    static PyGetSetDef properties[] = {{"closed", loader_closed, NULL, "True after close().", NULL}, {0}};
    static PyType_Slot slots[] = {{Py_tp_methods, methods},     {Py_tp_getset, properties},
                                  {Py_tp_iter, loader_iterate}, {Py_sq_length, loader_length},
                                  {Py_tp_dealloc, loader_free}, {0, NULL}};
    static PyType_Slot iteration_slots[] = {{Py_tp_doc, "The batches of an epoch."},
                                            {Py_tp_iter, PyObject_SelfIter},
                                            {Py_tp_iternext, iteration_next},
                                            {Py_tp_dealloc, iteration_free},
                                            {0, NULL}};
    if (weir_py_add_type(module, "weir._Batches", sizeof(struct iteration), 0, iteration_slots, &iteration_type) < 0)
        return -1;
    return weir_py_add_type(module, "weir._Loader", sizeof(struct weir_loader_object), Py_TPFLAGS_BASETYPE, slots,
                            &loader_type);
}
