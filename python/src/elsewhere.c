#include "python/src/session.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

/* Memory shared by this process and all processes forked from it, but not by spawned ones. */
static struct {
    atomic_bool warned;
    atomic_uint workers; /* number of DataLoader workers that timed a stage */
} * shared;
static PyObject *opened;

static PyObject *py_set_opened(PyObject *module, PyObject *function)
{
    (void)module;
    return weir_py_keep(&opened, function);
}

static PyObject *py_worker_began(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (!shared)
        Py_RETURN_TRUE;
    atomic_fetch_add(&shared->workers, 1);
    return PyBool_FromLong(!atomic_exchange(&shared->warned, true));
}

static PyObject *py_workers(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLong(shared ? atomic_load(&shared->workers) : 0);
}

int weir_elsewhere_opened(void)
{
    PyObject *result = opened ? PyObject_CallFunctionObjArgs(opened, NULL) : NULL;
    Py_XDECREF(result);
    return opened && !result ? -1 : 0;
}

int weir_elsewhere_begin(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"_set_opened", py_set_opened, METH_O, "Sets the function to call when a process times its first stage."},
        {"_worker_began", py_worker_began, METH_NOARGS, "Counts a DataLoader worker. Returns True for the first one."},
        {"_workers", py_workers, METH_NOARGS, "Number of DataLoader workers that timed stages in their own processes."},
        {0}};
    void *page = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared = page == MAP_FAILED ? NULL : page;
    return PyModule_AddFunctions(module, functions);
}
