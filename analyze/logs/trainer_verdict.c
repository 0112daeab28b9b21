/* What a training program's log shows about the wait for data. */
#include "analyze/causes/diagnosis.h"
#include "analyze/logs/trainer.h"

#include <math.h>

#define LIMITS_APART 0.03 /* a larger difference between the limits of the wait is printed */

enum { FIRST_LEFT_OUT_FROM = 3 }; /* rows from which the first one, with the start of the workers, does not count */

/* Adds the rows from `first` on. whole: the rows have whole steps. */
static void add_rows(const struct weir_trainer_log *log, struct weir_trainer_wait *wait, bool *whole)
{
    *whole = false;
    for (size_t i = wait->first; i < log->n_rows; i++) {
        const struct weir_trainer_row *row = &log->rows[i];
        double wait_s = weir_trainer_sum(log->trainer, row, WEIR_TRAINER_WAIT),
               step_s = weir_trainer_sum(log->trainer, row, WEIR_TRAINER_STEP);
        double work_s = weir_trainer_sum(log->trainer, row, WEIR_TRAINER_WORK);
        if (isnan(wait_s) || (isnan(step_s) && isnan(work_s)))
            continue;
        *whole |= !isnan(step_s);
        wait->wait_s += wait_s;
        wait->step_s += isnan(step_s) ? wait_s + work_s : step_s;
        wait->n_rows++;
    }
}

void weir_trainer_wait_find(const struct weir_trainer_log *log, struct weir_trainer_wait *wait)
{
    double error_s = log->rounding_s;
    bool whole;
    *wait = (struct weir_trainer_wait){.fraction = -1, .least = -1, .most = -1};
    wait->first = log->trainer->series && log->n_rows >= FIRST_LEFT_OUT_FROM ? 1 : 0;
    add_rows(log, wait, &whole);
    if (wait->n_rows > 0) {
        wait->wait_s /= (double)wait->n_rows;
        wait->step_s /= (double)wait->n_rows;
        wait->recorded = wait->step_s > (whole ? error_s : 0);
    }
    if (wait->recorded) {
        double step_error_s = whole ? error_s : 0;
        wait->fraction = wait->wait_s / wait->step_s;
        wait->least = fmax(wait->wait_s - error_s, 0) / (wait->step_s + step_error_s);
        wait->most = (wait->wait_s + error_s) / (wait->step_s - step_error_s);
    }
    if (log->trainer->wait && log->n_rows > 0)
        log->trainer->wait(log, wait);
    wait->fraction = fmin(wait->fraction, 1);
    wait->most = fmin(wait->most, 1);
}

/* Returns whether the wait's limits allow no verdict. */
static bool is_doubtful(const struct weir_trainer_wait *wait)
{
    return weir_data_bound(wait->least) != weir_data_bound(wait->most);
}

static enum weir_data_bound bound_of(const struct weir_trainer_wait *wait)
{
    return wait->recorded && !is_doubtful(wait) ? weir_data_bound(wait->fraction) : WEIR_BOUND_UNKNOWN;
}

static void diagnose(struct weir_diagnosis *found, const struct weir_trainer_wait *wait,
                     const struct weir_trainer_log *log)
{
    bool apart = wait->most - wait->least > LIMITS_APART, wide = apart || wait->wait_s < log->rounding_s;
    char least[48] = "", mean[128] = "";
    *found =
        (struct weir_diagnosis){.bound = bound_of(wait), .wait = wide ? wait->most : wait->fraction, .at_most = wide};
    if (!wait->recorded)
        snprintf(mean, sizeof mean, "This log does not record the wait for data.");
    else if (is_doubtful(wait))
        snprintf(mean, sizeof mean,
                 "Cannot tell whether training waits for data: the log allows %.1f to %.1f %% of the time.",
                 100 * wait->least, 100 * wait->most);
    else if (wide && wait->least > 0)
        snprintf(least, sizeof least, "It waited at least %.0f %%.", 100 * wait->least);
    if (found->bound != WEIR_BOUND_UNKNOWN && !apart)
        snprintf(mean, sizeof mean, "%sThe mean %s took %.4gs, the mean wait %.4gs.", *least ? " " : "",
                 log->trainer->each ? log->trainer->each : "step", wait->step_s, wait->wait_s);
    snprintf(found->remark, sizeof found->remark, "%s%s", least, mean);
}

static void print_more(FILE *out, const void *user)
{
    const struct weir_trainer_log *log = user;
    struct weir_trainer_wait wait;
    weir_trainer_wait_find(log, &wait);
    fprintf(out, "  %s\n", log->trainer->means);
    if (wait.first > 0 && wait.recorded)
        fputs("  the first line, which includes the start of the workers, does not count\n", out);
    if (log->trainer->remark)
        log->trainer->remark(out, log);
    if (wait.recorded)
        fprintf(out, "  such a log does not show why training waits; `%s` does\n", log->trainer->watch);
    else
        fprintf(out, "  to measure it: `%s`, or loader = weir.watch(loader)\n", log->trainer->watch);
}

void weir_trainer_verdict_print(FILE *out, const struct weir_trainer_log *log)
{
    struct weir_trainer_wait wait;
    struct weir_diagnosis found;
    weir_trainer_wait_find(log, &wait);
    diagnose(&found, &wait, log);
    weir_diagnosis_print(out, &found, print_more, log);
}

void weir_trainer_verdict_json(struct weir_json *json, const struct weir_trainer_log *log)
{
    struct weir_trainer_wait wait;
    weir_trainer_wait_find(log, &wait);
    weir_json_object(json, "verdict");
    weir_json_text(json, "data_bound", weir_data_bound_name(bound_of(&wait)));
    weir_json_known(json, "data_wait_fraction", wait.recorded ? wait.fraction : -1);
    weir_json_known(json, "data_wait_at_least", wait.recorded ? wait.least : -1);
    weir_json_known(json, "data_wait_at_most", wait.recorded ? wait.most : -1);
    weir_json_known(json, "wait_s", wait.recorded ? wait.wait_s : -1);
    weir_json_known(json, "step_s", wait.recorded ? wait.step_s : -1);
    weir_json_end(json, '}');
}

static void json_rows(struct weir_json *json, const struct weir_trainer_log *log)
{
    weir_json_array(json, "rows");
    for (size_t i = 0; i < log->n_rows; i++) {
        const struct weir_trainer_row *row = &log->rows[i];
        weir_json_object(json, NULL);
        weir_json_uint(json, "line", row->line);
        weir_json_text(json, "label", row->label);
        for (int c = 0; c < WEIR_TRAINER_COLUMNS && log->trainer->columns[c].name; c++)
            if (isnan(row->values[c]))
                weir_json_null(json, log->trainer->columns[c].name);
            else
                weir_json_double(json, log->trainer->columns[c].name, row->values[c]);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

void weir_trainer_json(struct weir_json *json, const struct weir_trainer_log *log)
{
    if (!log) {
        weir_json_null(json, "format");
        return;
    }
    weir_json_object(json, "format");
    weir_json_text(json, "name", log->trainer->name);
    weir_json_known(json, "steps_per_row", log->steps_per_row > 0 ? log->steps_per_row : -1);
    weir_json_known(json, "ranks", log->ranks > 0 ? log->ranks : -1);
    json_rows(json, log);
    weir_json_end(json, '}');
}
