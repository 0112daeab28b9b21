/* task_watch.h: how a thread of another program spends its time, from samples of /proc.
 *
 *     struct weir_task_watch watch;
 *     weir_task_watch_begin(&watch, "", pid, tid);
 *     for (;;) {
 *         for (20 times, every 50 ms)
 *             weir_task_watch_sample(&watch);
 *         weir_task_watch_take(&watch, &shares);      // of the last second
 *     }
 *
 * The kernel counts the time on a core and the time waiting for one (schedstat). The rest is divided among the reasons
 * for which samples found the thread asleep, named by its kernel function (wchan). A sample takes about 20 us. */
#ifndef WEIR_PROF_PROCESSES_TASK_WATCH_H
#define WEIR_PROF_PROCESSES_TASK_WATCH_H

#include "prof/processes/process_files.h"

enum weir_task_use {
    WEIR_TASK_ON_CORE,
    WEIR_TASK_CORE_WAIT, /* runnable, no core free, or the quota is used up */
    WEIR_TASK_STORAGE,   /* reading from a disk, a network file system or a blocking socket */
    WEIR_TASK_LOCK,      /* a mutex, a condition variable, or the GIL */
    WEIR_TASK_SLEEP,     /* sleeping for a requested time */
    WEIR_TASK_IDLE,      /* waiting for a pipe, a local socket or a process, as a worker does for its next indices */
    WEIR_TASK_OTHER,     /* asleep for another or an unknown reason */
    WEIR_TASK_USES
};

/* Returns the name for tables and JSON, such as "on core" and "core-wait". */
const char *weir_task_use_name(enum weir_task_use use);

/* Classifies a thread that is asleep, by its state and the function from weir_task_wait_read, which can be empty. */
enum weir_task_use weir_task_use_of(char state, const char *function);

struct weir_task_watch {
    const char *root; /* borrowed */
    pid_t pid, tid;
    bool ended;
    bool known;         /* the kernel counts the times of this thread */
    bool lock_is_queue; /* set after weir_task_watch_begin: it waits for work on a lock, so that counts as idle */
    uint64_t at_ns;
    struct weir_task_times then;
    unsigned asleep[WEIR_TASK_USES]; /* samples since at_ns that found the thread asleep */
    char function[WEIR_TASK_WAIT];   /* of the last such sample */
    int wait_fd;                     /* -1: the file is opened by each sample */
};

void weir_task_watch_begin(struct weir_task_watch *watch, const char *root, pid_t pid, pid_t tid);
/* Keeps a file open, so that samples take 5 us. Requires weir_task_watch_end. */
void weir_task_watch_keep_open(struct weir_task_watch *watch);
void weir_task_watch_end(struct weir_task_watch *watch);

/* Returns false if the thread has ended. */
bool weir_task_watch_sample(struct weir_task_watch *watch);

/* Fractions of a time, by samples. Their sum is 1. */
struct weir_task_shares {
    double seconds; /* 0: the fractions are unknown */
    double of[WEIR_TASK_USES];
};
/* Sets the shares of the time since the previous call, or since the watch began. */
void weir_task_watch_take(struct weir_task_watch *watch, struct weir_task_shares *shares);
/* Add the shares of a further time, and subtract those of a time at the beginning. */
void weir_task_shares_add(struct weir_task_shares *total, const struct weir_task_shares *more);
void weir_task_shares_subtract(struct weir_task_shares *total, const struct weir_task_shares *then);

/* How one thread spent its time, or the sum of several: workers, a training loop. All members are numbers. Unknown
 * counts are -1. */
struct weir_thread_figures {
    double id;                     /* a worker's number; from outside, the PID or TID */
    double wall_s, busy_s, wait_s; /* observed; with batches; waiting for work */
    double start_s;                /* from the start to the first batch */
    double batches, items;
    double busy_squares;    /* sum of the batches' squared times, in s^2 */
    double batch_s, spread; /* mean time of a batch, and standard deviation over mean */
    double cpu_s, delay_s;  /* on a core; runnable without one */
    double asked_of_s;      /* the loop's out-of-order waits for its batches */
    struct weir_task_shares shares;
};

#endif
