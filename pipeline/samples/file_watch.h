/* file_watch.h: detects files that change while a run reads them. weir_read detects writes to an open file, but neither
 * the replacement of a file nor a change on a file server. Therefore a separate thread compares all files read so far
 * with the index, by path, at the end of each epoch.
 *
 * A changed file is an error of that file, subject to --on-error. With fail, the run ends. Otherwise the file is
 * counted and listed, and all its frames are bad from then on. */
#ifndef WEIR_PIPELINE_SAMPLES_FILE_WATCH_H
#define WEIR_PIPELINE_SAMPLES_FILE_WATCH_H

#include "io/io.h"
#include "weir/base.h"
#include "weir/loader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- faults.c: counts the bad frames of a run and keeps the messages about the first ones. */

struct weir_faults {
    pthread_mutex_t lock;
    int n;
    struct {
        char text[WEIR_FAULT_TEXT];
        uint64_t count;
    } kept[WEIR_FAULTS_MAX];
    _Atomic uint64_t bad_frames, skipped_samples, substituted_frames, changed_files;
};

void weir_faults_init(struct weir_faults *faults);
void weir_faults_destroy(struct weir_faults *faults);
/* Counts one bad frame; any thread. */
void weir_faults_add(struct weir_faults *faults, const char *text);
/* Counts one file that changed while it was read; any thread. */
void weir_faults_add_file(struct weir_faults *faults, const char *text);

/* ---- file_watch.c */

struct weir_file_watch {
    struct weir_file_set *files; /* borrowed, as is faults */
    struct weir_faults *faults;
    bool fail; /* --on-error is fail */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t wake, done;
    uint64_t asked, checked; /* number of checks requested by the consumer; number of checks done */
    bool stop;
    struct weir_err err;  /* error that ends the run: a changed file, or a resource shortage */
    _Atomic bool has_err; /* lets the consumer check for an error without the lock */
};

/* files and faults must outlive the watch. */
int weir_file_watch_start(struct weir_file_watch *watch, struct weir_file_set *files, struct weir_faults *faults,
                          bool fail, struct weir_err *err);
/* Ends the thread, at the latest after the file that it is checking. Accepts a watch that was never started. */
void weir_file_watch_stop(struct weir_file_watch *watch);

/* Requests a check of all files read before this call. Does not wait. */
void weir_file_watch_ask(struct weir_file_watch *watch);
/* Returns the error that ends the run, or 0 if none has been found so far. */
int weir_file_watch_error(struct weir_file_watch *watch, struct weir_err *err);
/* Like weir_file_watch_error, but first waits until all requested checks are done or *stopped is set. */
int weir_file_watch_wait(struct weir_file_watch *watch, const _Atomic bool *stopped, struct weir_err *err);

/* Call this after a failed read or a bad frame. Returns whether its file has changed, with the difference in text. If
 * so, also counts and lists the file, once; the caller reports the error of the frame. Any thread. */
bool weir_file_watch_blames(struct weir_file_watch *watch, int file, char text[WEIR_FILE_CHANGE]);

#endif
