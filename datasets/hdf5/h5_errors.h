/* h5_errors.h: why calls of the HDF5 library fail: for what is in the file, or because the machine lacks
 * something. In the HDF5 helper processes. */
#ifndef WEIR_DATASETS_HDF5_H5_ERRORS_H
#define WEIR_DATASETS_HDF5_H5_ERRORS_H

#include "weir/base.h"

#include <stdbool.h>

/* Once a process, before anything else: the library makes its tables. -ENOMEM. */
int weir_h5_start(void);

/* From now on the error stacks of failed calls are examined, and nothing is printed. Forgets what was found before, and
 * errno. */
void weir_h5_watch_errors(void);

/* Notes that a system call of the file driver failed with this number (positive), for a file that an object names (or
 * NULL: the one that is read). It counts as the machine's error, whatever the library makes of it. */
void weir_h5_note_error(int number, const char *file);
/* -errno, with err (or NULL) set anew, when a call since then failed for a reason that is not the file's: memory, the
 * storage, a limit. What was found may then be incomplete, and what the calls returned may be wrong. Else 0. */
int weir_h5_machine_error(struct weir_err *err);
/* Whether an allocation itself is known to have failed since then. */
bool weir_h5_malloc_failed(void);

/* The library's own words for what just failed, from the innermost frame of its error stack. Returns text. */
const char *weir_h5_library_message(char text[256]);

/* Sets the error of a call that just failed: "PATH: WHAT (HDF5: its words)", -EBADMSG, or a machine error. */
int weir_h5_fail(struct weir_err *err, const char *path, const char *what);

#endif
