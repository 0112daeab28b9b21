/* Step lines with the wait for data: LeRobot, detectron2, and MMEngine with the many programs that print alike. */
#include "analyze/logs/log_words.h"
#include "analyze/logs/trainer.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads each column's value from a line of "name: value" fields. */
static void read_fields(const struct weir_trainer *trainer, struct weir_trainer_row *row, const char *line)
{
    for (int i = 0; i < WEIR_TRAINER_COLUMNS && trainer->columns[i].name; i++)
        row->values[i] = weir_trainer_number(line, trainer->columns[i].name);
}

/* Labels the last row with the number of its step. Abbreviated numbers ("1K") are no number of steps. */
static void label_from(struct weir_trainer_log *log, const char *text)
{
    double step;
    size_t n = text ? weir_trainer_decimal(text, &step) : 0;
    if (text)
        weir_trainer_label(&log->rows[log->n_rows - 1], text, strcspn(text, " ,"));
    if (n > 0 && !isalpha((unsigned char)text[n]))
        weir_trainer_step(log, step);
}

/* ---- LeRobot: step:1K smpl:8K ep:10 epch:1.25 loss:0.5 grdn:1.2 lr:1.0e-05 updt_s:0.120 data_s:0.004 smp/s:66 ---- */

static bool is_lerobot(const struct weir_trainer_log *log, const char *line)
{
    (void)log;
    return (strstr(line, "updt_s:") && strstr(line, "data_s:")) || strstr(line, "Effective batch size: ") ||
           strstr(line, "'log_freq': ");
}

/* Reads "Effective batch size: 8 x 2 = 16" and the configuration's "'log_freq': 200". */
static void read_setup(struct weir_trainer_log *log, const char *line)
{
    const char *batch = strstr(line, "Effective batch size: "), *times = batch ? strstr(batch, " x ") : NULL;
    const char *every = strstr(line, "'log_freq': ");
    double value;
    if (times && weir_trainer_decimal(times + strlen(" x "), &value) > 0 && value >= 1 && value < 1e6)
        log->ranks = (int)value;
    if (every && weir_trainer_decimal(every + strlen("'log_freq': "), &value) > 0 && value >= 1 && value < 1e9)
        log->steps_per_row = floor(value);
}

static int parse_lerobot(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    struct weir_trainer_row *row;
    if (!strstr(line, "updt_s:")) {
        read_setup(log, line);
        return 0;
    }
    if (isnan(weir_trainer_number(line, "updt_s")) || isnan(weir_trainer_number(line, "data_s")))
        return 0;
    int code = weir_trainer_add(log, number, &row);
    if (code < 0 || !row)
        return code;
    read_fields(log->trainer, row, line);
    label_from(log, weir_trainer_field(line, "step"));
    return 0;
}

enum { DATA_S, PREP_S, UPDT_S, STEP_S, SAMPLES_PER_S };

/* From 0.6 on, each figure is its maximum over the ranks, and the lines have the samples per second. */
static bool has_maxima(const struct weir_trainer_log *log)
{
    const double *values = log->rows[log->n_rows - 1].values;
    return log->ranks > 1 && !isnan(values[SAMPLES_PER_S]) && isnan(values[STEP_S]);
}

/* All ranks take equally long for a step, so the maximum wait plus the maximum of the rest is at least a step, and each
 * of them at most one. */
static void wait_of_lerobot(const struct weir_trainer_log *log, struct weir_trainer_wait *wait)
{
    double rest_s = wait->step_s - wait->wait_s;
    if (wait->recorded && has_maxima(log))
        wait->most = fmax(wait->most, wait->wait_s / fmax(rest_s, wait->wait_s));
}

static void remark_on_lerobot(FILE *out, const struct weir_trainer_log *log)
{
    if (has_maxima(log))
        fprintf(out,
                "  each figure is its maximum over %d ranks, not always of the same rank, so the sum of data_s and "
                "updt_s can exceed a step; the wait is that of the rank that waits longest\n",
                log->ranks);
    else if (log->ranks > 1)
        fprintf(out, "  the figures are those of rank 0 of %d\n", log->ranks);
}

const struct weir_trainer weir_trainer_lerobot = {
    .name = "lerobot",
    .title = "LeRobot's step lines",
    .label = "step",
    .columns = {[DATA_S] = {"data_s", NULL, WEIR_TRAINER_WAIT, WEIR_TRAINER_SECONDS},
                [PREP_S] = {"prep_s", NULL, WEIR_TRAINER_WORK, WEIR_TRAINER_SECONDS},
                [UPDT_S] = {"updt_s", NULL, WEIR_TRAINER_WORK, WEIR_TRAINER_SECONDS},
                [STEP_S] = {"step_s", NULL, WEIR_TRAINER_STEP, WEIR_TRAINER_SECONDS},
                [SAMPLES_PER_S] = {"smp/s", NULL, WEIR_TRAINER_OTHER, WEIR_TRAINER_NUMBER}},
    .series = true,
    .rounding_s = 0.5e-3,
    .recognise = is_lerobot,
    .parse = parse_lerobot,
    .wait = wait_of_lerobot,
    .remark = remark_on_lerobot,
    .means =
        "data_s is the wait for a batch and, unless the line has prep_s, the preprocessor with the copy to the GPU",
    .watch = "python -m weir watch -m lerobot.scripts.lerobot_train ...",
};

/* ---- detectron2: eta: 0:01:40  iter: 19  total_loss: 1.9  time: 0.2540  last_time: 0.2532  data_time: 0.0084 ---- */

enum { DATA_TIME, TIME };

static bool is_detectron2(const struct weir_trainer_log *log, const char *line)
{
    (void)log;
    return strstr(line, "data_time:") && weir_trainer_field(line, "iter");
}

static int parse_data_time(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    struct weir_trainer_row *row;
    bool new_name = strstr(line, "data_time:") != NULL;
    double data_s = weir_trainer_number(line, new_name ? "data_time" : "data"),
           step_s = weir_trainer_number(line, "time");
    if (isnan(data_s) || isnan(step_s))
        return 0;
    int code = weir_trainer_add(log, number, &row);
    if (code < 0 || !row)
        return code;
    weir_trainer_rounding(log, weir_trainer_field(line, new_name ? "data_time" : "data"));
    row->values[DATA_TIME] = data_s;
    row->values[TIME] = step_s;
    return 1;
}

static int parse_detectron2(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    int code = parse_data_time(log, line, number);
    if (code == 1)
        label_from(log, weir_trainer_field(line, "iter"));
    return code < 0 ? code : 0;
}

enum { UNTIMED = 2 }; /* steps at the start that are not in `time` */

/* `time` is the mean since the start. Two such means, and the number of steps in each, give that of the steps between
 * them, so the start of the workers does not count here either. */
static void wait_of_detectron2(const struct weir_trainer_log *log, struct weir_trainer_wait *wait)
{
    const struct weir_trainer_row *first = &log->rows[0], *last = &log->rows[log->n_rows - 1];
    double steps = log->steps_per_row - UNTIMED, between = strtod(last->label, NULL) - strtod(first->label, NULL);
    double step_s = last->values[TIME], error_s = log->rounding_s, step_error_s = error_s;
    if (wait->first > 0 && steps > 0 && between > 0) {
        step_s += steps / between * (step_s - first->values[TIME]);
        step_error_s *= 1 + 2 * steps / between;
    }
    if (!wait->recorded || !(step_s > step_error_s))
        return;
    wait->step_s = step_s;
    wait->fraction = wait->wait_s / step_s;
    wait->least = fmax(wait->wait_s - error_s, 0) / (step_s + step_error_s);
    wait->most = (wait->wait_s + error_s) / (step_s - step_error_s);
}

const struct weir_trainer weir_trainer_detectron2 = {
    .name = "detectron2",
    .title = "detectron2's step lines",
    .label = "iter",
    .columns = {[DATA_TIME] = {"data_time", NULL, WEIR_TRAINER_WAIT, WEIR_TRAINER_SECONDS},
                [TIME] = {"time", NULL, WEIR_TRAINER_STEP, WEIR_TRAINER_SECONDS}},
    .series = true,
    .mean_since_start = true,
    .rounding_s = 0.05e-3,
    .recognise = is_detectron2,
    .parse = parse_detectron2,
    .wait = wait_of_detectron2,
    .means =
        "data_time is the wait for a batch, a mean of the last 20 steps; time is a step with its wait, a mean since "
        "the start, so the wait is compared with the last line's time",
    .watch = "python -m weir watch SCRIPT ...",
};

/* ---- Epoch(train) [1][10/50]  lr: 1.0e-02  time: 0.0201  data_time: 0.0190, and Epoch: [0]  [10/50]  time: 0.2  data:
 * 0.1 ---- */

static bool is_mmengine(const struct weir_trainer_log *log, const char *line)
{
    bool named = strstr(line, "data_time:") || (strstr(line, " time:") && strstr(line, " data:"));
    return named && strchr(line, '[') && strstr(line, "time:") && !is_detectron2(log, line) && !strstr(line, "(val)") &&
           !strstr(line, "(test)") && !strstr(line, "Test:");
}

/* Returns the start of "[1][10/50]" or "[10/50]": the last bracket in front of a fraction, and one that touches it. */
static const char *progress(const char *line, size_t *length)
{
    const char *found = NULL;
    for (const char *at = strchr(line, '['); at; at = strchr(at + 1, '[')) {
        const char *digits = weir_skip_spaces(at + 1);
        size_t n = strspn(digits, "0123456789"),
               total = n > 0 && digits[n] == '/' ? strspn(digits + n + 1, "0123456789") : 0;
        if (total == 0 || digits[n + 1 + total] != ']')
            continue;
        found = at;
        *length = (size_t)(digits + n + 1 + total + 1 - at);
    }
    const char *start = found;
    while (start && start > line && start[-1] != '[' && (isdigit((unsigned char)start[-1]) || strchr("] ", start[-1])))
        start--;
    if (!start || start == line || start[-1] != '[' || found - start > 24)
        return found;
    *length += (size_t)(found - start + 1);
    return start - 1;
}

static int parse_mmengine(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    int code = parse_data_time(log, line, number);
    size_t length = 0;
    const char *label = code == 1 ? progress(line, &length) : NULL;
    if (label) {
        double step;
        const char *fraction = memrchr(label, '[', length);
        weir_trainer_label(&log->rows[log->n_rows - 1], label, length);
        if (weir_trainer_decimal(weir_skip_spaces(fraction + 1), &step) > 0)
            weir_trainer_step(log, step);
    }
    return code < 0 ? code : 0;
}

const struct weir_trainer weir_trainer_mmengine = {
    .name = "mmengine",
    .title = "step lines with data_time, as MMEngine prints them",
    .label = "step",
    .columns = {[DATA_TIME] = {"data_time", NULL, WEIR_TRAINER_WAIT, WEIR_TRAINER_SECONDS},
                [TIME] = {"time", NULL, WEIR_TRAINER_STEP, WEIR_TRAINER_SECONDS}},
    .series = true,
    .rounding_s = 0.05e-3,
    .recognise = is_mmengine,
    .parse = parse_mmengine,
    .means =
        "data_time (or data) is the wait for a batch; time is a step with its wait; both are means of recent steps",
    .watch = "python -m weir watch SCRIPT ...",
};
