/* session.h: the only session of the process. It times the threads of all loaders and of the program, so that one table
 * can contain all their stages. */
#ifndef WEIR_PYTHON_SRC_SESSION_H
#define WEIR_PYTHON_SRC_SESSION_H

#include "python/src/py.h"

struct weir_recorder;

/* Returns the session, which is opened on first use, or NULL with an exception. Attaches the calling thread until the
 * thread ends. A child of fork() gets a new session. */
struct weir_recorder *weir_session(void);

/* Implements tp_call of stages and ranges, which decorates a function. */
PyObject *weir_py_decorated(PyObject *self, PyObject *args, PyObject *keywords);

/* Returns a new str with the report that print(user, FILE *) prints. print returns 0 or a negative code. */
PyObject *weir_py_printed(int (*print)(void *user, FILE *out), void *user);
/* Returns the language for "en" or "zh", or English for NULL. Returns -1 with an exception for other values. */
int weir_py_lang(PyObject *name);

/* Call this when this process has opened a session. Returns 0, or -1 with an exception. */
int weir_elsewhere_opened(void);

/* Call this when this process has opened a session, which is the beginning of the first table's period. */
void weir_totals_session_opened(void);
/* Call this after a table was printed. The next table without a loader then covers the time from this call on. Returns
 * 0 or a negative code. */
int weir_totals_table_printed(void);

#endif
