/* file_watch.h: whether files changed while they were read. Reads find writes to an open file (weir_read), but not that
 * another file took its place or what a server has: at each epoch's end a thread of its own compares the paths of the
 * files that were read with what was indexed.
 *
 * A file that changed is an error of that file, under the rules of --on-error: under fail the run ends with it, else it
 * is counted and listed, and all frames of it are bad from then on. */
#ifndef WEIR_PIPELINE_FILE_WATCH_H
#define WEIR_PIPELINE_FILE_WATCH_H

#include "io/io.h"
#include "pipeline/faults.h"
#include "weir/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct weir_file_watch {
    struct weir_file_set *files; /* borrowed, as is faults */
    struct weir_faults *faults;
    bool fail; /* --on-error fail */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* what follows */
    pthread_cond_t wake, done;
    uint64_t asked, checked; /* checks that the consumer wants, and those that were made */
    bool stop;
    struct weir_err err;  /* the first file that changed, under fail */
    _Atomic bool has_err; /* so that the consumer need not take the lock to see that there is none */
};

/* files and faults outlive the watch. */
int weir_file_watch_start(struct weir_file_watch *watch, struct weir_file_set *files, struct weir_faults *faults,
                          bool fail, struct weir_err *err);
/* Ends the thread, between two files if need be. Accepts one that was never started. */
void weir_file_watch_stop(struct weir_file_watch *watch);

/* Asks for a check of all that was read before this call. Does not wait for it. */
void weir_file_watch_ask(struct weir_file_watch *watch);
/* The error of a check so far, 0 when there is none. */
int weir_file_watch_error(struct weir_file_watch *watch, struct weir_err *err);
/* The same once every check that was asked for has been made, or *stopped is set. */
int weir_file_watch_wait(struct weir_file_watch *watch, const _Atomic bool *stopped, struct weir_err *err);

/* For a file of which a read or a frame just failed: whether it changed, with what is different. Then it is counted and
 * listed, once; the error is the frame's. Any thread. */
bool weir_file_watch_blames(struct weir_file_watch *watch, int file, char text[WEIR_FILE_CHANGE]);

#endif
