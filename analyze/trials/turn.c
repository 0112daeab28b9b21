#include "analyze/trials/turn.h"
#include "analyze/logs/log_read.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Records that a trial must print. */
struct seen {
    bool run, measured, stages;
};

static void add_rows(struct weir_turn *turn, const struct weir_report_row *rows, int n)
{
    for (int i = 0; i < n && turn->n_stages < WEIR_TURN_STAGES; i++)
        turn->stages[turn->n_stages++] = rows[i];
}

static void take_report(struct weir_turn *turn, const struct weir_loader_report *report)
{
    turn->cpu_s = report->cpu_s;
    turn->read_bytes = (double)report->read_bytes;
    turn->others_cores = report->prof.machine.others_cores;
    turn->workers_wall_s = 0;
    for (int i = 0; i < report->prof.n_workers; i++)
        turn->workers_wall_s += report->prof.workers[i].wall_s;
    turn->n_stages = 0;
    add_rows(turn, report->prof.rows, report->prof.n_rows);
    add_rows(turn, report->gpu.rows, report->gpu.n_rows);
}

static void take_record(struct weir_turn *turn, struct seen *seen, const struct weir_log_record *record)
{
    if (record->type == WEIR_LOG_RUN) {
        turn->used = record->used;
        seen->run = record->used.known;
    } else if (record->type == WEIR_LOG_MEASURED) {
        turn->measured = record->measured;
        seen->measured = true;
    } else if (record->type == WEIR_LOG_STAGES) {
        take_report(turn, &record->report);
        seen->stages = true;
    }
}

static int check(struct weir_turn *turn, const struct seen *seen, struct weir_err *err)
{
    const struct weir_measured_line *m = &turn->measured;
    if (!seen->run || !seen->measured || !seen->stages)
        return weir_err_set(err, -EBADMSG, "its output has no line \"%s\"",
                            !seen->run       ? "run"
                            : seen->measured ? "stages"
                                             : "measured");
    if (m->seconds <= 0 || m->images == 0 || m->images_per_s < 0 || m->samples_per_s < 0)
        return weir_err_set(err, -EBADMSG, "it ended before anything was measured");
    turn->wait_p99_s = -1;
    for (int i = 0; i < turn->n_stages; i++)
        if (strncmp(turn->stages[i].name, "08_", 3) == 0)
            turn->wait_p99_s = fmax(turn->wait_p99_s, turn->stages[i].p99_s);
    return 0;
}

int weir_turn_parse(struct weir_turn *turn, const char *text, size_t length, struct weir_err *err)
{
    struct weir_log_record record = {0};
    struct weir_lines lines;
    struct seen seen = {false, false, false};
    *turn = (struct weir_turn){.others_cores = -1};
    FILE *in = length > 0 ? fmemopen((void *)(uintptr_t)text, length, "r") : NULL;
    if (!in)
        return length > 0 ? weir_err_set(err, -ENOMEM, "out of memory") : check(turn, &seen, err);
    int rc;
    weir_lines_open(&lines, in);
    while ((rc = weir_log_next(&lines, &record, err)) == WEIR_LOG_RECORD)
        take_record(turn, &seen, &record);
    weir_lines_close(&lines);
    weir_log_record_clear(&record);
    fclose(in);
    return rc < 0 ? rc : check(turn, &seen, err);
}

/* ---- what bounded it ---- */

static bool is(const struct weir_report_row *stage, const char *number)
{
    return strncmp(stage->name, number, strlen(number)) == 0;
}

/* 09_wait_for_slot is a worker that is ahead, 09b one that has nothing to do: neither is what the worker is held up by.
 */
static bool is_idle(const struct weir_report_row *stage)
{
    return is(stage, "09_") || is(stage, "09b_");
}

static bool is_worker(const struct weir_report_row *stage)
{
    return stage->side == WEIR_SIDE_WORKER && (stage->kind == WEIR_KIND_WORK || stage->kind == WEIR_KIND_WAIT);
}

static bool is_consumer(const struct weir_report_row *stage)
{
    bool own = is(stage, "24_") || is(stage, "25_"); /* checksums and reports of weir run itself */
    return stage->side == WEIR_SIDE_CONSUMER && !own && (stage->kind == WEIR_KIND_WORK || is(stage, "08b_"));
}

const struct weir_report_row *weir_turn_bound(const struct weir_turn *turn, double *part)
{
    const struct weir_report_row *busiest = NULL, *taking = NULL;
    double ahead_s = 0, all_s = 0;
    for (int i = 0; i < turn->n_stages; i++) {
        const struct weir_report_row *stage = &turn->stages[i];
        if (is_worker(stage))
            all_s += stage->self_s;
        if (is_worker(stage) && is(stage, "09_"))
            ahead_s += stage->self_s;
        if (is_worker(stage) && !is_idle(stage) && (!busiest || stage->self_s > busiest->self_s))
            busiest = stage;
        if (is_consumer(stage) && (!taking || stage->self_s > taking->self_s))
            taking = stage;
    }
    all_s = turn->workers_wall_s > all_s ? turn->workers_wall_s : all_s;
    if (taking && all_s > 0 && ahead_s > all_s / 2) { /* the workers wait for the consumer */
        *part = turn->measured.seconds > 0 ? fmin(taking->self_s / turn->measured.seconds, 1) : 0;
        return taking;
    }
    *part = busiest && all_s > 0 ? busiest->self_s / all_s : 0;
    return busiest;
}
