#include "python/src/py.h"

#include <stdatomic.h>
#include <sys/mman.h>

/* Number of DataLoader workers that timed a stage: memory shared by this process and all processes forked from it, but
 * not by spawned ones. NULL if there was none. */
static atomic_uint *workers;

static PyObject *py_worker_began(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(!workers || atomic_fetch_add(workers, 1) == 0);
}

static PyObject *py_workers(PyObject *module, PyObject *unused)
{
    return PyLong_FromUnsignedLong(workers ? atomic_load(workers) : 0);
}

int weir_elsewhere_begin(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"_worker_began", py_worker_began, METH_NOARGS, "Counts a DataLoader worker. Returns True for the first one."},
        {"_workers", py_workers, METH_NOARGS, "Number of DataLoader workers that timed stages in their own processes."},
        {0}};
    void *page = mmap(NULL, sizeof *workers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    workers = page == MAP_FAILED ? NULL : page;
    return PyModule_AddFunctions(module, functions);
}
