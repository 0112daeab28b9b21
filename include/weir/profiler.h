/* profiler.h: turns snapshots into the tables people read, and into rows for a log: registered stages, threads, the
 * machine, and what the profiler itself has cost.
 *
 * The rows are plain data (seconds), so that a table read back from a log prints exactly like the live one. Who has
 * figures of its own beside these (the loader: weir/report.h) prints its lines between them. */
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
    int64_t repeat;               /* cycles; 0 = for ever */
    int64_t skip_first;           /* steps before the first cycle */
    int64_t skip_first_wait;      /* not 0: the first cycle has no wait */
    double wait_s, active_s;      /* > 0: in place of wait and active */
};

enum weir_action {
    WEIR_ACTION_NONE,
    WEIR_ACTION_WARMUP, /* recorded and thrown away */
    WEIR_ACTION_RECORD,
    WEIR_ACTION_RECORD_AND_SAVE, /* the last step of a window */
    WEIR_ACTION_EXIT,            /* as the next action: there is no next step */
};

/* 0, or -EINVAL with a line that says what is wrong. */
int weir_schedule_check(const struct weir_schedule *schedule, struct weir_err *err);
/* Reads "wait=1,warmup=1,active=3,repeat=1": numbers of steps, and for wait and active times, too (500ms, 2s). Names
 * left out are 0. */
int weir_schedule_parse(struct weir_schedule *schedule, const char *text, struct weir_err *err);

/* What to do in a step, counted from 0. Of schedules in steps. */
enum weir_action weir_schedule_action(const struct weir_schedule *schedule, int64_t step);

/* Where a schedule with times is in its cycles; all zero at first. */
struct weir_schedule_clock {
    int64_t cycles;           /* whole ones so far */
    int64_t steps;            /* so far */
    int64_t in_part;          /* steps of this part so far */
    uint64_t part_ns;         /* when it began */
    enum weir_action part;    /* NONE: the wait, WARMUP, RECORD */
    enum weir_action current; /* of the step that is going on */
};
/* What to do in the step that begins at now_ns; *last: what the step that ended was, which is known only now: a
 * RECORD whose time is over becomes RECORD_AND_SAVE. */
enum weir_action weir_schedule_timed(const struct weir_schedule *schedule, struct weir_schedule_clock *clock,
                                     uint64_t now_ns, enum weir_action *last);

/* What happens between two steps, in this order. */
enum weir_transition {
    WEIR_DO_WARN = 1,        /* the window ends early: it is thrown away */
    WEIR_DO_STOP = 2,        /* a window ends */
    WEIR_DO_READY = 4,       /* and is handed out */
    WEIR_DO_PREPARE = 8,     /* recording is switched on, what comes is thrown away */
    WEIR_DO_START = 16,      /* a window begins */
    WEIR_DO_START_STOP = 32, /* a window begins and ends at once, nothing in it: after a warmup without a record */
};
/* Bits of enum weir_transition. */
unsigned weir_transition(enum weir_action from, enum weir_action to);

/* Recorded windows: when to record (schedule.h), what becomes of it (trace files, averages), all off the
 * caller's way. What is recorded is ranges and zones (recorder.h).
 *
 *     struct weir_profiler_config config;
 *     weir_profiler_config_default(&config);
 *     config.schedule = (struct weir_schedule){.wait = 1, .warmup = 1, .active = 3, .repeat = 1};
 *     config.folder = "runs/a";
 *     weir_profiler_open(&profiler, &config, &err);
 *     for (...) { train(); weir_profiler_step(profiler); }
 *     weir_profiler_close(&profiler);
 *
 * One thread opens, steps and closes; what other threads do is recorded, too. Profilers may follow each other in one
 * process; two at once are refused (-EBUSY). In a child of fork() the profiler of the parent does nothing, and the
 * child may open its own. */

/* A window that was recorded. */
struct weir_profiler_window {
    int64_t number;                /* from 0 */
    int64_t first_step, last_step; /* -1: recorded without steps */
    struct weir_trace *trace;      /* sorted; lent until the callback returns; NULL when memory was short */
    const char *path;              /* the file that was written; NULL: none was to be, or error says why not */
    const char *error;             /* NULL: none */
    uint64_t dropped;              /* records that found no room */
    double seconds;                /* from its first step's beginning to its last one's end */
};

/* Later versions only append. */
struct weir_profiler_config {
    size_t size;                   /* of this struct as the program knows it; weir_profiler_config_default sets it */
    struct weir_schedule schedule; /* active and active_s 0: none; recording is between start and stop, without steps */
    bool record_shapes, profile_memory, with_stack;
    bool gpu;              /* what GPUs do as well: from the warmup on, as starting takes a while. The end of a window
                            * waits for the GPUs. Where it cannot be had, a message says why, once */
    bool nvtx;             /* steps, ranges and zones are shown to Nsight from open to close, windows or not */
    bool worker_ops;       /* stages of threads that are no consumers as operators, in place of category loader_stage */
    bool whole_steps;      /* the step that is going on at the stop is left out; torch keeps it */
    const char *folder;    /* for trace files HOST_PID.NS.pt.trace.json.gz (copied); NULL = none are written */
    const char *worker;    /* in place of HOST_PID (copied) */
    bool uncompressed;     /* .json in place of .json.gz */
    const char *data_wait; /* name of the consumer's wait; "enumerate(DataLoader)#WeirLoader.__next__" (copied) */
    const char *metadata;  /* further members of the trace file as JSON text (copied); NULL = none */
    uint64_t bytes_max;    /* records of one window; 0 = 256 MiB; more are dropped and counted */
    /* After each window, from the profiler's own thread; at most four windows wait for it, more are
     * dropped with a message. */
    void (*on_trace_ready)(void *user, const struct weir_profiler_window *window);
    /* One line: a window thrown away, a file that cannot be written. From any thread of the profiler, or the caller's.
     */
    void (*on_message)(void *user, const char *line);
    /* About every ms while a window records, from a thread of the profiler: a place for weir_counter. */
    void (*on_sample)(void *user);
    /* In place of the schedule: what to do in a step. On the caller's thread, for each step once, in order; which step
     * is the last one of a window is known when it begins. The first one has the number first_step. */
    enum weir_action (*action)(void *user, int64_t step);
    int64_t first_step;
    /* On the caller's thread, in step, stop and close: a window that is handed out has ended, and the next one has not
     * begun. It may flush and take. */
    void (*on_window_end)(void *user);
    void *user;
};

/* The defaults of a struct of size bytes, which weir_profiler_config_default calls (as weir_loader_config_init). */
void weir_profiler_config_init(struct weir_profiler_config *config, size_t size);
static inline void weir_profiler_config_default(struct weir_profiler_config *config)
{
    weir_profiler_config_init(config, sizeof *config);
}

struct weir_profiler;

/* With a schedule step 0 begins here. */
int weir_profiler_open(struct weir_profiler **out, const struct weir_profiler_config *config, struct weir_err *err);
/* Ends a step and begins the next; nothing without a schedule, after stop, or when profiler is NULL. */
void weir_profiler_step(struct weir_profiler *profiler);
/* By hand: begins recording at once (with a schedule: its step 0), and ends it, handing out what is there. */
int weir_profiler_start(struct weir_profiler *profiler, struct weir_err *err);
void weir_profiler_stop(struct weir_profiler *profiler);
/* Waits until all windows that ended were handed out. */
void weir_profiler_flush(struct weir_profiler *profiler);
/* The trace of the last window, NULL before the first; the profiler's, valid until the next window ends (flush first).
 */
struct weir_trace *weir_profiler_last(struct weir_profiler *profiler);
/* The same, and it is the caller's from then on (weir_trace_free): there is none any more until the next window. */
struct weir_trace *weir_profiler_take(struct weir_profiler *profiler);
/* Stops, waits for all windows, frees. Accepts NULL. */
void weir_profiler_close(struct weir_profiler **profiler);

enum weir_lang { WEIR_LANG_EN, WEIR_LANG_ZH };

/* Who did what a row counts. */
enum weir_report_side {
    WEIR_SIDE_WORKER,
    WEIR_SIDE_CONSUMER,
    WEIR_SIDE_HELPER, /* a stage of the workers', but by threads that are none: those that feed a GPU */
    WEIR_SIDE_GPU,    /* by a GPU's clock: between events on its streams */
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
    double cpu_s;         /* CPU time of self_s; -1 = not known (weir_stage_cpu_ns) */
    double preempted_s;   /* of self_s, ready to run while others had the core; -1 = not known */
    double cpu_over_wall; /* cpu_s over self_s; -1 = not known */
    double share;         /* 0..1 of the workers' work, -1 where shares do not apply */
};

/* A thread's time, once by what it did and once by what the kernel did with it. */
struct weir_report_worker {
    char name[16];
    double wall_s, work_s, wait_s, unattributed_s;     /* work + wait + unattributed = wall within 1 % */
    double cpu_s;                                      /* on a core, by its CPU clock: the sum of the next three */
    double work_cpu_s, wait_cpu_s, unattributed_cpu_s; /* -1 = not known: CPU time was sampled */
    double throttled_s, core_wait_s, blocked_s; /* with cpu_s = wall; -1 = not known: ready to run, but its cgroup had
                                                   used up its quota (its part of it, estimated); ready to run, and
                                                   others had the cores; asleep */
    double steal_s; /* of cpu_s, what a hypervisor is likely to have taken: the machine's part; -1 = not known */
};

/* The machine that the run had, and what others did on it in the time covered. */
struct weir_report_machine {
    bool used;                   /* else nothing is printed */
    int cores, online;           /* usable, of so many that are on */
    int part;                    /* of the usable ones this process's, where local ranks share them */
    double quota_cores;          /* CPU time per second that its cgroups allow; 0 = no limit */
    bool throttling;             /* known: */
    uint64_t periods, throttled; /* of the quota, and of these so many in which it was used up */
    double throttled_s;          /* then held back, summed over CPUs */
    uint64_t memory_limit_bytes; /* of its cgroups; 0 = none */
    double others_cores; /* of the CPUs that the process may use, busy with other processes, mean; -1 = not known */
    double steal_cores;  /* and taken by the hypervisor for other guests */
    double load_average; /* of a minute, when the run began; -1 = not known */
};

/* A stage has a second row when threads that are not workers did of it, too. */
enum { WEIR_REPORT_ROWS = 2 * WEIR_STAGE_MAX };

struct weir_report {
    int n_rows;
    struct weir_report_row rows[WEIR_REPORT_ROWS]; /* in stage order, stages of kind LOOP left out */
    int n_workers;
    struct weir_report_worker *workers; /* owned */
    struct weir_report_worker consumer; /* likewise of the thread that takes what workers make; no name = it is not
                                           known, or it is the one in workers */
    struct weir_report_machine machine;
    uint64_t zones;         /* zones recorded in this time */
    uint64_t too_deep;      /* zones dropped: nested deeper than WEIR_ZONES_DEEP */
    double zone_cost_ns;    /* measured cost of one */
    double thread_s;        /* sum of the threads' wall time */
    double profiler_share;  /* zones x cost / thread time, 0..1 */
    double clock_error_ppm; /* calibration error */
    char cpu_sampled[96];   /* why CPU time was sampled and not measured; empty = it was measured */
};

/* Fills all but the machine from a snapshot (a difference or a whole one). Returns 0 or -ENOMEM. */
int weir_report_from_snapshot(struct weir_report *report, const struct weir_snapshot *snapshot);
void weir_report_free(struct weir_report *report);
/* A row of what was timed: by a GPU's clock, say, in calls that weir_stage_stats_add has added up. */
void weir_report_row_fill(struct weir_report_row *row, const struct weir_stage_info *info,
                          const struct weir_stage_stats *stats);

/* All of a report, as a program that uses the profiler alone has it: the parts below, in English. */
void weir_report_print(FILE *out, const struct weir_report *report);
/* The stage table, English; further rows follow those of the report. */
void weir_report_stages_print(FILE *out, const struct weir_report *report, const struct weir_report_row *further,
                              int n_further);
/* Where the threads' time went, a line each. */
void weir_report_threads_print(FILE *out, const struct weir_report *report);
/* What the profiler itself has cost, a line. */
void weir_report_cost_print(FILE *out, const struct weir_report *report);

/* Into an object that is open in json: "stages", "workers" (and "consumer"), "machine". */
void weir_report_json(struct weir_json *json, const struct weir_report *report);
/* And "profiler". */
void weir_report_cost_json(struct weir_json *json, const struct weir_report *report);
void weir_report_row_json(struct weir_json *json, const struct weir_report_row *row);

/* "worker", "consumer", "helper", "gpu". */
const char *weir_report_side_name(enum weir_report_side side);
/* The stage's name, and " (helper)" or " (gpu)" behind it: of rows that are not told apart otherwise. */
void weir_report_row_name(const struct weir_report_row *row, char name[WEIR_REPORT_NAME]);
/* "work", "inclusive", "span", "wait", "loop". */
const char *weir_stage_kind_name(enum weir_stage_kind kind);
/* "12.3us": one word, so that awk and sort can take a table apart. */
const char *weir_report_time(char text[24], double seconds);

#ifdef __cplusplus
}
#endif

#endif
