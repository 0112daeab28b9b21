/* profiler.h: recorded windows: when to record (schedule.h), what becomes of it (trace files, averages), all off the
 * caller's way. What is recorded is recording.h's ranges and recorder.h's zones.
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
#ifndef WEIR_PROF_RECORD_PROFILER_H
#define WEIR_PROF_RECORD_PROFILER_H

#include "prof/record/recording.h"
#include "prof/record/schedule.h"
#include "prof/trace/events.h"

#ifdef __cplusplus
extern "C" {
#endif

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

struct weir_profiler_config {
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

void weir_profiler_config_default(struct weir_profiler_config *config);

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

#ifdef __cplusplus
}
#endif

#endif
