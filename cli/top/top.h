/* top.h: the jobs that weir top watches. One thread calls these functions. */
#ifndef WEIR_CLI_TOP_TOP_H
#define WEIR_CLI_TOP_TOP_H

#include "analyze/jobs/job_verdict.h"
#include "analyze/jobs/outside.h"
#include "base/document.h"
#include "prof/gpu/nvml.h"
#include "prof/report/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- top_gpus.c: reads the GPUs once per second on a thread of its own, because NVML takes 50 ms per GPU. */

struct top_gpus;

/* Returns NULL if there are no GPUs, or no NVML. */
struct top_gpus *top_gpus_open(void);
void top_gpus_close(struct top_gpus *gpus);

/* Returns the GPU that the process uses, which is read from now on; -1: none, or it cannot be determined. NVML lists
 * the host's PIDs, so in a container the GPU follows from CUDA_VISIBLE_DEVICES and the local rank (-1: none). */
int top_gpus_of(struct top_gpus *gpus, pid_t pid, int local_rank);

/* Copies the latest figures of a GPU. Returns false before the first ones. */
bool top_gpus_read(struct top_gpus *gpus, int gpu, struct weir_nvml_gpu *figures);

/* ---- the jobs */

enum { TOP_SAMPLE_MS = 100 };

struct top_job {
    struct weir_job job;
    struct weir_job_watch *watch;
    int gpu; /* -1: none, or unknown */
    bool has_gpu;
    struct weir_nvml_gpu gpu_now;
    bool ended;
    struct weir_machine_now machine_then;
    struct weir_report_machine machine; /* of the last interval */
    uint64_t own_ns;                    /* CPU time of the job since it is watched */
    struct weir_job_figures last;       /* of the last interval */
    struct weir_job_figures total;      /* of all intervals */
    struct weir_outside_window window;
    struct weir_dataloader_figures figures;
    struct weir_job_verdict verdict;
};

enum top_order { TOP_BY_PROCESS, TOP_BY_CPU, TOP_BY_MEMORY, TOP_BY_READS };

struct top {
    pid_t wanted; /* 0: all jobs of the user */
    double interval_s;
    bool totals;    /* show the figures of the whole time, not of the last interval */
    bool collapsed; /* one row for all workers */
    enum top_order order;
    struct weir_job_search *search;
    struct top_gpus *gpus;
    int n_jobs;
    struct top_job *jobs[WEIR_JOBS]; /* by rank, then PID; includes jobs that have ended */
    uint64_t begun_ns, interval_ns, search_ns;
    int n_intervals;
    int n_found; /* by the last search */
    struct weir_job found[WEIR_JOBS];
};

/* Zeroes and opens top; the caller sets the first members afterwards. */
int top_open(struct top *top, struct weir_err *err);
void top_close(struct top *top);

/* Looks for jobs and begins to watch new ones. Returns the number of running jobs, or -ENOMEM. */
int top_find(struct top *top, struct weir_err *err);

/* Takes a sample. Returns 1 if an interval has ended, so that there are new figures and verdicts, otherwise 0, or
 * -ENOMEM. */
int top_sample(struct top *top, struct weir_err *err);

/* Ends the current interval, unless it is too short for figures. */
void top_finish(struct top *top);

/* Adds the last interval to the job's window, and judges it. other_jobs_cores: as in struct weir_outside_interval. */
void top_judge(struct top_job *job, double other_jobs_cores);

/* Returns whether a job is running. */
bool top_is_running(const struct top *top);

/* Returns the index of the rank that waits least for the others; -1 if there is none. *least, *median: fractions of
 * time.
 */
int top_slowest_rank(const struct top *top, double *least, double *median);

/* Print the figures of all jobs (a table for each), one line for each job, and the verdicts. */
void top_print(FILE *out, const struct top *top);
void top_print_line(FILE *out, const struct top *top, const struct top_job *job);
void top_print_verdict(FILE *out, const struct top *top, const struct top_job *job);
/* Writes the members of the open object. */
void top_describe_json(struct weir_document *document, const struct top *top);

/* ---- full-screen mode ---- */

/* Shows top on the terminal until the user quits, the jobs end, or end_ns passes (UINT64_MAX: never). Returns 0 or
 * -errno. */
int top_screen(struct top *top, uint64_t end_ns, struct weir_err *err);

/* ---- a command ---- */

/* Starts the command and passes signals on to it that others send to this process; those from the terminal reach it
 * anyway. Returns its PID, or -errno. */
pid_t top_command_start(char *const *argv, struct weir_err *err);
/* Returns true if the command has ended, and sets *status to its exit status, or 128 + the number of the signal. */
bool top_command_ended(pid_t pid, int *status);

#endif
