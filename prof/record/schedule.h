/* schedule.h: which steps of a loop are recorded: torch.profiler's schedule() and the state machine behind it.
 *
 * Source: pytorch torch/profiler/profiler.py (schedule, ProfilerAction, profile.action_map). */
#ifndef WEIR_PROF_RECORD_SCHEDULE_H
#define WEIR_PROF_RECORD_SCHEDULE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif
