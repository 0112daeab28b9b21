/* py.h: Python's header, as all files of the module want it: the limited API of CPython 3.11, so that one binary serves
 * that version and later ones. */
#ifndef WEIR_PYTHON_SRC_PY_H
#define WEIR_PYTHON_SRC_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Of the module: weir.Error. */
extern PyObject *weir_py_error;

/* Raises what suits a negative code, with its one line; returns NULL. */
struct weir_err;
PyObject *weir_py_raise(int code, const struct weir_err *err);

/* Numbers of the caller's: an address (an int), or an object with a dense buffer of just so many bytes, which stays
 * until PyBuffer_Release. formats: of the struct module, "ql" or "f". what: for errors. 0, or -1 with an exception. */
int weir_py_numbers(PyObject *object, Py_buffer *buffer, const char *formats, size_t bytes, const char *what,
                    const void **numbers);

/* Text of files, whose encoding may be any: bytes that are no UTF-8 become what os.fsencode makes them of again. */
PyObject *weir_py_text(const char *text);

/* A str's UTF-8, borrowed, for a stage or a range; NULL with an exception. */
const char *weir_py_name(PyObject *name);

/* Adds a class to the module: 0 or -1. *type, which the module keeps, is borrowed. */
int weir_py_add_type(PyObject *module, PyType_Spec *spec, PyObject **type);

#endif
