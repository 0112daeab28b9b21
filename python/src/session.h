/* session.h: the one session of the process, in which all loaders' threads and the program's own are timed, so that
 * their stages are in one table. */
#ifndef WEIR_PYTHON_SRC_SESSION_H
#define WEIR_PYTHON_SRC_SESSION_H

#include "python/src/py.h"

struct weir_recorder;

/* The session, opened when it is asked for first; NULL with an exception. The calling thread is attached to it, until
 * it ends. In a child of fork() it is a new one. */
struct weir_recorder *weir_session(void);

/* weir.stage and the rest. */
int weir_session_begin(PyObject *module);

/* What calling a stage or a range with a function does: it decorates it (tp_call). */
PyObject *weir_py_decorated(PyObject *self, PyObject *args, PyObject *keywords);

/* A report as text, written by print(user, FILE *): 0 or a negative code. A new reference. */
PyObject *weir_py_printed(int (*print)(void *user, FILE *out), void *user);
/* Of "en" or "zh", NULL = "en"; -1 with an exception. */
int weir_py_lang(PyObject *name);

#endif
