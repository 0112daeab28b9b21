/* Rows that are lines of fields, such as "time: 0.2 data_time: 0.1", and waits of means since an epoch's first step. */
#include "analyze/logs/log_words.h"
#include "analyze/logs/trainer.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- values ---- */

/* Returns the number in the brackets behind the value: "0.355 ( 1.322)", "4.31s, 237/s (0.998s, 1026/s)". */
static const char *bracketed(const char *value)
{
    const char *bracket = strchr(value, '(');
    double ignored;
    bool near = bracket && bracket - value < 32 && !strchr("\t:", value[strcspn(value, "(\t:")]);
    return near && weir_trainer_decimal(weir_skip_spaces(bracket + 1), &ignored) > 0 ? weir_skip_spaces(bracket + 1)
                                                                                     : NULL;
}

static const char *find(const struct weir_trainer_column *column, const char *line)
{
    char key[64];
    const char *keys = column->key ? column->key : column->name;
    for (const char *text = NULL; *keys && !text; keys += *keys == '|') {
        size_t length = strcspn(keys, "|");
        snprintf(key, sizeof key, "%.*s", (int)length, keys);
        text = weir_trainer_field(line, key);
        if (text)
            return column->bracketed ? bracketed(text) : text;
        keys += length;
    }
    return NULL;
}

/* Sets the values that the line has and the row does not. */
static void read_values(struct weir_trainer_log *log, struct weir_trainer_row *row, const char *line)
{
    const struct weir_trainer_column *columns = log->trainer->columns;
    for (int i = 0; i < WEIR_TRAINER_COLUMNS && columns[i].name; i++) {
        const char *text = isnan(row->values[i]) ? find(&columns[i], line) : NULL;
        if (!text)
            continue;
        weir_trainer_decimal(text, &row->values[i]);
        if (columns[i].scale > 0)
            row->values[i] *= columns[i].scale;
        else if (columns[i].role == WEIR_TRAINER_WAIT)
            weir_trainer_rounding(log, text);
    }
}

/* Returns whether a row of one line has what its format is about: the wait and another time, or anything. */
static bool is_complete(const struct weir_trainer *trainer, const struct weir_trainer_row *row)
{
    bool waits = false, any = false;
    for (int i = 0; i < WEIR_TRAINER_COLUMNS && trainer->columns[i].name; i++) {
        waits = waits || trainer->columns[i].role == WEIR_TRAINER_WAIT;
        any = any || !isnan(row->values[i]);
    }
    return waits ? !isnan(weir_trainer_sum(trainer, row, WEIR_TRAINER_WAIT)) &&
                       (!isnan(weir_trainer_sum(trainer, row, WEIR_TRAINER_STEP)) ||
                        !isnan(weir_trainer_sum(trainer, row, WEIR_TRAINER_WORK)))
                 : any;
}

/* ---- labels ---- */

/* Returns the start of "[1][10/50]", "[10/50]" or "[ 10/50 ( 20%)]": the last bracket in front of a fraction, and one
 * that touches it. */
static const char *progress(const char *line, size_t *length)
{
    const char *found = NULL;
    for (const char *at = strchr(line, '['); at; at = strchr(at + 1, '[')) {
        const char *digits = weir_skip_spaces(at + 1);
        size_t n = strspn(digits, "0123456789"),
               total = n > 0 && digits[n] == '/' ? strspn(digits + n + 1, "0123456789") : 0;
        const char *end = digits + n + 1 + total, *percent = end + strspn(end, " (0123456789%)");
        end = total > 0 && *end == ' ' && end[1] == '(' ? percent : end;
        if (total == 0 || *end != ']')
            continue;
        found = at;
        *length = (size_t)(end + 1 - at);
    }
    const char *start = found;
    while (start && start > line && start[-1] != '[' && (isdigit((unsigned char)start[-1]) || strchr("] ", start[-1])))
        start--;
    if (!start || start == line || start[-1] != '[' || found - start > 24)
        return found;
    *length += (size_t)(found - start + 1);
    return start - 1;
}

/* Labels the last row with the number of its step. Abbreviated numbers ("1K") are no number of steps. */
static void label(struct weir_trainer_log *log, const char *line)
{
    const char *named = log->trainer->labelled, *text, *step;
    size_t length = 0;
    double number;
    if (named) {
        step = text = weir_trainer_field(line, named);
        length = text ? strcspn(text, " ,}") : 0;
    } else {
        text = progress(line, &length);
        step = text ? weir_skip_spaces((const char *)memrchr(text, '[', length) + 1) : NULL;
    }
    if (!text)
        return;
    weir_trainer_label(&log->rows[log->n_rows - 1], text, length);
    size_t n = weir_trainer_decimal(step, &number);
    if (n > 0 && !isalpha((unsigned char)step[n]))
        weir_trainer_step(log, number);
}

/* ---- lines ---- */

static bool has_all(const char *const *texts, int n, const char *line)
{
    for (int i = 0; i < n && texts[i]; i++)
        if (!strstr(line, texts[i]))
            return false;
    return texts[0] != NULL;
}

static bool has_any(const char *const *texts, int n, const char *line)
{
    for (int i = 0; i < n && texts[i]; i++)
        if (strstr(line, texts[i]))
            return true;
    return false;
}

static bool begins(const struct weir_trainer *trainer, const char *line)
{
    return has_all(trainer->has, sizeof trainer->has / sizeof *trainer->has, line) &&
           !has_any(trainer->lacks, sizeof trainer->lacks / sizeof *trainer->lacks, line);
}

bool weir_trainer_is_fields(const struct weir_trainer_log *log, const char *line)
{
    return log->state_ > 0 || begins(log->trainer, line);
}

int weir_trainer_parse_fields(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    struct weir_trainer_row *row;
    bool first = begins(log->trainer, line), several = log->trainer->ends;
    if (!first && several && strstr(line, log->trainer->ends))
        log->state_ = 0;
    if (!first) {
        if (log->state_ > 0)
            read_values(log, &log->rows[log->n_rows - 1], line);
        return 0;
    }
    int code = weir_trainer_add(log, number, &row);
    log->state_ = several && row;
    if (code < 0 || !row)
        return code;
    read_values(log, row, line);
    if (!several && !is_complete(log->trainer, row))
        log->n_rows--;
    else
        label(log, line);
    return 0;
}

/* ---- means since the first step of an epoch ---- */

/* Steps are counted from 0, so the means of step 10 cover 11 of them. */
static double steps_until(const struct weir_trainer_row *row)
{
    return isnan(row->step) ? 1 : row->step + 1;
}

void weir_trainer_wait_of_means(const struct weir_trainer_log *log, struct weir_trainer_wait *wait)
{
    double steps = 0, wait_s = 0, step_s = 0, error_s = log->rounding_s;
    for (size_t i = 0; i < log->n_rows; i++) {
        const struct weir_trainer_row *row = &log->rows[i];
        bool last = i + 1 == log->n_rows || !(log->rows[i + 1].step > row->step);
        /* The first row, with the start of the workers, does not count if others do. */
        double sign = last ? 1 : i == 0 && wait->first > 0 ? -1 : 0, n = sign * steps_until(row);
        steps += n;
        wait_s += n * weir_trainer_sum(log->trainer, row, WEIR_TRAINER_WAIT);
        step_s += n * weir_trainer_sum(log->trainer, row, WEIR_TRAINER_STEP);
    }
    wait->recorded = steps > 0 && wait_s >= 0 && step_s > steps * error_s;
    if (!wait->recorded)
        return;
    wait->wait_s = wait_s / steps;
    wait->step_s = step_s / steps;
    wait->fraction = wait_s / step_s;
    wait->least = fmax(wait->wait_s - error_s, 0) / (wait->step_s + error_s);
    wait->most = (wait->wait_s + error_s) / (wait->step_s - error_s);
}
