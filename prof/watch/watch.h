/* watch.h: times the worker processes of somebody else's data loader. These functions are exported by
 * the library that the Python package opens with ctypes.
 *
 * The training process creates a segment of shared memory. Workers map it: a forked one has it, another opens it by the
 * number of its file. Each thread that times something owns a slot, which it alone writes, with relaxed stores and
 * without locks or system calls, so nothing is lost when a process is killed except its open zones. The training
 * process reads the slots (watch_read.h).
 *
 * Functions without a result do nothing if something is wrong: a watch never stops the program that it watches. All
 * functions may be called on any thread. */
#ifndef WEIR_PROF_WATCH_WATCH_H
#define WEIR_PROF_WATCH_WATCH_H

#include <stddef.h>
#include <stdint.h>

struct weir_watch;

enum weir_watch_role {
    WEIR_WATCH_LOOP,   /* the training loop */
    WEIR_WATCH_WORKER, /* prepares batches */
    WEIR_WATCH_FEEDER, /* a worker's thread that sends them */
    WEIR_WATCH_PIN,    /* copies batches to pinned memory */
    WEIR_WATCH_OTHER,
    WEIR_WATCH_ROLES
};

/* ---- the segment ---- */

/* Creates a segment. On failure returns NULL and writes one line to why. */
struct weir_watch *weir_watch_create(char *why, size_t why_size);
/* Maps the segment that process pid created as its file fd. On failure returns NULL and writes one line to why. */
struct weir_watch *weir_watch_open(int pid, int fd, char *why, size_t why_size);
/* Returns the number of the segment's file, which is closed on exec. */
int weir_watch_fd(const struct weir_watch *watch);
/* Ends the calling thread's part, and unmaps the segment when no thread of this process uses it. Accepts NULL. */
void weir_watch_close(struct weir_watch *watch);

/* ---- watched loaders ---- */

/* Memory is used by the loaders and threads that exist, not by their maximum. */
enum { WEIR_WATCH_LOADERS = 256 };

/* Returns the number of a new loader, or -1 if there are WEIR_WATCH_LOADERS. The name is copied. */
int weir_watch_loader(struct weir_watch *watch, const char *name);
/* Set a loader's setting. The keys are listed in segment.c; the text "name" replaces its name. Return 0, or -1 for an
 * unknown key or loader. */
int weir_watch_set(struct weir_watch *watch, int loader, const char *key, double value);
int weir_watch_set_text(struct weir_watch *watch, int loader, const char *key, const char *value);
/* Names a kind of call that cannot be timed, for the report. */
void weir_watch_unseen(struct weir_watch *watch, const char *what);

/* ---- threads ---- */

/* Gives the calling thread a slot. A thread with the slot of another loader keeps that one too, and continues in the
 * new one. The slot of an ended thread with the same loader, role and worker is continued. Returns 0, or -1 without a
 * free slot. The child of a fork() starts without a slot. */
int weir_watch_thread(struct weir_watch *watch, int loader, int role, int worker);
/* Ends the calling thread's slots. Called by itself when a thread ends. */
void weir_watch_thread_end(void);

/* ---- zones ---- */

/* Returns the number of the stage with this name, the same in all processes, or -1 if no number is left. kind: 0 work,
 * 1 inclusive, 2 wait; that of a known name is fixed. The calling thread must have a slot. */
int weir_watch_stage(const char *name, int kind);
/* Zones nest. Without a slot they do nothing. */
void weir_watch_begin(int stage);
void weir_watch_end(void);

/* ---- batches and items ---- */

/* A batch, from its list of indexes to its result. On a worker's thread, the time since the previous batch counts as
 * 09b_wait_for_work, that before the first one as 00b_start_worker. */
void weir_watch_batch_begin(int64_t batch);
void weir_watch_batch_end(int n_items);
/* index: -1 if it is not a number. */
void weir_watch_item_begin(int64_t index);
void weir_watch_item_end(void);
/* Names the file that the open item reads from now on. */
void weir_watch_path(const char *path);

/* ---- the training loop's thread ---- */

void weir_watch_epoch_begin(int loader);
void weir_watch_epoch_end(int loader, int complete);
/* The time that creating an iterator with its workers took. */
void weir_watch_startup(int loader, double seconds);
/* A request for a batch. ready: batches that are complete and not delivered, -1 unknown. due_ready: whether the batch
 * that is due is one of them, -1 unknown. due_worker: the worker that prepares it, -1 unknown. */
void weir_watch_request_begin(int loader, int ready, int due_ready, int due_worker);
/* Says, during the open request, whether the batch that is due was ready when the request began, if that shows only
 * while the loop takes batches. */
void weir_watch_request_due(int loader, int due_ready);
/* items: in the batch; below 0, or at the end of an epoch, no batch was delivered. */
void weir_watch_request_end(int loader, int items);
/* Measuring without waits. phase 2: batches are held back from now on, for which the loop waits; 1: they are handed
 * out from now on; 0: that was the last one; -1: given up. */
void weir_watch_headroom(int loader, int phase);

#endif
