#include "python/src/py.h"
#include "weir/kernel_clock.h"

#include <stdlib.h>
#include <string.h>

/* Inputs of a call, all borrowed, and the clock computed from them. */
struct reading {
    struct weir_kernel_clock_kernel kernel;
    const char *names[WEIR_KERNEL_CLOCK_STAGES_MAX];
    struct weir_kernel_clock_plain plain;
    struct weir_kernel_clock clock;
};

static int print_table(void *reading, FILE *out)
{
    weir_kernel_clock_print(out, &((struct reading *)reading)->clock);
    return 0;
}

static int print_csv(void *reading, FILE *out)
{
    const struct reading *r = reading;
    weir_kernel_clock_csv_head(out);
    weir_kernel_clock_csv(out, &r->clock);
    weir_kernel_clock_csv_plain(out, &r->kernel, &r->plain);
    return 0;
}

/* Returns (stage, laps, ticks, mean, min, max, last, share, ns). ns is the mean time, or None if unknown. */
static PyObject *stage_of(const struct weir_kernel_clock *clock, uint32_t i)
{
    const struct weir_kernel_clock_stage *stage = &clock->stages[i];
    double laps = stage->laps ? (double)stage->laps : 1;
    PyObject *ns = stage->ns_laps ? PyFloat_FromDouble(stage->ns / (double)stage->ns_laps) : Py_NewRef(Py_None);
    return Py_BuildValue("(NKKdKKKdN)", weir_py_shown(stage->name), (unsigned long long)stage->laps,
                         (unsigned long long)stage->ticks, (double)stage->ticks / laps,
                         (unsigned long long)stage->min_ticks, (unsigned long long)stage->max_ticks,
                         (unsigned long long)stage->last_ticks, weir_kernel_clock_share(clock, i), ns);
}

static PyObject *stages_of(const struct weir_kernel_clock *clock)
{
    PyObject *stages = PyList_New(0);
    for (uint32_t i = 0; stages && i < clock->n_stages; i++)
        if (weir_py_append(stages, stage_of(clock, i)) < 0)
            Py_CLEAR(stages);
    return stages;
}

static int take_names(struct reading *r, PyObject *names)
{
    Py_ssize_t n = PyTuple_Size(names);
    if (n < 1 || n > WEIR_KERNEL_CLOCK_STAGES_MAX) {
        PyErr_Format(PyExc_ValueError, "stages must have 1 to %d names, not %zd", WEIR_KERNEL_CLOCK_STAGES_MAX, n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!(r->names[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), NULL)))
            return -1;
    r->kernel.stages = r->names;
    r->kernel.n_stages = (uint32_t)n;
    return 0;
}

static PyObject *read_buffer(struct reading *r, bool as_csv)
{
    weir_kernel_clock_init(&r->clock, &r->kernel);
    if (weir_kernel_clock_add_plain(&r->clock, &r->plain) < 0)
        return PyErr_Format(PyExc_ValueError, "ticks_per_ns must be positive and below 1e9, and iterations below 2^32");
    return as_csv ? weir_py_printed(print_csv, r)
                  : Py_BuildValue("(NN)", stages_of(&r->clock), weir_py_printed(print_table, r));
}

/* Implements _kernel_clocks(ticks, iterations, stages, name, ticks_per_ns, csv). Returns the stages and the table as a
 * tuple, or the CSV string. ticks is an address, or an object with a buffer of int64. stages is a tuple of strings.
 * ticks_per_ns is 0 if unknown. */
static PyObject *py_kernel_clocks(PyObject *module, PyObject *args)
{
    PyObject *ticks, *names, *result = NULL;
    Py_buffer buffer = {0};
    Py_ssize_t iterations;
    int as_csv;
    struct reading *r = calloc(1, sizeof *r);
    if (!r)
        return PyErr_NoMemory();
    if (PyArg_ParseTuple(args, "OnO!sdp:_kernel_clocks", &ticks, &iterations, &PyTuple_Type, &names, &r->kernel.name,
                         &r->plain.ticks_per_ns, &as_csv) &&
        take_names(r, names) == 0) {
        size_t bytes = (size_t)iterations * r->kernel.n_stages * sizeof(int64_t);
        r->plain.iterations = (size_t)iterations;
        if (weir_py_numbers(ticks, &buffer, "ql", bytes, "ticks", (const void **)&r->plain.ticks) == 0)
            result = read_buffer(r, as_csv);
        PyBuffer_Release(&buffer);
    }
    free(r);
    return result;
}

int weir_kernel_clocks_begin(PyObject *module)
{
    static PyMethodDef methods[] = {{"_kernel_clocks", py_kernel_clocks, METH_VARARGS, NULL}, {0}};
    return PyModule_AddFunctions(module, methods);
}
