/* report.h: turns snapshots into the tables people read, and into rows for a log: registered stages, threads, the
 * machine, and what the profiler itself has cost.
 *
 * The rows are plain data (seconds), so that a table read back from a log prints exactly like the live one. Who has
 * figures of its own beside these (the loader: pipeline/report/loader_report.h) prints its lines between them. */
#ifndef WEIR_PROF_REPORT_REPORT_H
#define WEIR_PROF_REPORT_REPORT_H

#include "base/json.h"
#include "prof/record/recorder.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    double wall_s, work_s, wait_s, other_s;     /* work + wait + other = wall within 1 % */
    double cpu_s;                               /* on a core, by its CPU clock: the sum of the next three */
    double work_cpu_s, wait_cpu_s, other_cpu_s; /* -1 = not known: CPU time was sampled */
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
void weir_report_threads_print(FILE *out, const struct weir_report *report, enum weir_lang lang);
/* What the profiler itself has cost, a line. */
void weir_report_cost_print(FILE *out, const struct weir_report *report, enum weir_lang lang);

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
