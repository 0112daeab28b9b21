/* profiler.h: what becomes of recorded data: windows of steps as traces, and reports of the stage table. */
#ifndef WEIR_PROFILER_H
#define WEIR_PROFILER_H

#include "weir/base.h"
#include "weir/recorder.h"
#include "weir/trace.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which steps of a loop are recorded: torch.profiler's schedule() and the state machine behind it.
 *
 * Source: pytorch torch/profiler/profiler.py (schedule, ProfilerAction, profile.action_map). */

/* A cycle is wait, warmup and active, in steps. wait and active may be times instead: then the cycle waits (records)
 * for the steps that begin within so much time, at least one; warmup stays in steps. */
struct weir_schedule {
    int64_t wait, warmup, active; /* active > 0, or active_s > 0 */
    int64_t repeat;               /* cycles; 0 = unlimited */
    int64_t skip_first;           /* steps before the first cycle */
    int64_t skip_first_wait;      /* nonzero: the first cycle has no wait */
    double wait_s, active_s;      /* > 0: instead of wait and active */
};

enum weir_action {
    WEIR_ACTION_NONE,
    WEIR_ACTION_WARMUP, /* recorded and discarded */
    WEIR_ACTION_RECORD,
    WEIR_ACTION_RECORD_AND_SAVE, /* the last step of a window */
    WEIR_ACTION_EXIT,            /* as next action: there is no next step */
};

/* 0, or -EINVAL with an error. */
int weir_schedule_check(const struct weir_schedule *schedule, struct weir_err *err);
/* Parses "wait=1,warmup=1,active=3,repeat=1": numbers of steps, or times for wait and active (500ms, 2s). Omitted names
 * are 0. */
int weir_schedule_parse(struct weir_schedule *schedule, const char *text, struct weir_err *err);

/* Action in a step, counted from 0, for schedules in steps. */
enum weir_action weir_schedule_action(const struct weir_schedule *schedule, int64_t step);

/* Progress of a schedule with times; all zero at first. */
struct weir_schedule_clock {
    int64_t cycles;           /* completed */
    int64_t steps;            /* completed */
    int64_t in_part;          /* completed in the current part */
    uint64_t part_ns;         /* start of the current part */
    enum weir_action part;    /* NONE: wait, WARMUP, RECORD */
    enum weir_action current; /* of the current step */
};
/* Action in the step that begins at now_ns. *last is set to the action of the step that ended, which is known only now:
 * a RECORD that used up its time becomes RECORD_AND_SAVE. */
enum weir_action weir_schedule_timed(const struct weir_schedule *schedule, struct weir_schedule_clock *clock,
                                     uint64_t now_ns, enum weir_action *last);

/* Actions between two steps, in this order. */
enum weir_transition {
    WEIR_DO_WARN = 1,        /* the window ends early and is discarded */
    WEIR_DO_STOP = 2,        /* a window ends */
    WEIR_DO_READY = 4,       /* and is delivered */
    WEIR_DO_PREPARE = 8,     /* recording is switched on; records are discarded */
    WEIR_DO_START = 16,      /* a window begins */
    WEIR_DO_START_STOP = 32, /* a window begins and ends at once, empty: after a warmup without a record */
};
/* Flags of enum weir_transition. */
unsigned weir_transition(enum weir_action from, enum weir_action to);

/* ---- windows ----
 *
 * Records windows of steps and delivers them as traces (files, averages), without blocking the caller. Windows contain
 * ranges and zones (recorder.h).
 *
 *     struct weir_profiler_config config;
 *     weir_profiler_config_default(&config);
 *     config.schedule = (struct weir_schedule){.wait = 1, .warmup = 1, .active = 3, .repeat = 1};
 *     config.folder = "runs/a";
 *     weir_profiler_open(&profiler, &config, &err);
 *     for (...) { train(); weir_profiler_step(profiler); }
 *     weir_profiler_close(&profiler);
 *
 * One thread opens, steps and closes; all threads are recorded. Only one profiler may be open in a process (-EBUSY). In
 * a child of fork() the parent's profiler does nothing, and the child may open its own. */

/* A recorded window. */
struct weir_profiler_window {
    int64_t number;                /* from 0 */
    int64_t first_step, last_step; /* -1: recorded without steps */
    struct weir_trace *trace;      /* sorted; lent until the callback returns; NULL when out of memory */
    const char *path;              /* the trace file; NULL: none was requested, or error says why it is missing */
    const char *error;             /* NULL: none */
    uint64_t dropped;              /* records that did not fit */
    double seconds;                /* from the start of its first step to the end of its last */
};

struct weir_profiler_config {
    size_t size;                   /* sizeof this struct in the program; set by weir_profiler_config_default */
    struct weir_schedule schedule; /* active and active_s 0: no schedule; start and stop record without steps */
    bool record_shapes, profile_memory, with_stack;
    bool gpu;           /* record GPUs too, from the warmup on, as starting takes a while. The end of a window
                         * waits for the GPUs. If unavailable, one message gives the reason */
    bool nvtx;          /* show steps, ranges and zones in Nsight from open to close, also outside windows */
    bool worker_ops;    /* show stages of other threads than consumers as operators instead of category loader_stage */
    bool whole_steps;   /* leave out the step in progress at stop, which torch keeps */
    const char *folder; /* for trace files HOST_PID.NS.pt.trace.json.gz (copied); NULL = no files */
    const char *worker; /* replaces HOST_PID (copied) */
    bool uncompressed;  /* .json instead of .json.gz */
    /* Name of the consumer's wait; default "enumerate(DataLoader)#WeirLoader.__next__". Copied. */
    const char *data_wait;
    const char *metadata; /* extra members of the trace file as JSON text (copied); NULL = none */
    uint64_t bytes_max;   /* memory for one window's records; 0 = 256 MiB; further records are dropped and counted */
    /* Called after each window on the profiler's own thread. At most four windows queue for it; further ones are
     * dropped with a message. */
    void (*on_trace_ready)(void *user, const struct weir_profiler_window *window);
    /* One line: a discarded window, a file that cannot be written. On any thread of the profiler, or the caller's. */
    void (*on_message)(void *user, const char *line);
    /* Called about every ms while a window records, on a thread of the profiler: a place for weir_counter. */
    void (*on_sample)(void *user);
    /* Replaces the schedule: returns the action of a step. Called on the caller's thread once per step, in order;
     * whether a step is the last of its window is known when it begins. Steps start at first_step. */
    enum weir_action (*action)(void *user, int64_t step);
    int64_t first_step;
    /* Called on the caller's thread, in step, stop and close, when a delivered window has ended and the next has not
     * begun. It may flush and take. */
    void (*on_window_end)(void *user);
    void *user;
};

/* As weir_loader_config_init: defaults for a struct of size bytes. */
void weir_profiler_config_init(struct weir_profiler_config *config, size_t size);
static inline void weir_profiler_config_default(struct weir_profiler_config *config)
{
    weir_profiler_config_init(config, sizeof *config);
}

struct weir_profiler;

/* Starts step 0 if there is a schedule. */
int weir_profiler_open(struct weir_profiler **out, const struct weir_profiler_config *config, struct weir_err *err);
/* Ends a step and begins the next. No effect without a schedule, after stop, or when profiler is NULL. */
void weir_profiler_step(struct weir_profiler *profiler);
/* Manual control: start begins recording (step 0 of a schedule), stop ends it and delivers the window. */
int weir_profiler_start(struct weir_profiler *profiler, struct weir_err *err);
void weir_profiler_stop(struct weir_profiler *profiler);
/* Waits until all ended windows are delivered. */
void weir_profiler_flush(struct weir_profiler *profiler);
/* Trace of the last window, NULL before the first; owned by the profiler, valid until the next window ends (flush
 * first). */
struct weir_trace *weir_profiler_last(struct weir_profiler *profiler);
/* As weir_profiler_last, but the caller owns the trace (weir_trace_free). */
struct weir_trace *weir_profiler_take(struct weir_profiler *profiler);
/* Stops, waits for all windows, frees. Accepts NULL. */
void weir_profiler_close(struct weir_profiler **profiler);

/* ---- reports ----
 *
 * A report turns snapshots into tables for people and rows for a log: stages, threads, the machine, and the profiler's
 * own cost. Rows are plain data, in seconds, so that a table read back from a log prints exactly like the live one.
 * weir/report.h adds the loader's figures. */

enum weir_lang { WEIR_LANG_EN, WEIR_LANG_ZH };

/* The kind of thread that a row counts. */
enum weir_report_side {
    WEIR_SIDE_WORKER,
    WEIR_SIDE_CONSUMER,
    WEIR_SIDE_HELPER, /* a worker's stage on other threads, such as the uploader */
    WEIR_SIDE_GPU,    /* timed by a GPU's clock, between events on its streams */
    WEIR_SIDES
};

enum { WEIR_REPORT_NAME = 80 };

struct weir_report_row {
    char name[64];
    enum weir_stage_kind kind;
    enum weir_report_side side;
    uint64_t count;
    double total_s, self_s;
    double mean_s, min_s, p50_s, p90_s, p99_s, max_s;
    double cpu_s;         /* CPU time of self_s; -1 = unknown (weir_stage_cpu_ns) */
    double preempted_s;   /* of self_s, runnable while other threads had the core; -1 = unknown */
    double cpu_over_wall; /* cpu_s / self_s; -1 = unknown */
    double share;         /* fraction of the workers' work; -1 if not applicable */
};

/* A thread's time, once by zones and once by the kernel's accounting. */
struct weir_report_worker {
    char name[16];
    double wall_s, work_s, wait_s, unattributed_s;     /* work + wait + unattributed = wall, within 1 % */
    double cpu_s;                                      /* on a core, by its CPU clock: the sum of the next three */
    double work_cpu_s, wait_cpu_s, unattributed_cpu_s; /* -1 = unknown: CPU time was sampled */
    /* With cpu_s = wall; -1 = unknown. Runnable, but its cgroup's quota was used up (its estimated part); runnable, but
     * no core was free; asleep. */
    double throttled_s, core_wait_s, blocked_s;
    double steal_s; /* of cpu_s, the likely part stolen by a hypervisor (the machine's average); -1 = unknown */
};

/* The machine, and other processes' use of it during the time covered. */
struct weir_report_machine {
    bool used;                   /* false: nothing is printed */
    int cores, online;           /* usable, and online */
    int part;                    /* this process's part of the usable cores, where local ranks share them */
    double quota_cores;          /* CPU time per second that its cgroups allow; 0 = no limit */
    bool throttling;             /* the next three are known */
    uint64_t periods, throttled; /* quota periods, and those in which the quota was used up */
    double throttled_s;          /* time stopped then, summed over CPUs */
    uint64_t memory_limit_bytes; /* of its cgroups; 0 = no limit */
    double others_cores;         /* mean of usable cores busy with other processes; -1 = unknown */
    double steal_cores;          /* mean of cores stolen by the hypervisor */
    double load_average;         /* over one minute, when the run began; -1 = unknown */
};

/* A stage has a second row if threads other than workers executed it too. */
enum { WEIR_REPORT_ROWS = 2 * WEIR_STAGE_MAX };

struct weir_report {
    int n_rows;
    struct weir_report_row rows[WEIR_REPORT_ROWS]; /* in stage order, without stages of kind LOOP */
    int n_workers;
    struct weir_report_worker *workers; /* owned */
    struct weir_report_worker
        consumer; /* the thread that takes what workers make; no name = unknown, or one of workers */
    struct weir_report_machine machine;
    uint64_t zones;         /* recorded in this time */
    uint64_t too_deep;      /* dropped: nested deeper than WEIR_ZONES_DEEP */
    double zone_cost_ns;    /* measured */
    double thread_s;        /* sum of the threads' wall time */
    double profiler_share;  /* zones x cost / thread time, 0..1 */
    double clock_error_ppm; /* of the calibration */
    char cpu_sampled[96];   /* why CPU time was sampled; empty = it was measured */
};

/* Fills all but the machine from a snapshot (whole or a difference). Returns 0 or -ENOMEM. */
int weir_report_from_snapshot(struct weir_report *report, const struct weir_snapshot *snapshot);
void weir_report_free(struct weir_report *report);
/* Fills a row from calls added by weir_stage_stats_add, such as those timed by a GPU's clock. */
void weir_report_row_fill(struct weir_report_row *row, const struct weir_stage_info *info,
                          const struct weir_stage_stats *stats);

/* Prints all of a report: the parts below, in English. */
void weir_report_print(FILE *out, const struct weir_report *report);
/* The stage table in English, with further rows after the report's own. */
void weir_report_stages_print(FILE *out, const struct weir_report *report, const struct weir_report_row *further,
                              int n_further);
/* The threads' time, one line each. */
void weir_report_threads_print(FILE *out, const struct weir_report *report);
/* The profiler's own cost, one line. */
void weir_report_cost_print(FILE *out, const struct weir_report *report);

/* Writes members of the open object: "stages", "workers" (and "consumer"), "machine". */
void weir_report_json(struct weir_json *json, const struct weir_report *report);
/* Writes "profiler". */
void weir_report_cost_json(struct weir_json *json, const struct weir_report *report);
void weir_report_row_json(struct weir_json *json, const struct weir_report_row *row);

/* "worker", "consumer", "helper", "gpu". */
const char *weir_report_side_name(enum weir_report_side side);
/* The stage's name, with " (helper)" or " (gpu)" appended. */
void weir_report_row_name(const struct weir_report_row *row, char name[WEIR_REPORT_NAME]);
/* "work", "inclusive", "span", "wait", "loop". */
const char *weir_stage_kind_name(enum weir_stage_kind kind);
/* "12.3us": one word, for awk and sort. */
const char *weir_report_time(char text[24], double seconds);

#ifdef __cplusplus
}
#endif

#endif
