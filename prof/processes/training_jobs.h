/* training_jobs.h: finds PyTorch training processes of other programs and their DataLoader workers, and processes with
 * Weir's loader, from /proc.
 *
 * - A worker is named "pt_data_worker" (torch 2.6 and later). Before, it is a child of a process that has libtorch
 *   mapped, has libtorch mapped itself, and runs the same command or one of multiprocessing. Its loop is the thread
 *   whose TID is its PID.
 * - The main process is the parent of workers (their grandparent, with a fork server), or has libtorch mapped and no
 *   child that has. So launchers that import torch do not count.
 * - With torch 2.6 or later, a process that multiprocessing has just started is neither for some seconds, unless it has
 *   workers.
 * - The pin thread is named "pt_data_pin".
 * - Weir's loader has a thread "weir-watchdog" in its process, and its workers are threads "weir-w0", "weir1-w0", ...
 */
#ifndef WEIR_PROF_PROCESSES_TRAINING_JOBS_H
#define WEIR_PROF_PROCESSES_TRAINING_JOBS_H

#include "prof/processes/process_files.h"
#include "weir/base.h"

enum { WEIR_JOB_WORKERS = 256, WEIR_JOBS = 64, WEIR_JOB_COMMAND = 128 };

struct weir_job {
    pid_t pid;
    uint64_t start_ticks;             /* with pid, identifies the process */
    int rank, world_size, local_rank; /* of torchrun, srun, mpirun or torch.multiprocessing.spawn, else -1. With spawn
                                         world_size is the number of its processes, and known from torch 2.6 on */
    bool serves_store;                /* of torch.distributed */
    pid_t starter;                    /* the process with torch that has started it by multiprocessing; 0: none */
    bool torch;                       /* has libtorch mapped */
    bool weir;                        /* loads by Weir's loader, and not by DataLoader workers */
    bool foreign;                     /* belongs to another user, so only stat and schedstat can be read */
    int n_workers;
    pid_t workers[WEIR_JOB_WORKERS]; /* ascending: PIDs; with `weir` TIDs in the main process */
    bool more_workers;               /* more than WEIR_JOB_WORKERS exist */
    pid_t pin_thread;                /* TID in the main process; 0: none */
    char command[WEIR_JOB_COMMAND];  /* of its parent, if multiprocessing has started it */
};

/* A search remembers the processes that it has seen. The first one takes about 20 us per process of the user, 1 ms per
 * Python process and 15 us per thread of processes with several; later ones 15 us per process of the user and 2 us for
 * each other process. Young processes, and those with Weir's loader, are searched for threads each time. root is
 * borrowed. */
struct weir_job_search;
struct weir_job_search *weir_job_search_open(const char *root);
void weir_job_search_close(struct weir_job_search *search);

/* Fills jobs, ordered by rank, then PID. wanted: a main process, one of its workers, or a process above it (a launcher,
 * a shell), or 0 for all processes of this user. Returns the number of jobs, or -ENOMEM. */
int weir_jobs_find(struct weir_job_search *search, struct weir_job jobs[WEIR_JOBS], pid_t wanted, struct weir_err *err);

#endif
