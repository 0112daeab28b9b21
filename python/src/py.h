/* py.h: Python's header, for all files of the module: the limited API of CPython 3.11, so that one binary serves that
 * version and later ones. */
#ifndef WEIR_PYTHON_SRC_PY_H
#define WEIR_PYTHON_SRC_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* weir.Error */
extern PyObject *weir_py_error;

/* Raises the exception that suits a negative code, with the error's line; returns NULL. */
struct weir_err;
PyObject *weir_py_raise(int code, const struct weir_err *err);

/* The caller's numbers: an address (an int), or an object with a dense buffer of exactly bytes bytes, which remains
 * valid until PyBuffer_Release. formats: accepted formats of the struct module, "ql" or "f". what: for errors. 0, or -1
 * with an exception. */
int weir_py_numbers(PyObject *object, Py_buffer *buffer, const char *formats, size_t bytes, const char *what,
                    const void **numbers);

/* Text from files, in any encoding: bytes that are not UTF-8 become surrogates, which os.fsencode reverts. */
PyObject *weir_py_text(const char *text);

/* A str's UTF-8, borrowed, as the name of a stage or range; NULL with an exception. */
const char *weir_py_name(PyObject *name);

/* Adds a class to the module: 0 or -1. *type is borrowed from the module. */
int weir_py_add_type(PyObject *module, PyType_Spec *spec, PyObject **type);

/* Copies text with keywords for the program's options: "--device cuda:0" becomes device="cuda:0", "--num-workers 8"
 * num_workers=8, and "--batch-size" batch_size. Options without a keyword remain. Cut to room bytes; twice the length
 * of text suffices. */
void weir_name_keywords(char *to, size_t room, const char *text);

/* Parts of the module. weir_session_begin and so on add one each: 0, or -1 with an exception. */
#define WEIR_PY_PARTS(X)                                                                                               \
    X(array)                                                                                                           \
    X(session)                                                                                                         \
    X(loader_object)                                                                                                   \
    X(keywords)                                                                                                        \
    X(kernel_clocks)                                                                                                   \
    X(profile_range)                                                                                                   \
    X(profile_trace)                                                                                                   \
    X(profile_object)                                                                                                  \
    X(totals)                                                                                                          \
    X(elsewhere)
#define WEIR_PY_DECLARE_(name) int weir_##name##_begin(PyObject *module);
WEIR_PY_PARTS(WEIR_PY_DECLARE_)

#endif
