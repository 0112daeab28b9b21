/* h5_read_priv.h: shared by the files that call the HDF5 library: its errors, an open file and its open datasets. */
#ifndef WEIR_DATASETS_HDF5_H5_READ_PRIV_H
#define WEIR_DATASETS_HDF5_H5_READ_PRIV_H

#include "datasets/hdf5/h5_read.h"
#include "weir/base.h"

#include <stdbool.h>

/* ---- h5_errors.c: when a call to the HDF5 library fails, distinguishes errors in the file from problems of the
 * machine, such as a lack of memory. For HDF5 helper processes. */

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

/* Returns the library's identifier of a type of numbers in memory. Borrowed. */
int64_t weir_h5_memory_type(enum weir_number_type type);

/* Copies the library's message for the last failure, from the innermost frame of its error stack. Returns text. */
const char *weir_h5_library_message(char text[256]);

/* Sets err for a call that just failed, and returns the code: -EBADMSG with "PATH: WHAT (HDF5: message)", or a machine
 * error. */
int weir_h5_fail(struct weir_err *err, const char *path, const char *what);

/* ---- h5_read.c */

struct weir_h5 {
    int64_t file;
    uint64_t user_block;
    bool plain_sizes;     /* addresses and lengths have 8 bytes */
    unsigned long fileno; /* distinguishes objects of this file from objects that external links lead to */
    bool chunks_probed;
    uint64_t numbers_bytes;         /* of the file's numbers that were read so far */
    char unreadable[64];            /* name of the attribute that weir_h5_unreadable reports; "" = none */
    char unreadable_why[256];       /* the library's reason */
    char root[WEIR_STORE_PATH_MAX]; /* group that paths are relative to: "" or "/data/demo_0" */
};

/* An open dataset, with the properties that reading a row needs. */
struct weir_h5_dataset {
    int64_t id, type, space, plist;
    struct weir_array_shape shape;
    char path[WEIR_STORE_PATH_MAX]; /* path from the file's root */
};

/* Opens a dataset whose shape is reliable. The library derives the shape of a virtual dataset from its sources; an
 * error is returned if one of them cannot be opened (weir_h5_check_extent). */
int weir_h5_open_whole(struct weir_h5 *h5, const char *path, struct weir_h5_dataset *d, struct weir_err *err);
void weir_h5_close_dataset(struct weir_h5_dataset *d);

/* Makes a path from the file's root. If the path is too long, writes a path that no file contains. */
void weir_h5_absolute(const struct weir_h5 *h5, const char *path, char text[WEIR_STORE_PATH_MAX]);

#endif
