/* profiler.h: the output of the recorder: windows of steps as traces, and reports with the stage table. */
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

/* Selects which steps of a loop are recorded, in the same way as torch.profiler's schedule() and state machine.
 *
 * Source: pytorch torch/profiler/profiler.py (schedule, ProfilerAction, profile.action_map). */

/* A cycle consists of wait, warmup and active, as numbers of steps. wait and active can be given as times instead: the
 * cycle then waits (or records) during all steps that begin within this time, but during at least one. warmup is always
 * a number of steps. */
struct weir_schedule {
    int64_t wait, warmup, active; /* active > 0 or active_s > 0 is required */
    int64_t repeat;               /* number of cycles; 0 = unlimited */
    int64_t skip_first;           /* number of steps before the first cycle */
    int64_t skip_first_wait;      /* if not 0, the first cycle has no wait */
    double wait_s, active_s;      /* if > 0, times in seconds that replace wait and active */
};

enum weir_action {
    WEIR_ACTION_NONE,
    WEIR_ACTION_WARMUP, /* recorded and discarded */
    WEIR_ACTION_RECORD,
    WEIR_ACTION_RECORD_AND_SAVE, /* the last step of a window */
    WEIR_ACTION_EXIT,            /* passed to weir_transition if there is no next step */
};

/* Returns 0, or -EINVAL with an error. */
int weir_schedule_check(const struct weir_schedule *schedule, struct weir_err *err);
/* Parses a string such as "wait=1,warmup=1,active=3,repeat=1". Values are numbers of steps; wait and active may also be
 * times (500ms, 2s). Omitted names are 0. */
int weir_schedule_parse(struct weir_schedule *schedule, const char *text, struct weir_err *err);

/* Returns the action in a step (numbered from 0), for schedules without times. */
enum weir_action weir_schedule_action(const struct weir_schedule *schedule, int64_t step);

/* Progress of a schedule with times. Initialise it with zeros. */
struct weir_schedule_clock {
    int64_t cycles;           /* number of completed cycles */
    int64_t steps;            /* number of completed steps */
    int64_t in_part;          /* number of completed steps in the current part */
    uint64_t part_ns;         /* time at which the current part began */
    enum weir_action part;    /* the current part: NONE (wait), WARMUP or RECORD */
    enum weir_action current; /* action in the current step */
};
/* Returns the action in the step that begins at now_ns. Sets *last to the action of the step that has just ended, which
 * is known only now: RECORD becomes RECORD_AND_SAVE if its time is used up. */
enum weir_action weir_schedule_timed(const struct weir_schedule *schedule, struct weir_schedule_clock *clock,
                                     uint64_t now_ns, enum weir_action *last);

/* What happens between two steps, in this order. The values are flags. */
enum weir_transition {
    WEIR_DO_WARN = 1,    /* the window ended too early and is discarded */
    WEIR_DO_STOP = 2,    /* a window ends */
    WEIR_DO_READY = 4,   /* the ended window is delivered */
    WEIR_DO_PREPARE = 8, /* recording is switched on, and records are discarded */
    WEIR_DO_START = 16,  /* a window begins */
    WEIR_DO_START_STOP =
        32, /* a window begins and ends immediately, so it is empty: the warmup was not followed by a recorded step */
};
/* Returns the flags of enum weir_transition for the change from one step's action to the next step's. */
unsigned weir_transition(enum weir_action from, enum weir_action to);

/* ---- windows ----
 *
 * Records windows of steps and delivers them as traces (files, averages) without blocking the caller. A window contains
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
 * One thread opens the profiler, marks its steps and closes it; all threads are recorded. Only one profiler may be open
 * in a process (otherwise -EBUSY). In a child created by fork(), the parent's profiler does nothing, and the child may
 * open its own. */

/* A recorded window. */
struct weir_profiler_window {
    int64_t number;                /* numbered from 0 */
    int64_t first_step, last_step; /* -1 = recorded without steps */
    struct weir_trace *trace;      /* sorted; valid until the callback returns; NULL if memory ran out */
    const char *path;              /* the trace file; NULL = none was requested, or writing failed (see error) */
    const char *error;             /* NULL = none */
    uint64_t dropped;              /* number of records that did not fit */
    double seconds;                /* time from the start of the first step to the end of the last */
};

struct weir_profiler_config {
    size_t size; /* sizeof this struct in the program; set by weir_profiler_config_default */
    /* If active and active_s are 0, there is no schedule: weir_profiler_start and _stop record without steps. */
    struct weir_schedule schedule;
    bool record_shapes, profile_memory, with_stack;
    /* Record GPUs too. They are recorded from the warmup on, because this takes a while to start. The end of a window
     * waits for the GPUs. If they cannot be recorded, one message states the reason. */
    bool gpu;
    bool nvtx;        /* show steps, ranges and zones in Nsight from open to close, even outside windows */
    bool worker_ops;  /* show stages of threads that are not consumers as operators, not in the category loader_stage */
    bool whole_steps; /* omit the step in progress at stop, which torch includes */
    const char *folder; /* folder for trace files HOST_PID.NS.pt.trace.json.gz (copied); NULL = no files */
    const char *worker; /* replaces HOST_PID in file names (copied) */
    bool uncompressed;  /* write .json instead of .json.gz */
    /* Name of the consumer's wait (copied); NULL = "enumerate(DataLoader)#WeirLoader.__next__". */
    const char *data_wait;
    const char *metadata; /* other top-level members of the trace file as JSON (copied); NULL = none */
    uint64_t bytes_max;   /* memory for the records of one window, 0 = 256 MiB; records that do not fit are dropped and
                             counted */
    /* Called after each window on the profiler's own thread. At most four windows can be queued for this callback; any
     * further window is dropped with a message. */
    void (*on_trace_ready)(void *user, const struct weir_profiler_window *window);
    /* Called with a one-line message, such as a discarded window or a file that cannot be written, on a thread of the
     * profiler or on the caller's thread. */
    void (*on_message)(void *user, const char *line);
    /* Called about once per ms on a thread of the profiler while a window records. Intended for weir_counter. */
    void (*on_sample)(void *user);
    /* Replaces the schedule: returns the action in a step. Called on the caller's thread once per step, in order. When
     * a step begins, the callback must already know whether it is the last step of its window. Steps are numbered from
     * first_step. */
    enum weir_action (*action)(void *user, int64_t step);
    int64_t first_step;
    /* Called on the caller's thread in weir_profiler_step, _stop and _close, after a delivered window has ended and
     * before the next one begins. The callback may call weir_profiler_flush and weir_profiler_take. */
    void (*on_window_end)(void *user);
    void *user;
};

/* Fills a struct of size bytes with the defaults, like weir_loader_config_init. */
void weir_profiler_config_init(struct weir_profiler_config *config, size_t size);
static inline void weir_profiler_config_default(struct weir_profiler_config *config)
{
    weir_profiler_config_init(config, sizeof *config);
}

struct weir_profiler;

/* Opens the profiler. If there is a schedule, step 0 begins. */
int weir_profiler_open(struct weir_profiler **out, const struct weir_profiler_config *config, struct weir_err *err);
/* Ends a step and begins the next one. No effect without a schedule, after weir_profiler_stop, or if profiler is NULL.
 */
void weir_profiler_step(struct weir_profiler *profiler);
/* Manual control: start begins recording (with step 0 if there is a schedule), and stop ends it and delivers the
 * window. */
int weir_profiler_start(struct weir_profiler *profiler, struct weir_err *err);
void weir_profiler_stop(struct weir_profiler *profiler);
/* Waits until all windows that have ended are delivered. */
void weir_profiler_flush(struct weir_profiler *profiler);
/* Returns the trace of the last window, or NULL if there was none. The profiler owns it, and it is valid until the next
 * window ends. Call weir_profiler_flush first. */
struct weir_trace *weir_profiler_last(struct weir_profiler *profiler);
/* Like weir_profiler_last, but transfers ownership of the trace to the caller (weir_trace_free). */
struct weir_trace *weir_profiler_take(struct weir_profiler *profiler);
/* Stops recording, waits for all windows and frees everything. Accepts NULL. */
void weir_profiler_close(struct weir_profiler **profiler);

/* ---- reports ----
 *
 * A report turns snapshots into tables for people and rows for a log: stages, threads, the machine, and the profiler's
 * own cost. Rows are plain data with times in seconds, so that a table read back from a log prints exactly like the
 * original. weir/report.h adds the loader's figures. */

enum weir_lang { WEIR_LANG_EN, WEIR_LANG_ZH };

/* The kind of thread whose calls a row counts. */
enum weir_report_side {
    WEIR_SIDE_WORKER,
    WEIR_SIDE_CONSUMER,
    WEIR_SIDE_HELPER, /* a worker's stage executed by another thread, such as the uploader */
    WEIR_SIDE_GPU,    /* timed by a GPU's clock, between events on the GPU's streams */
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
    double cpu_s;         /* CPU time within self_s; -1 = unknown (weir_stage_cpu_ns) */
    double preempted_s;   /* part of self_s during which the thread was runnable but other threads used the core; -1 =
                             unknown */
    double cpu_over_wall; /* cpu_s / self_s; -1 = unknown */
    double share;         /* fraction of the workers' total work time; -1 = not applicable */
};

/* A thread's time, divided once according to zones and once according to the kernel's accounting. */
struct weir_report_worker {
    char name[16];
    double wall_s, work_s, wait_s, unattributed_s; /* wall = work + wait + unattributed, within 1 % */
    double cpu_s; /* time on a core, by the thread's CPU clock; the sum of the next three members */
    double work_cpu_s, wait_cpu_s, unattributed_cpu_s; /* -1 = unknown, because CPU time was sampled */
    /* Together with cpu_s, these three add up to wall_s: time runnable while its cgroup's quota was used up (an
     * estimate), time runnable while no core was free, and time asleep. -1 = unknown. */
    double throttled_s, core_wait_s, blocked_s;
    double steal_s; /* estimated part of cpu_s stolen by a hypervisor (the machine's average); -1 = unknown */
};

/* The machine, and how much of it other processes used during the time covered. */
struct weir_report_machine {
    bool used;                   /* false: no figures, and nothing is printed */
    int cores, online;           /* numbers of usable and of online cores */
    int part;                    /* this process's share of the usable cores if local ranks share them */
    double quota_cores;          /* CPU time per second that its cgroups allow; 0 = no limit */
    bool throttling;             /* the next three members are known */
    uint64_t periods, throttled; /* number of quota periods, and of those in which the quota was used up */
    double throttled_s;          /* time for which run queues were stopped in these periods, summed over CPUs */
    uint64_t memory_limit_bytes; /* limit of its cgroups; 0 = no limit */
    double others_cores;         /* mean number of usable cores that other processes kept busy; -1 = unknown */
    double steal_cores;          /* mean number of cores stolen by the hypervisor */
    double load_average;         /* one-minute load average when the run began; -1 = unknown */
};

/* A stage has a second row if threads that are not workers executed it too. */
enum { WEIR_REPORT_ROWS = 2 * WEIR_STAGE_MAX };

struct weir_report {
    int n_rows;
    struct weir_report_row rows[WEIR_REPORT_ROWS]; /* in the order of stages; stages of kind LOOP are omitted */
    int n_workers;
    struct weir_report_worker *workers; /* owned by the report */
    /* The thread that consumes the workers' results. An empty name = unknown, or it is one of workers. */
    struct weir_report_worker consumer;
    struct weir_report_machine machine;
    uint64_t zones;         /* number of zones recorded during the time covered */
    uint64_t too_deep;      /* number of zones dropped because they were nested deeper than WEIR_ZONES_DEEP */
    double zone_cost_ns;    /* measured cost of one zone */
    double thread_s;        /* sum of all threads' wall time */
    double profiler_share;  /* zones x cost of a zone / thread time, 0..1 */
    double clock_error_ppm; /* error of the clock's calibration */
    char cpu_sampled[96];   /* reason why CPU time was sampled; empty = it was measured */
};

/* Fills a report, except for its machine, from a snapshot or a difference of snapshots. Returns 0 or -ENOMEM. */
int weir_report_from_snapshot(struct weir_report *report, const struct weir_snapshot *snapshot);
void weir_report_free(struct weir_report *report);
/* Fills a row from calls that weir_stage_stats_add added, such as those timed by a GPU's clock. */
void weir_report_row_fill(struct weir_report_row *row, const struct weir_stage_info *info,
                          const struct weir_stage_stats *stats);

/* Prints a whole report in English. The functions below print parts of it. */
void weir_report_print(FILE *out, const struct weir_report *report);
/* Prints the stage table in English: the report's rows, then the further rows. */
void weir_report_stages_print(FILE *out, const struct weir_report *report, const struct weir_report_row *further,
                              int n_further);
/* Prints the threads' time, one line per thread. */
void weir_report_threads_print(FILE *out, const struct weir_report *report);
/* Prints the profiler's own cost on one line. */
void weir_report_cost_print(FILE *out, const struct weir_report *report);

/* Writes the members "stages", "workers" (and "consumer") and "machine" into the open object. */
void weir_report_json(struct weir_json *json, const struct weir_report *report);
/* Writes the member "profiler" into the open object. */
void weir_report_cost_json(struct weir_json *json, const struct weir_report *report);
void weir_report_row_json(struct weir_json *json, const struct weir_report_row *row);

/* Returns "worker", "consumer", "helper" or "gpu". */
const char *weir_report_side_name(enum weir_report_side side);
/* Writes the name of the row's stage, with " (helper)" or " (gpu)" appended. */
void weir_report_row_name(const struct weir_report_row *row, char name[WEIR_REPORT_NAME]);
/* Returns "work", "inclusive", "span", "wait" or "loop". */
const char *weir_stage_kind_name(enum weir_stage_kind kind);
/* Writes a time as one word for awk and sort, such as "12.3us". Returns text. */
const char *weir_report_time(char text[24], double seconds);

#ifdef __cplusplus
}
#endif

#endif
