/* What _ranks.py and weir.verdict ask of this process: which rank it is, and what its stages took. */
#include "python/src/totals.h"
#include "base/ranks.h"
#include "prof/report/report.h"
#include "python/src/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static PyObject *py_launched(PyObject *module, PyObject *args)
{
    (void)module;
    struct weir_ranks ranks;
    struct weir_err err = WEIR_ERR_NONE;
    int ask;
    if (!PyArg_ParseTuple(args, "p:_launched", &ask))
        return NULL;
    int rc =
        ask ? weir_ranks_find(&ranks, WEIR_RANKS_AUTO, WEIR_RANKS_AUTO, &err) : weir_ranks_find(&ranks, 0, 1, &err);
    if (rc < 0)
        return weir_py_raise(rc, &err);
    return Py_BuildValue("(iiiii)", ranks.rank, ranks.world_size, ranks.local_rank, ranks.local_size,
                         ranks.local_cores);
}

/* Of its own, without what is nested in it: what was timed elsewhere (weir.log_timing) has nothing in it. */
static double own_s(const struct weir_report_row *row)
{
    return row->self_s > 0 || row->kind == WEIR_KIND_SPAN ? row->self_s : row->total_s;
}

/* Adds (name, is it the loop's, calls, total, self) of each stage that was called to a list. */
static int add_rows(PyObject *rows, const struct weir_report *report)
{
    for (int i = 0; i < report->n_rows; i++) {
        const struct weir_report_row *row = &report->rows[i];
        if (row->count == 0)
            continue;
        PyObject *tuple = Py_BuildValue("(sOKdd)", row->name, row->side == WEIR_SIDE_CONSUMER ? Py_True : Py_False,
                                        (unsigned long long)row->count, row->total_s, own_s(row));
        int rc = tuple ? PyList_Append(rows, tuple) : -1;
        Py_XDECREF(tuple);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static PyObject *py_totals(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct weir_snapshot *snapshot = NULL;
    struct weir_recorder *session = weir_session();
    if (!session)
        return NULL;
    PyObject *rows = PyList_New(0);
    struct weir_report *report = calloc(1, sizeof *report);
    int rc = rows && report ? weir_snapshot_take(session, &snapshot) : -ENOMEM;
    if (rc == 0)
        rc = weir_report_from_snapshot(report, snapshot);
    if (rc < 0 || add_rows(rows, report) < 0) {
        Py_CLEAR(rows);
        if (!PyErr_Occurred())
            PyErr_NoMemory();
    }
    if (report)
        weir_report_free(report);
    free(report);
    weir_snapshot_free(&snapshot);
    return rows;
}

int weir_totals_begin(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"_launched", py_launched, METH_VARARGS, "(rank, world_size, local_rank, local_size, local_cores)"},
        {"_totals", py_totals, METH_NOARGS, "[(stage, is it the loop's, calls, total seconds, own seconds)]"},
        {0}};
    return PyModule_AddFunctions(module, functions);
}
