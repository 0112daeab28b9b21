/* The schedule and its state machine, tested transition by transition. */
#include "weir/profiler.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Actions of torch.profiler's schedule, one letter per step: n = none, w = warmup, r = record, s = record and save. */
static const struct row {
    const char *text, *actions;
} rows[] = {
    {"active=1", "ssssss"},
    {"active=3", "rrsrrsrrs"},
    {"wait=1,warmup=1,active=2,repeat=1,skip_first=1", "nnwrsnnnnnn"},
    {"wait=1,warmup=1,active=3,repeat=1", "nwrrsnnnnnnnnn"},
    {"wait=1,warmup=1,active=3,repeat=2", "nwrrsnwrrsnnnnn"},
    {"wait=2,active=1", "nnsnnsnns"},
    {"warmup=2,active=1", "wwswwsww"},
    {"wait=3,warmup=1,active=1,skip_first_wait=1,repeat=2", "wsnnnwsnnnn"},
    {"wait=2,active=2,skip_first=3,skip_first_wait=1", "nnnrsnnrsnnrs"},
    {"wait=0,warmup=0,active=2,repeat=3", "rsrsrsnnn"},
};

static char letter(enum weir_action action)
{
    return "nwrse"[action];
}

Test(schedule, actions_by_step)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_schedule schedule;
        struct weir_err err = WEIR_ERR_NONE;
        cr_assert_eq(weir_schedule_parse(&schedule, rows[i].text, &err), 0, "%s", err.text);
        for (int64_t step = 0; rows[i].actions[step]; step++)
            cr_assert_eq(letter(weir_schedule_action(&schedule, step)), rows[i].actions[step], "%s: step %d",
                         rows[i].text, (int)step);
    }
}

/* The state machine with times must give the same actions for these schedules. The action of a step may be known only
 * when the step ends. */
Test(schedule, timed_machine_counts_steps_alike)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_schedule schedule;
        struct weir_schedule_clock clock = {0};
        weir_schedule_parse(&schedule, rows[i].text, NULL);
        char seen[32] = "";
        for (size_t step = 0; rows[i].actions[step]; step++) {
            enum weir_action last;
            char now = letter(weir_schedule_timed(&schedule, &clock, step, &last));
            if (step)
                seen[step - 1] = letter(last);
            seen[step] = now;
        }
        size_t n = strlen(seen);
        if (rows[i].actions[n - 1] == 's')
            seen[n - 1] = seen[n - 1] == 'r' ? 's' : seen[n - 1]; /* the last step has not ended yet */
        cr_assert_str_eq(seen, rows[i].actions, "%s", rows[i].text);
    }
}

Test(schedule, times)
{
    struct weir_schedule schedule;
    struct weir_schedule_clock clock = {0};
    enum weir_action last;
    cr_assert_eq(weir_schedule_parse(&schedule, "wait=100ms,warmup=1,active=0.2s,repeat=2", NULL), 0);
    cr_assert_float_eq(schedule.wait_s, 0.1, 1e-12);
    cr_assert_float_eq(schedule.active_s, 0.2, 1e-12);
    char seen[64] = "";
    size_t n = 0;
    for (uint64_t ms = 0; ms < 1000; ms += 50) { /* steps of 50 ms */
        char now = letter(weir_schedule_timed(&schedule, &clock, ms * 1000000, &last));
        if (n)
            seen[n - 1] = letter(last);
        seen[n++] = now;
    }
    cr_assert_str_eq(seen, "nnwrrrsnnwrrrsnnnnnn");
}

Test(schedule, a_step_longer_than_the_time_is_recorded_once)
{
    struct weir_schedule schedule;
    struct weir_schedule_clock clock = {0};
    enum weir_action last;
    weir_schedule_parse(&schedule, "active=10ms,repeat=2", NULL);
    cr_assert_eq(weir_schedule_timed(&schedule, &clock, 0, &last), WEIR_ACTION_RECORD);
    cr_assert_eq(weir_schedule_timed(&schedule, &clock, 1000000000, &last), WEIR_ACTION_RECORD);
    cr_assert_eq(last, WEIR_ACTION_RECORD_AND_SAVE);
    cr_assert_eq(weir_schedule_timed(&schedule, &clock, 2000000000, &last), WEIR_ACTION_NONE);
    cr_assert_eq(last, WEIR_ACTION_RECORD_AND_SAVE);
}

Test(schedule, bad_ones)
{
    static const char *const bad[] = {
        "",
        "active",
        "active=",
        "active=0",
        "active=-1",
        "active=x",
        "active=3x",
        "wait=1",
        "active=1,wait=-1",
        "active=1,warmup=5ms",
        "active=1,repeat=2s",
        "active=1,other=2",
        "active=1,",
        "active=99999999999999999999",
        "active=0ms",
        "active=1e300s",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct weir_schedule schedule;
        struct weir_err err = WEIR_ERR_NONE;
        cr_assert_eq(weir_schedule_parse(&schedule, bad[i], &err), -EINVAL, "'%s' is accepted", bad[i]);
        cr_assert(*err.text);
    }
}

/* All rows of torch.profiler's action_map. */
Test(schedule, transitions)
{
    const enum weir_action N = WEIR_ACTION_NONE, W = WEIR_ACTION_WARMUP, R = WEIR_ACTION_RECORD;
    const enum weir_action S = WEIR_ACTION_RECORD_AND_SAVE, X = WEIR_ACTION_EXIT;
    const struct {
        enum weir_action from, to;
        unsigned todo;
    } table[] = {
        {N, N, 0},
        {N, W, WEIR_DO_PREPARE},
        {N, R, WEIR_DO_PREPARE | WEIR_DO_START},
        {N, S, WEIR_DO_PREPARE | WEIR_DO_START},
        {W, N, WEIR_DO_WARN | WEIR_DO_START_STOP},
        {W, W, 0},
        {W, R, WEIR_DO_START},
        {W, S, WEIR_DO_START},
        {R, N, WEIR_DO_WARN | WEIR_DO_STOP},
        {R, W, WEIR_DO_WARN | WEIR_DO_STOP},
        {R, R, 0},
        {R, S, 0},
        {S, N, WEIR_DO_STOP | WEIR_DO_READY},
        {S, W, WEIR_DO_STOP | WEIR_DO_READY | WEIR_DO_PREPARE},
        {S, R, WEIR_DO_STOP | WEIR_DO_READY | WEIR_DO_PREPARE | WEIR_DO_START},
        {S, S, WEIR_DO_STOP | WEIR_DO_READY | WEIR_DO_PREPARE | WEIR_DO_START},
        {N, X, 0},
        {W, X, WEIR_DO_START_STOP},
        {R, X, WEIR_DO_STOP | WEIR_DO_READY},
        {S, X, WEIR_DO_STOP | WEIR_DO_READY},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        cr_assert_eq(weir_transition(table[i].from, table[i].to), table[i].todo, "%d to %d", table[i].from,
                     table[i].to);
}
