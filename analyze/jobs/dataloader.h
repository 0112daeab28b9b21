/* dataloader.h: the figures of a training job with a DataLoader, on which its verdict and its text depend: the loop,
 * the workers, waits, stages, the machine and the GPU. weir.watch fills them from inside (analyze/watch/), `weir top`
 * from samples of /proc (outside.h), and a log contains them, so that `weir report` prints the same.
 *
 * Times are in seconds; unknown figures are -1. */
#ifndef WEIR_ANALYZE_JOBS_DATALOADER_H
#define WEIR_ANALYZE_JOBS_DATALOADER_H

#include "base/fields.h"
#include "prof/processes/training_jobs.h"
#include "prof/watch/watch_read.h"
#include "weir/report.h"

enum { WEIR_DATALOADER_WORKERS = WEIR_JOB_WORKERS };

/* What the workers' busy time consists of, and the loop's: self times of stages, from the report's rows. */
struct weir_dataloader_stages {
    double busy_s;
    double open_s, opens; /* a part of read_s */
    double read_s, read_cpu_s, decode_s, transform_s, collate_s, own_s, named_s;
    char transform[64]; /* the transform that takes most, or empty */
    char named[64];     /* the user's stage that takes most, or empty */
    double pickle_s, h2d_s, pin_s, step_s;
};

/* What only `weir top` sees. */
struct weir_dataloader_outside {
    bool known;
    bool torch, weir; /* as in struct weir_job */
    bool has_pin;
    struct weir_task_shares pin;
    double other_thread;         /* another Python thread of the main process: fraction of the time on a core */
    double ready_threads;        /* of all processes, running or ready; -1: unknown */
    double worker_ready;         /* the same per worker */
    double young;                /* fraction of the time in which workers were missing or had just begun */
    int workers_begun, n_parked; /* parked: workers of a loader that is not in use */
    double storage_bytes_per_s;
    double other_jobs_cores;             /* part of machine.others_cores: this user's other training jobs */
    double gpu_busy, to_gpu_bytes_per_s; /* of all processes on the GPU */
};

struct weir_dataloader_figures {
    bool known; /* false: the log is not about a watched loader */
    char name[WEIR_WATCH_TEXT];
    struct weir_watch_settings settings;
    double requests, batches, items, loop_s, wait_s;
    double run_first_s; /* part of wait_s for the run's first batch */
    double ready_known, ready_mean, ready_min, ready_max, ready_none;
    double wait_none_s, wait_order_s, wait_due_s, wait_unknown_s; /* by reason */
    double epochs, first_waits, first_wait_s, startups, startup_s;
    double windows, given_up, held_s;
    double window_batches, window_s, window_sd_s, rest_batches, rest_s, rest_sd_s; /* sd of a step */
    double n_threads;                /* mean number of threads of a worker process */
    double others_in_worker;         /* CPU time of a worker's other threads over that of its loop */
    struct weir_thread_figures loop; /* of training */
    int n_workers;
    struct weir_thread_figures workers[WEIR_DATALOADER_WORKERS];
    struct weir_watch_slowest slowest;
    double paths, paths_s; /* items with a file, and their time */
    /* Those that follow are not in the object "watch" of a log. */
    struct weir_dataloader_stages stages;
    struct weir_report_machine machine;
    double wall_s, cpu_s; /* time covered; CPU time of the job; 0: unknown */
    struct weir_dataloader_outside outside;
};

/* The members of the object "watch" in a log line. */
extern const struct weir_fields weir_watch_fields;

/* Sets the figures that a report contains: stages, machine, and the loop's times on a core and ready. */
void weir_dataloader_add_report(struct weir_dataloader_figures *figures, const struct weir_loader_report *report);

/* Sums the workers up. The shares, also those on a core and ready, are fractions of their busy time. */
void weir_dataloader_sum(struct weir_thread_figures *sum, const struct weir_dataloader_figures *figures);
/* Returns the standard deviation of n values from their sum and the sum of their squares. */
double weir_standard_deviation(double n, double sum, double squares);

#endif
