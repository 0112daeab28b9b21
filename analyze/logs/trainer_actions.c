/* The table of Lightning's SimpleProfiler. Actions contain each other, so their totals do not add up. */
#include "analyze/logs/log_words.h"
#include "analyze/logs/trainer.h"

#include <math.h>
#include <string.h>

enum { MEAN, CALLS, TOTAL, PERCENT };
enum { SHORT_TABLE = 3, EXTENDED_TABLE = 5 };

static bool is_rule(const char *line)
{
    return line[strspn(line, "- ")] == '\0';
}

static bool is_profiler(const struct weir_trainer_log *log, const char *line)
{
    bool row = *weir_skip_spaces(line) == '|';
    return log->state_ > 0 || (row && strstr(line, "Mean duration (s)") && strstr(line, "Total time (s)"));
}

/* Returns the start of the field that ends at *end, and moves *end to the bar in front of it; NULL if none is left. */
static const char *field_before(const char *line, const char **end)
{
    const char *at = *end;
    while (at > line && at[-1] != '|')
        at--;
    if (at == line)
        return NULL;
    *end = at - 1;
    return weir_skip_spaces(at);
}

static void read_figure(struct weir_trainer_row *row, int column, const char *text)
{
    double value;
    if (weir_trainer_decimal(text, &value) > 0 && weir_plausible_time(value))
        row->values[column] = value;
}

static int parse_action(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    static const int columns[2][4] = {{TOTAL, MEAN}, {PERCENT, TOTAL, CALLS, MEAN}};
    bool extended = log->state_ == EXTENDED_TABLE;
    const char *end = line + strlen(line), *fields[4];
    int n = extended ? 4 : 2;
    while (end > line && (end[-1] == ' ' || end[-1] == '|'))
        end--;
    for (int i = 0; i < n; i++)
        if (!(fields[i] = field_before(line, &end)))
            return 0;
    const char *name = weir_skip_spaces(weir_skip_spaces(line) + 1);
    while (end > name && end[-1] == ' ')
        end--;
    struct weir_trainer_row *row;
    int code = end > name ? weir_trainer_add(log, number, &row) : 0;
    if (code < 0 || end <= name || !row)
        return code;
    for (int i = 0; i < n; i++)
        read_figure(row, columns[extended][i], fields[i]);
    weir_trainer_label(row, name, (size_t)(end - name));
    return 0;
}

static int parse_profiler(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    if (strstr(line, "Mean duration (s)"))
        log->state_ = strstr(line, "Num calls") ? EXTENDED_TABLE : SHORT_TABLE;
    else if (*weir_skip_spaces(line) == '|')
        return parse_action(log, line, number);
    else if (!is_rule(line))
        log->state_ = 0;
    return 0;
}

/* Returns the sum of a column over the actions whose name ends with `end`; 0 if there are none. */
static double sum_of(const struct weir_trainer_log *log, const char *end, int column)
{
    double sum = 0;
    for (size_t i = 0; i < log->n_rows; i++) {
        size_t length = strlen(log->rows[i].label), n = strlen(end);
        if (length >= n && strcmp(log->rows[i].label + length - n, end) == 0 && !isnan(log->rows[i].values[column]))
            sum += log->rows[i].values[column];
    }
    return sum;
}

/* run_training_epoch contains the validation inside it, so with one the wait is at least its fraction of that, and at
 * most its fraction of itself and the batches. */
static void wait_of_profiler(const struct weir_trainer_log *log, struct weir_trainer_wait *wait)
{
    double wait_s = sum_of(log, "].train_dataloader_next", TOTAL),
           mean_s = sum_of(log, "].train_dataloader_next", MEAN);
    double epoch_s = sum_of(log, "run_training_epoch", TOTAL), batch_s = sum_of(log, "run_training_batch", TOTAL);
    double val_s = sum_of(log, "].val_next", TOTAL) + sum_of(log, ".validation_step", TOTAL);
    wait->recorded = mean_s > 0 && epoch_s > 0 && epoch_s >= wait_s;
    if (!wait->recorded)
        return;
    wait->wait_s = mean_s;
    wait->step_s = epoch_s / (wait_s / mean_s);
    wait->n_rows = log->n_rows;
    wait->least = wait->fraction = wait->most = wait_s / epoch_s;
    if (val_s <= 0)
        return;
    wait->most = batch_s > 0 ? wait_s / (wait_s + batch_s) : 1;
    wait->most = fmax(wait->most, wait->least);
    wait->fraction = epoch_s > val_s ? fmin(wait_s / (epoch_s - val_s), wait->most) : wait->most;
}

/* The table with extended=False has no calls. */
static bool stage_of_action(const struct weir_trainer_row *row, double *total_s, double *calls)
{
    *total_s = row->values[TOTAL];
    *calls = isnan(row->values[CALLS]) ? round(*total_s / row->values[MEAN]) : row->values[CALLS];
    return row->values[MEAN] > 0 && *total_s >= 0 && *calls >= 1 && *calls < 1e15;
}

const struct weir_trainer weir_trainer_lightning = {
    .name = "lightning",
    .title = "the table of Lightning's SimpleProfiler",
    .label = "action",
    .columns = {[MEAN] = {"mean_s", "mean", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_SECONDS},
                [CALLS] = {"calls", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_COUNT},
                [TOTAL] = {"total_s", "total", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_SECONDS},
                [PERCENT] = {"percent", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_NUMBER}},
    .recognise = is_profiler,
    .parse = parse_profiler,
    .wait = wait_of_profiler,
    .stage = stage_of_action,
    .means = "train_dataloader_next is the wait for a batch, and run_training_epoch contains it, the batches, and "
             "validation if there is one; actions contain each other, so percentages do not add up",
    .watch = "python -m weir watch SCRIPT ...",
};
