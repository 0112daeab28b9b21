/* session.h: the only session of the process. It times the threads of all loaders and of the program, so that one table
 * can contain all their stages. */
#ifndef WEIR_PYTHON_SRC_SESSION_H
#define WEIR_PYTHON_SRC_SESSION_H

#include "python/src/py.h"
#include "weir/recorder.h"

struct weir_recorder;

/* Returns the session, which is opened on first use, or NULL with an exception. Attaches the calling thread until the
 * thread ends. A child of fork() gets a new session. */
struct weir_recorder *weir_session(void);

/* Implements tp_call of stages and ranges, which decorates a function. */
PyObject *weir_py_decorated(PyObject *self, PyObject *args, PyObject *keywords);

/* Returns the language for "en" or "zh", or English for NULL. Returns -1 with an exception for other values. */
int weir_py_lang(PyObject *name);

/* Call this when this process has opened a session, which is the beginning of the first table's period. */
void weir_totals_session_opened(void);
/* Call this after a table was printed. The next table without a loader then covers the time from this call on. Returns
 * 0 or a negative code. */
int weir_totals_table_printed(void);

/* ---- history.c: records when the calling thread's stages ran, and which stages ran inside which. weir.log_timing uses
 * this to nest its calls, and a loop's verdict uses it to find the stage inside a wait. All calls require the
 * interpreter's lock. */

/* Call this when the module is imported. */
void weir_history_begin(void);
/* Adds a zone that has just ended. zone is the result of weir_zone_now before its end. */
void weir_history_closed(const struct weir_zone_now *zone);
/* Records a call that took `ticks` and ended now. Stages that ran during this time are nested in the call, and the rest
 * is its self time.
 *
 * A call cannot have ended now if another stage overlaps its start, or if it was logged directly after another call and
 * also fits before that call. Such a call is placed in the latest gap between stages that has room for it. If there is
 * no such gap, or if the stage is one of the workers', the call was timed on another thread or in another process, so
 * it takes none of this thread's time. */
void weir_history_logged(int stage, uint64_t ticks);
/* Frees the history of the calling thread. */
void weir_history_end(void);
/* Clears the totals of which stages ran inside which. */
void weir_history_reset(void);
/* Returns the stage that contained most of this stage's time. Returns -1 if most of it was in no stage, or if the stage
 * was not called. */
int weir_history_parent(int stage);

#endif
