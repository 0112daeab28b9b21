/* job_watch.h: watches the main process and the workers of one training job: how their threads spend their time, and
 * their threads, memory, reads and open files. Workers of Weir's loader are threads, of which only the time and the
 * reads are known.
 *
 *     weir_job_watch_open(&watch, &job, "", &err);
 *     for (;;) {
 *         for (10 times, every 100 ms)
 *             weir_job_watch_sample(watch);
 *         weir_job_watch_take(watch, &figures);       // of the last second
 *         weir_job_watch_update(watch, &job);         // workers come and go
 *     }
 *
 * One thread uses a watch. Memory is allocated only by weir_job_watch_open. */
#ifndef WEIR_PROF_PROCESSES_JOB_WATCH_H
#define WEIR_PROF_PROCESSES_JOB_WATCH_H

#include "prof/processes/task_watch.h"
#include "prof/processes/training_jobs.h"

enum { WEIR_PROCESS_FILES = 4, WEIR_PROCESS_FILE = 64 };

/* Figures of a process in one interval. Unknown figures are -1. */
struct weir_process_figures {
    pid_t pid;                 /* of a thread: its TID */
    char name[WEIR_TASK_NAME]; /* of a thread; "" for a process */
    bool ended;
    double age_s;                   /* since the watch has seen it; the main process and the first workers: -1 */
    struct weir_task_shares shares; /* of the worker's loop, or the training loop's thread */
    int n_threads;
    double other_cores;   /* CPU time per second of the process's threads other than the watched one */
    double ready_threads; /* mean number of threads that run or wait for a core */
    double storage_bytes_per_s;
    double cached_bytes_per_s; /* estimate: bytes read by system calls less those from storage; includes pipes */
    double pss_bytes;          /* updated in every tenth interval, as the files are */
    int n_files;               /* open files of datasets */
    char files[WEIR_PROCESS_FILES][WEIR_PROCESS_FILE]; /* names of the first ones */
};

struct weir_job_figures {
    double seconds;
    double cores; /* CPU time of all processes of the job per second */
    struct weir_process_figures main;
    bool torch, weir;    /* as in struct weir_job */
    double other_thread; /* the main process's busiest other Python thread: fraction of the time on a core */
    bool has_pin;        /* a pin thread exists */
    struct weir_task_shares pin;
    int workers_begun, workers_ended; /* in this interval */
    int n_workers;
    struct weir_process_figures workers[WEIR_JOB_WORKERS];
};

struct weir_job_watch;

int weir_job_watch_open(struct weir_job_watch **watch, const struct weir_job *job, const char *root,
                        struct weir_err *err);
void weir_job_watch_close(struct weir_job_watch *watch);

/* Takes one sample of each watched thread. Returns false if the main process has ended. */
bool weir_job_watch_sample(struct weir_job_watch *watch);

/* Ends the interval and begins the next one. */
void weir_job_watch_take(struct weir_job_watch *watch, struct weir_job_figures *figures);

/* Adds the figures of a process in a further interval, as below. */
void weir_process_figures_add(struct weir_process_figures *total, const struct weir_process_figures *more);
/* Adds an interval to the figures of a longer time, which become means; memory, threads and files are the latest.
 * Workers that have ended are left out. *total is zeroed before the first call. */
void weir_job_figures_add(struct weir_job_figures *total, const struct weir_job_figures *interval);

/* Continues with the workers and the pin thread that the job has now. Call it between intervals. */
void weir_job_watch_update(struct weir_job_watch *watch, const struct weir_job *job);

/* Returns whether a file's name ends like those of datasets: ".hdf5", ".tfrecord", ".mdb", ... */
bool weir_is_dataset_file(const char *path);

#endif
