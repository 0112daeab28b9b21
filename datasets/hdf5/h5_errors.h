/* h5_errors.h: when a call to the HDF5 library fails, distinguishes errors in the file from problems of the machine,
 * such as a lack of memory. For HDF5 helper processes. */
#ifndef WEIR_DATASETS_HDF5_H5_ERRORS_H
#define WEIR_DATASETS_HDF5_H5_ERRORS_H

#include "weir/base.h"

#include <stdbool.h>

/* Initialises the library. Call it once per process, before all other functions. Returns 0 or -ENOMEM. */
int weir_h5_start(void);

/* Starts examining the error stacks of failed calls, and stops the library from printing them. Clears earlier findings
 * and errno. */
void weir_h5_watch_errors(void);

/* Records that a system call of the file driver failed with this positive errno. file: the affected file, if an object
 * refers to it; NULL: the file being read. An errno that is the machine's fault counts as a machine error, however the
 * library reports it. */
void weir_h5_note_error(int number, const char *file);
/* If a call since weir_h5_watch_errors failed for a reason other than the file (memory, storage, a limit), returns
 * -errno and replaces err, which may be NULL. Results since then may be incomplete or wrong. Otherwise returns 0. */
int weir_h5_machine_error(struct weir_err *err);
/* Returns true if an allocation is known to have failed since weir_h5_watch_errors. */
bool weir_h5_malloc_failed(void);

/* Copies the library's message for the last failure, from the innermost frame of its error stack. Returns text. */
const char *weir_h5_library_message(char text[256]);

/* Sets err for a call that just failed, and returns the code: -EBADMSG with "PATH: WHAT (HDF5: message)", or a machine
 * error. */
int weir_h5_fail(struct weir_err *err, const char *path, const char *what);

#endif
