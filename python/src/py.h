/* py.h: includes Python's header for all files of the module. They use the limited API of CPython 3.11, so that one
 * binary works with 3.11 and later. */
#ifndef WEIR_PYTHON_SRC_PY_H
#define WEIR_PYTHON_SRC_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* weir.Error */
extern PyObject *weir_py_error;

/* Raises the Python exception for a negative code, with the message of err, and returns NULL. */
struct weir_err;
PyObject *weir_py_raise(int code, const struct weir_err *err);

/* Gets an array of numbers from an argument, which is an address (an int) or an object with a dense buffer of exactly
 * this many bytes. The buffer remains valid until PyBuffer_Release. formats are the accepted formats of the struct
 * module, "ql" or "f". what names the argument in errors. Returns 0, or -1 with an exception. */
int weir_py_numbers(PyObject *object, Py_buffer *buffer, const char *formats, size_t bytes, const char *what,
                    const void **numbers);

/* Returns a str for a string from a file, in any encoding. Bytes that are not UTF-8 become surrogates, which
 * os.fsencode converts back. */
PyObject *weir_py_text(const char *text);

/* Returns the UTF-8 of a str, borrowed, for the name of a stage or range, or NULL with an exception if it is not a
 * valid name. */
const char *weir_py_name(PyObject *name);

/* Replaces *kept, an owned reference or NULL, by a reference to `object`. Returns None. */
static inline PyObject *weir_py_keep(PyObject **kept, PyObject *object)
{
    PyObject *before = *kept;
    *kept = Py_NewRef(object);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

/* Adds a class to the module. Returns 0 or -1. *type is the new class, which the module keeps alive. */
int weir_py_add_type(PyObject *module, PyType_Spec *spec, PyObject **type);

/* Copies a message, with the program's options replaced by Python keywords. For example, "--device cuda:0" becomes
 * device="cuda:0", "--num-workers 8" becomes num_workers=8, and "--batch-size" becomes batch_size. Options without a
 * counterpart in Python are not replaced. Truncates the result to room bytes. Twice the length of text always suffices.
 */
void weir_name_keywords(char *to, size_t room, const char *text);

/* The parts of the module. Each part's function, such as weir_session_begin, adds the part to the module. Returns 0, or
 * -1 with an exception. */
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
