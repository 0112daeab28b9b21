/* Progress bars of tqdm, and the prints of ACT, which trains under such a bar. Neither records the wait for data. */
#include "analyze/logs/log_words.h"
#include "analyze/logs/trainer.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Training:  17%|█▋        | 10/60 [00:07<00:37,  1.33step/s] */
struct bar {
    const char *label;
    size_t label_bytes;
    double done, total; /* total: NAN = not printed */
    double elapsed_s;
    double per_s; /* the printed rate, of recent steps; NAN = not printed */
};

enum { UNIT_MAX = 24 };

/* Reads a number that may have the suffix of a scaled unit: 123k, 4.5M. */
static size_t read_scaled(const char *text, double *value)
{
    static const char suffixes[] = "kMGTP";
    size_t n = weir_trainer_decimal(text, value);
    const char *suffix = n > 0 && text[n] ? strchr(suffixes, text[n]) : NULL;
    if (!suffix || !(isalpha((unsigned char)text[n + 1]) || text[n + 1] == '/' || text[n + 1] == ' '))
        return n;
    for (const char *at = suffixes; at <= suffix; at++)
        *value *= 1e3;
    return n + 1;
}

/* Reads "00:07<00:37,  1.33step/s]", "00:07, 2.5s/it" and so on. */
static bool read_times(const char *text, struct bar *bar)
{
    size_t n = weir_read_duration(text, 1, &bar->elapsed_s);
    bool clock = n > 0 && memchr(text, ':', n) && weir_plausible_time(bar->elapsed_s);
    if (!clock || (text[n] != '<' && text[n] != ','))
        return false;
    const char *rate = text + n;
    rate += *rate == '<' ? 1 + strspn(rate + 1, "0123456789:?") : 0;
    if (*rate != ',')
        return false;
    rate = weir_skip_spaces(rate + 1);
    double value;
    n = read_scaled(rate, &value);
    const char *unit = rate + n, *per = memchr(unit, '/', strnlen(unit, UNIT_MAX));
    bool positive = n > 0 && value > 0 && per, inverse = positive && per == unit + 1 && *unit == 's';
    bool plain = positive && isalpha((unsigned char)*unit) && per[1] == 's';
    bar->per_s = inverse ? 1 / value : plain ? value : NAN;
    return *rate == '?' || n > 0;
}

/* Reads "10/60", "10/?" or "10it", and returns whether it is one. */
static bool read_count(const char *text, struct bar *bar)
{
    size_t n = read_scaled(text, &bar->done);
    bar->total = NAN;
    if (n == 0 || bar->done < 0)
        return false;
    if (text[n] == '/' && read_scaled(text + n + 1, &bar->total) == 0)
        bar->total = NAN;
    return text[n] == '/' || isalpha((unsigned char)text[n]);
}

/* Finds the bar's label in front of its percentage, bar or count, which starts at `end`. */
static void find_label(const char *line, const char *end, struct bar *bar)
{
    const char *percent = strstr(line, "%|"), *sign = memchr(line, '|', (size_t)(end - line));
    if (percent && percent < end)
        for (end = percent; end > line && isdigit((unsigned char)end[-1]);)
            end--;
    else if (sign)
        end = sign;
    while (end > line && (end[-1] == ' ' || end[-1] == ':'))
        end--;
    bar->label = weir_skip_spaces(line);
    bar->label_bytes = end > bar->label ? (size_t)(end - bar->label) : 0;
}

/* Reads the last bar of the line. */
static bool read_bar(const char *line, struct bar *bar)
{
    const char *found = NULL;
    for (const char *at = strstr(line, " ["); at; at = strstr(at + 1, " [")) {
        const char *start = at;
        while (start > line && start[-1] != ' ' && start[-1] != '|')
            start--;
        struct bar read = {0};
        if (start == at || !read_count(start, &read) || !read_times(at + 2, &read))
            continue;
        *bar = read;
        found = start;
    }
    if (found)
        find_label(line, found, bar);
    return found != NULL;
}

/* ---- tqdm ---- */

enum { DONE, TOTAL, ELAPSED, RATE };
enum { OPEN_BARS = 8, CLOCK_FROM_S = 10 }; /* from here on the whole seconds of the clock are exact enough for a rate */

static bool is_bar(const struct weir_trainer_log *log, const char *line)
{
    (void)log;
    return strchr(line, '[') && (strstr(line, "/s") || strstr(line, "s/") || strstr(line, "?it"));
}

/* Returns whether two labels differ only in numbers, such as the epoch or the loss. */
static bool is_alike(const char *label, const char *text, size_t length)
{
    const char *end = text + length;
    for (;; label++, text++) {
        while (*label && (isdigit((unsigned char)*label) || strchr(".-", *label)))
            label++;
        while (text < end && (isdigit((unsigned char)*text) || strchr(".-", *text)))
            text++;
        if (!*label || text == end || *label != *text)
            return !*label && text == end;
    }
}

/* Bars that are drawn again update their row. Nested bars alternate, so the last few are searched. */
static struct weir_trainer_row *row_of(const struct weir_trainer_log *log, const struct bar *bar)
{
    for (size_t back = 1; back <= OPEN_BARS && back <= log->n_rows; back++) {
        struct weir_trainer_row *row = &log->rows[log->n_rows - back];
        double total = row->values[TOTAL];
        bool same = isnan(total) ? isnan(bar->total) : total == bar->total;
        if (same && bar->done >= row->values[DONE] && bar->elapsed_s >= row->values[ELAPSED] &&
            is_alike(row->label, bar->label, bar->label_bytes < 48 ? bar->label_bytes : 48))
            return row;
    }
    return NULL;
}

static int parse_bar(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    struct bar bar;
    bool begun = read_bar(line, &bar) && (bar.done > 0 || bar.elapsed_s > 0);
    if (!begun)
        return 0;
    struct weir_trainer_row *row = row_of(log, &bar);
    int code = row ? 0 : weir_trainer_add(log, number, &row);
    if (code < 0 || !row)
        return code;
    weir_trainer_label(row, bar.label, bar.label_bytes < 48 ? bar.label_bytes : 48);
    row->values[DONE] = bar.done;
    row->values[TOTAL] = bar.total;
    row->values[ELAPSED] = bar.elapsed_s;
    row->values[RATE] = bar.elapsed_s >= CLOCK_FROM_S ? bar.done / bar.elapsed_s : bar.per_s;
    return 0;
}

static void remark_on_bars(FILE *out, const struct weir_trainer_log *log)
{
    const struct weir_trainer_row *longest = &log->rows[0];
    for (size_t i = 1; i < log->n_rows; i++)
        if (log->rows[i].values[ELAPSED] > longest->values[ELAPSED])
            longest = &log->rows[i];
    if (!isnan(longest->values[RATE]))
        fprintf(out, "  the longest bar made %.4g steps/s in %.0fs\n", longest->values[RATE], longest->values[ELAPSED]);
}

const struct weir_trainer weir_trainer_tqdm = {
    .name = "tqdm",
    .title = "progress bars of tqdm",
    .label = "bar",
    .columns = {[DONE] = {"done", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_COUNT},
                [TOTAL] = {"total", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_COUNT},
                [ELAPSED] = {"elapsed_s", "elapsed", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_CLOCK},
                [RATE] = {"steps_per_s", "steps/s", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_NUMBER}},
    .recognise = is_bar,
    .parse = parse_bar,
    .remark = remark_on_bars,
    .means = "a bar shows the rate of whole steps, which contain the wait",
    .watch = "python -m weir watch SCRIPT ...",
};

/* ---- ACT: "Epoch 3", "Val loss:   0.32145", "Train loss: 0.30121", under a bar with one step per epoch ---- */

enum { TRAIN_LOSS, VAL_LOSS, EPOCH_S };

/* Returns the epoch of a line that has nothing but "Epoch 3", or -1. */
static int epoch_of(const char *line)
{
    int epoch, count;
    const char *text = weir_skip_spaces(line);
    const char *end = strncmp(text, "Epoch ", 6) == 0 ? weir_find_epoch(text, text + 1, &epoch, &count) : NULL;
    return end && *weir_skip_spaces(end) == '\0' ? epoch : -1;
}

static bool is_loss(const char *line)
{
    line = weir_skip_spaces(line);
    return strncmp(line, "Val loss:", 9) == 0 || strncmp(line, "Train loss:", 11) == 0;
}

static bool is_act(const struct weir_trainer_log *log, const char *line)
{
    return epoch_of(line) >= 0 || is_loss(line) || (log->n_rows > 0 && strstr(line, "%|"));
}

/* The bar after epoch N has N + 1 steps. Its clock gives the epoch's duration. */
static void take_bar(struct weir_trainer_log *log, const char *line)
{
    struct bar bar;
    struct weir_trainer_row *row = &log->rows[log->n_rows - 1];
    if (!read_bar(line, &bar) || bar.done != atoi(row->label) + 1 || !isnan(row->values[EPOCH_S]))
        return;
    row->values[EPOCH_S] = fmax(bar.elapsed_s - log->memo_, 0);
    log->memo_ = bar.elapsed_s;
}

static int parse_act(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    struct weir_trainer_row *row = log->n_rows > 0 ? &log->rows[log->n_rows - 1] : NULL;
    int epoch = epoch_of(line), code = 0;
    if (epoch >= 0)
        log->state_ = epoch + 1; /* 0: no epoch is open */
    else if (!is_loss(line))
        take_bar(log, line);
    if (epoch >= 0 || !is_loss(line) || log->state_ == 0)
        return 0;
    if (!row || atoi(row->label) != log->state_ - 1) {
        code = weir_trainer_add(log, number, &row);
        if (code < 0 || !row)
            return code;
        snprintf(row->label, sizeof row->label, "%d", log->state_ - 1);
    }
    if (isnan(row->values[TRAIN_LOSS]))
        row->values[TRAIN_LOSS] = weir_trainer_number(line, "Train loss");
    if (isnan(row->values[VAL_LOSS]))
        row->values[VAL_LOSS] = weir_trainer_number(line, "Val loss");
    return 0;
}

const struct weir_trainer weir_trainer_act = {
    .name = "act",
    .title = "epochs as ACT prints them",
    .label = "epoch",
    .columns = {[TRAIN_LOSS] = {"train_loss", "train loss", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_NUMBER},
                [VAL_LOSS] = {"val_loss", "val loss", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_NUMBER},
                [EPOCH_S] = {"epoch_s", "duration", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_CLOCK}},
    .series = true,
    .recognise = is_act,
    .parse = parse_act,
    .means =
        "it has losses, and durations in whole seconds if the log contains the progress bar; they contain the wait",
    .watch = "python -m weir watch imitate_episodes.py ...",
};
