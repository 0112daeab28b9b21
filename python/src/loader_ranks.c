/* The table over ranks of weir.Loader. */
#include "analyze/ranks/rank_session.h"
#include "python/src/loader_parts.h"
#include "python/src/py.h"
#include "python/src/session.h"

#include <errno.h>

PyObject *weir_loader_py_open_ranks(PyObject *object, PyObject *args)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    struct weir_rank_session_config config = {0};
    struct weir_err err = WEIR_ERR_NONE;
    if (!PyArg_ParseTuple(args, "iiszi:_open_ranks", &config.rank, &config.world_size, &config.name, &config.host,
                          &config.port))
        return NULL;
    weir_rank_session_close(&self->ranks);
    int rc = weir_rank_session_open(&self->ranks, &config, &err);
    return Py_BuildValue("z", rc < 0 ? err.text : NULL);
}

void weir_loader_publish(struct weir_loader_object *self, const struct weir_loader_report *report)
{
    struct weir_rank_record record;
    if (self->ranks && weir_rank_record_fill(&record, report))
        weir_rank_session_publish(self->ranks, &record);
}

static int print_ranks(void *session, FILE *out)
{
    weir_rank_session_print(session, out);
    return 0;
}

PyObject *weir_loader_py_ranks_table(PyObject *object, PyObject *wait)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    double wait_s = PyFloat_AsDouble(wait);
    struct weir_rank_session *session = self->ranks;
    if (wait_s == -1 && PyErr_Occurred())
        return NULL;
    if (wait_s > 0 && session) {
        self->ranks = NULL; /* other threads cannot close it meanwhile */
        Py_BEGIN_ALLOW_THREADS weir_rank_session_finish(session, wait_s);
        Py_END_ALLOW_THREADS self->ranks = session;
    }
    return weir_rank_session_ready(session) ? weir_py_printed(print_ranks, session) : Py_NewRef(Py_None);
}

static void call(struct weir_loader_object *self, const char *name)
{
    PyObject *result = PyObject_CallMethod((PyObject *)self, name, NULL);
    if (!result)
        PyErr_WriteUnraisable((PyObject *)self);
    Py_XDECREF(result);
}

void weir_loader_poll_ranks(struct weir_loader_object *self)
{
    if (self->ranks && weir_rank_session_ready(self->ranks))
        call(self, "_ranks_reported");
}

void weir_loader_end_ranks(struct weir_loader_object *self)
{
    if (!self->ranks)
        return;
    if (!weir_rank_session_printed(self->ranks))
        call(self, "_ranks_end");
    struct weir_rank_session *session = self->ranks;
    self->ranks = NULL;
    Py_BEGIN_ALLOW_THREADS weir_rank_session_close(&session);
    Py_END_ALLOW_THREADS
}
