/* file_watch.h: detects files that change while a run reads them. Reads detect writes to an open file (weir_read), but
 * not a replaced file or a change on a file server: at the end of each epoch a separate thread compares the paths of
 * the files read with the index.
 *
 * A changed file is an error of that file, subject to --on-error: under fail it ends the run; otherwise it is counted
 * and listed, and all its frames are bad from then on. */
#ifndef WEIR_PIPELINE_SAMPLES_FILE_WATCH_H
#define WEIR_PIPELINE_SAMPLES_FILE_WATCH_H

#include "io/io.h"
#include "pipeline/samples/faults.h"
#include "weir/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct weir_file_watch {
    struct weir_file_set *files; /* borrowed, like faults */
    struct weir_faults *faults;
    bool fail; /* --on-error fail */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t wake, done;
    uint64_t asked, checked; /* checks requested by the consumer, and checks done */
    bool stop;
    struct weir_err err;  /* under fail, the first changed file */
    _Atomic bool has_err; /* lets the consumer check for an error without the lock */
};

/* files and faults must outlive the watch. */
int weir_file_watch_start(struct weir_file_watch *watch, struct weir_file_set *files, struct weir_faults *faults,
                          bool fail, struct weir_err *err);
/* Ends the thread, between two files if necessary. Accepts a watch that was never started. */
void weir_file_watch_stop(struct weir_file_watch *watch);

/* Requests a check of everything read before this call. Does not wait. */
void weir_file_watch_ask(struct weir_file_watch *watch);
/* Returns the error found so far, or 0. */
int weir_file_watch_error(struct weir_file_watch *watch, struct weir_err *err);
/* Likewise, after all requested checks are done or *stopped is set. */
int weir_file_watch_wait(struct weir_file_watch *watch, const _Atomic bool *stopped, struct weir_err *err);

/* After a failed read or frame: whether its file changed, with the difference in text. If so, counts and lists the file
 * once; the error is the frame's. Any thread. */
bool weir_file_watch_blames(struct weir_file_watch *watch, int file, char text[WEIR_FILE_CHANGE]);

#endif
