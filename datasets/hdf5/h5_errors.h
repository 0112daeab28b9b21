/* h5_errors.h: tells errors of a file from shortages of the machine when calls of the HDF5 library fail. For HDF5
 * helper processes. */
#ifndef WEIR_DATASETS_HDF5_H5_ERRORS_H
#define WEIR_DATASETS_HDF5_H5_ERRORS_H

#include "weir/base.h"

#include <stdbool.h>

/* Initialises the library, once per process, before anything else. -ENOMEM. */
int weir_h5_start(void);

/* From now on, examines the error stacks of failed calls and prints nothing. Clears earlier findings and errno. */
void weir_h5_watch_errors(void);

/* Records that a system call of the file driver failed with this positive errno, for a file that an object names (NULL:
 * the file being read). It counts as the machine's error, whatever the library makes of it. */
void weir_h5_note_error(int number, const char *file);
/* Returns -errno, and replaces err (may be NULL), if a call since then failed for a reason other than the file: memory,
 * storage, a limit. Results may then be incomplete or wrong. Else 0. */
int weir_h5_machine_error(struct weir_err *err);
/* Returns true if an allocation is known to have failed since then. */
bool weir_h5_malloc_failed(void);

/* Copies the library's message for the last failure, from the innermost frame of its error stack. Returns text. */
const char *weir_h5_library_message(char text[256]);

/* Sets the error of a call that just failed: "PATH: WHAT (HDF5: message)", -EBADMSG, or a machine error. */
int weir_h5_fail(struct weir_err *err, const char *path, const char *what);

#endif
