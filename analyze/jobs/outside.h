/* outside.h: what limits a training job, from figures that are visible from outside: how its threads spend their time,
 * the machine, and the GPU. docs/internals/verdict.md explains the rules and thresholds.
 *
 *     struct weir_outside_window *window = calloc(1, sizeof *window);
 *     for (each second) {
 *         weir_outside_add(window, &interval);
 *         weir_outside_figures(window, &figures);
 *         weir_outside_judge(&verdict, &figures);
 *     }
 *
 * A verdict depends on its figures only. */
#ifndef WEIR_ANALYZE_JOBS_OUTSIDE_H
#define WEIR_ANALYZE_JOBS_OUTSIDE_H

#include "analyze/causes/diagnosis.h"
#include "analyze/causes/thresholds.h"
#include "prof/processes/job_watch.h"
#include "weir/profiler.h"

#include <stdio.h>

enum { WEIR_OUTSIDE_INTERVALS = 10 };

/* ---- figures ---- */

/* One interval of a job. GPU figures are -1 if they are unknown. */
struct weir_outside_interval {
    const struct weir_job_figures *job;
    const struct weir_report_machine *machine; /* of this interval (weir_machine_between) */
    double gpu_busy, to_gpu_bytes_per_s;
    double other_jobs_cores; /* part of the machine's others_cores: this user's other training jobs */
};

struct weir_outside_worker {
    pid_t pid;
    double seconds, uses[WEIR_TASK_USES]; /* seconds */
    double ready;                         /* ready threads x seconds; -1: unknown */
    double other_cores;                   /* CPU time of its other threads, in seconds */
};

/* Sums of one interval. Times are in seconds, cores in core seconds. */
struct weir_outside_sums {
    double seconds, main[WEIR_TASK_USES], pin[WEIR_TASK_USES], other_thread, main_ready, young;
    double storage_bytes, job_cores, others_cores, other_jobs_cores, steal_cores;
    double gpu_busy, gpu_seconds, to_gpu_bytes, to_gpu_seconds;
    bool has_pin;
    uint64_t periods, throttled;
    int workers_begun, n_workers;
    struct weir_outside_worker workers[WEIR_JOB_WORKERS];
};

/* The last WEIR_OUTSIDE_INTERVALS intervals. Zeroed before the first call. */
struct weir_outside_window {
    int n, next;
    int cores, online;
    double quota_cores;
    bool torch, weir; /* of the last interval */
    struct weir_outside_sums intervals[WEIR_OUTSIDE_INTERVALS];
};

void weir_outside_add(struct weir_outside_window *window, const struct weir_outside_interval *interval);

/* Means over a window. Fractions of unknown figures are -1. */
struct weir_outside_figures {
    double seconds;
    double main[WEIR_TASK_USES];
    bool torch, weir; /* as in struct weir_job */
    bool has_pin;
    double pin[WEIR_TASK_USES];
    double other_thread;            /* another Python thread of the main process: time on a core */
    int n_workers;                  /* in use */
    int n_parked;                   /* of a loader that is not in use */
    double workers[WEIR_TASK_USES]; /* means over the workers in use */
    double busiest, rest;           /* time at work (not idle) of the busiest worker, and the median of the others */
    pid_t busiest_pid;
    double ready_threads; /* per worker, running or ready; -1: unknown */
    double other_cores;   /* per worker: CPU time per second of its other threads */
    double main_ready_threads;
    double young; /* time in which workers were missing or had just begun */
    int workers_begun;
    double storage_bytes_per_s; /* of all workers */
    double job_cores;           /* CPU time of the job per second */
    int cores, online;          /* usable by the job, and of the machine */
    double quota_cores;         /* 0: no quota */
    double throttled;           /* fraction of the quota's periods */
    double others_cores, steal_cores;
    double other_jobs_cores;             /* part of others_cores */
    double gpu_busy, to_gpu_bytes_per_s; /* of all processes on the GPU; -1: unknown */
};

void weir_outside_figures(const struct weir_outside_window *window, struct weir_outside_figures *figures);

/* ---- verdict ---- */

enum { WEIR_OUTSIDE_CAUSES = 3 };

struct weir_outside_verdict {
    bool ready; /* false: the window is too short, and no cause is named */
    struct weir_diagnosis found;
};

void weir_outside_judge(struct weir_outside_verdict *verdict, const struct weir_outside_figures *figures);

/* Writes the member "verdict" of the open object. */
void weir_outside_json(struct weir_json *json, const struct weir_outside_verdict *verdict);

#endif
