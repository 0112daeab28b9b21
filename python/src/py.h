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
/* Returns 0, or -1 with that exception if the code is negative. */
int weir_py_check(int code, const struct weir_err *err);

/* Gets an array of numbers from an argument, which is an address (an int) or an object with a dense buffer of exactly
 * this many bytes. The buffer remains valid until PyBuffer_Release. formats are the accepted formats of the struct
 * module, "ql" or "f". what names the argument in errors. Returns 0, or -1 with an exception. */
int weir_py_numbers(PyObject *object, Py_buffer *buffer, const char *formats, size_t bytes, const char *what,
                    const void **numbers);

/* Returns a str for a string from a file, in any encoding. Bytes that are not UTF-8 become surrogates, which
 * os.fsencode converts back. */
PyObject *weir_py_text(const char *text);
/* Returns a str, in which bytes that are not UTF-8 are replaced. */
PyObject *weir_py_shown(const char *text);
/* Returns a new str with the report that print(user, FILE *) prints. print returns 0 or a negative code. */
PyObject *weir_py_printed(int (*print)(void *user, FILE *out), void *user);

/* Add an item to a list or dict and release it. item is a new reference, or NULL with an exception. Return 0 or -1. */
int weir_py_append(PyObject *list, PyObject *item);
int weir_py_put(PyObject *dict, const char *key, PyObject *item);

/* Returns the UTF-8 of a str, borrowed, for the name of a stage or range, or NULL with an exception if it is not a
 * valid name. */
const char *weir_py_name(PyObject *name);

/* What the package sets, in the order of _set_callbacks: functions, and a str. */
enum weir_py_callback {
    WEIR_PY_DECORATE, /* decorates a function with a stage or range */
    WEIR_PY_OPENED,   /* called when a process times its first stage */
    WEIR_PY_CHILDREN, /* lists the PIDs of child processes */
    WEIR_PY_CURRENT,  /* returns the current GPU and stream, as numbers */
    WEIR_PY_OWN_FILES /* not a function: weir_py_own_files */
};
/* Returns how names of the package's files begin, borrowed; NULL before _set_callbacks. */
PyObject *weir_py_own_files(void);
/* Calls one with up to two arguments, which end before a NULL. Returns its result, or NULL with an exception. */
PyObject *weir_py_call(enum weir_py_callback callback, PyObject *first, PyObject *second);

/* Adds a class to the module, such as "weir.Stage". flags: Py_TPFLAGS_BASETYPE, or 0 for a class that programs can
 * neither create nor derive from. Returns 0 or -1. *type is the new class, which the module keeps alive. */
int weir_py_add_type(PyObject *module, const char *name, size_t size, unsigned flags, PyType_Slot *slots,
                     PyObject **type);
/* Frees an object of a class of weir_py_add_type that owns nothing, or nothing any more. */
void weir_py_free(PyObject *self);

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
    X(totals)
#define WEIR_PY_DECLARE_(name) int weir_##name##_begin(PyObject *module);
WEIR_PY_PARTS(WEIR_PY_DECLARE_)

#endif
