/* session.h: the process's only session, which times all loaders' threads and the program's own, so that one table has
 * their stages. */
#ifndef WEIR_PYTHON_SRC_SESSION_H
#define WEIR_PYTHON_SRC_SESSION_H

#include "python/src/py.h"

struct weir_recorder;

/* The session, opened on first use; NULL with an exception. Attaches the calling thread until it ends. A child of
 * fork() gets a new session. */
struct weir_recorder *weir_session(void);

/* tp_call of stages and ranges: decorates a function. */
PyObject *weir_py_decorated(PyObject *self, PyObject *args, PyObject *keywords);

/* A report as text, printed by print(user, FILE *): 0 or a negative code. A new reference. */
PyObject *weir_py_printed(int (*print)(void *user, FILE *out), void *user);
/* The language of "en" or "zh"; NULL = "en"; -1 with an exception. */
int weir_py_lang(PyObject *name);

/* Call when this process opens a session: 0, or -1 with an exception. */
int weir_elsewhere_opened(void);

/* Call after printing a table: the next table without a loader covers the time from here on. 0 or a negative code. */
int weir_totals_table_printed(void);

#endif
