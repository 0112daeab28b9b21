/* What the parsers of all formats share: rows, and the values in a line. */
#include "analyze/logs/log_words.h"
#include "analyze/logs/trainer.h"
#include "base/grow.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int weir_trainer_add(struct weir_trainer_log *log, uint64_t number, struct weir_trainer_row **row)
{
    *row = NULL;
    if (log->n_rows == WEIR_TRAINER_ROWS_MAX) {
        log->rows_dropped++;
        return 0;
    }
    if (!weir_grow(&log->rows, log->n_rows, sizeof *log->rows))
        return -ENOMEM;
    *row = &log->rows[log->n_rows++];
    **row = (struct weir_trainer_row){.line = number, .step = NAN};
    for (int i = 0; i < WEIR_TRAINER_COLUMNS; i++)
        (*row)->values[i] = NAN;
    return 0;
}

void weir_trainer_rounding(struct weir_trainer_log *log, const char *time)
{
    size_t whole = strspn(time, "0123456789"),
           decimals = time[whole] == '.' ? strspn(time + whole + 1, "0123456789") : 0;
    log->rounding_s = fmax(log->rounding_s, 0.5 * pow(10, -(double)decimals));
}

void weir_trainer_step(struct weir_trainer_log *log, double step)
{
    log->rows[log->n_rows - 1].step = step;
    if (log->steps_per_row <= 0 && log->n_rows > 1 && step > log->memo_)
        log->steps_per_row = step - log->memo_;
    log->memo_ = step;
}

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

void weir_trainer_label(struct weir_trainer_row *row, const char *text, size_t length)
{
    size_t head = length, tail = length;
    if (length >= WEIR_TRAINER_LABEL) {
        for (head = WEIR_TRAINER_LABEL / 3; head > 0 && is_inside_character(text[head]);)
            head--;
        for (tail = length - (WEIR_TRAINER_LABEL - head - 3); tail < length && is_inside_character(text[tail]);)
            tail++;
    }
    snprintf(row->label, sizeof row->label, "%.*s%s%.*s", (int)head, text, head < length ? ".." : "",
             (int)(length - tail), text + tail);
}

const char *weir_trainer_field(const char *line, const char *name)
{
    const char *found = NULL;
    size_t length = strlen(name);
    double value;
    for (const char *at = strstr(line, name); at; at = strstr(at + 1, name)) {
        const char *text = at + length;
        bool starts = at == line || !(isalnum((unsigned char)at[-1]) || strchr("_-/.", at[-1]));
        bool quoted = *text == '"' || *text == '\'';
        text = weir_skip_spaces(text + quoted);
        text += *text == ':' || *text == '=';
        bool apart = text > at + length;
        text = weir_skip_spaces(text);
        text += *text == '"' || *text == '\'';
        if (starts && apart && weir_trainer_decimal(text, &value) > 0)
            found = text;
    }
    return found;
}

double weir_trainer_number(const char *line, const char *name)
{
    const char *text = weir_trainer_field(line, name);
    double value;
    return text && weir_trainer_decimal(text, &value) > 0 ? value : NAN;
}

size_t weir_trainer_decimal(const char *text, double *value)
{
    bool negative = *text == '-';
    size_t at = negative || *text == '+', n = weir_read_decimal(text + at, value);
    if (n == 0)
        return 0;
    at += n;
    if (text[at] == 'e' || text[at] == 'E') {
        bool down = text[at + 1] == '-';
        const char *digits = text + at + 1 + (down || text[at + 1] == '+');
        n = strspn(digits, "0123456789");
        if (n > 0 && n <= 3) {
            *value = down ? *value / pow(10, atoi(digits)) : *value * pow(10, atoi(digits));
            at = (size_t)(digits + n - text);
        }
    }
    *value = negative ? -*value : *value;
    return fabs(*value) < 1e15 ? at : 0;
}

double weir_trainer_sum(const struct weir_trainer *trainer, const struct weir_trainer_row *row,
                        enum weir_trainer_role role)
{
    double sum_s = NAN;
    for (int i = 0; i < WEIR_TRAINER_COLUMNS && trainer->columns[i].name; i++)
        if (trainer->columns[i].role == role && !isnan(row->values[i]))
            sum_s = isnan(sum_s) ? row->values[i] : sum_s + row->values[i];
    return sum_s;
}
