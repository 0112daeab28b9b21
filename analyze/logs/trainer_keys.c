/* Logs of unknown programs: the keys of "key: 1" or "key=1" that look like waits for data. */
#include "analyze/logs/trainer.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

enum { LINES, MEAN, MAX };
enum { KEYS_MAX = 8, KEY_MAX = 48 };

static const char *const of_data[] = {"data", "load", "fetch", "input", "batch_wait", "batch_get", NULL};
static const char *const of_time[] = {"time", "wait", "fetch", "latency", "duration",
                                      "_s",   "_sec", "_ms",   "secs",    NULL};

/* Returns whether the key has one of the words; those with an underscore must end it. */
static bool has_word(const char *key, const char *const *words)
{
    for (; *words; words++) {
        const char *at = strcasestr(key, *words);
        if (at && (**words != '_' || strcasecmp(key + strlen(key) - strlen(*words), *words) == 0))
            return true;
    }
    return false;
}

static bool is_part(char byte)
{
    return isalnum((unsigned char)byte) || (byte && strchr("_-/.", byte));
}

/* Finds the next key from `line` on that looks like a wait, and its number. Returns the text behind it, or NULL. */
static const char *next_key(const char *line, char key[KEY_MAX], double *value)
{
    for (const char *sign = strpbrk(line, ":="); sign; sign = strpbrk(sign + 1, ":=")) {
        const char *end = sign, *start;
        while (end > line && strchr(" \"'", end[-1]))
            end--;
        for (start = end; start > line && is_part(start[-1]);)
            start--;
        if (end == start || end - start >= KEY_MAX)
            continue;
        snprintf(key, KEY_MAX, "%.*s", (int)(end - start), start);
        *value = has_word(key, of_data) && has_word(key, of_time) ? weir_trainer_number(start, key) : NAN;
        if (*value >= 0)
            return sign + 1;
    }
    return NULL;
}

static bool is_keys(const struct weir_trainer_log *log, const char *line)
{
    char key[KEY_MAX];
    double value;
    (void)log;
    return next_key(line, key, &value) != NULL;
}

static struct weir_trainer_row *row_of(const struct weir_trainer_log *log, const char *key)
{
    for (size_t i = 0; i < log->n_rows; i++)
        if (strcmp(log->rows[i].label, key) == 0)
            return &log->rows[i];
    return NULL;
}

static int parse_keys(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    char key[KEY_MAX];
    double value;
    for (const char *rest = line; (rest = next_key(rest, key, &value));) {
        struct weir_trainer_row *row = row_of(log, key);
        int code = row || log->n_rows == KEYS_MAX ? 0 : weir_trainer_add(log, number, &row);
        if (code < 0)
            return code;
        if (!row)
            continue;
        if (!*row->label) {
            weir_trainer_label(row, key, strlen(key));
            row->values[LINES] = row->values[MEAN] = row->values[MAX] = 0;
        }
        row->values[LINES]++;
        row->values[MEAN] += (value - row->values[MEAN]) / row->values[LINES];
        row->values[MAX] = fmax(row->values[MAX], value);
    }
    return 0;
}

const struct weir_trainer weir_trainer_keys = {
    .name = "keys",
    .title = "keys that look like waits for data",
    .label = "key",
    .columns = {[LINES] = {"lines", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_COUNT},
                [MEAN] = {"mean", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_NUMBER},
                [MAX] = {"max", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_NUMBER}},
    .recognise = is_keys,
    .parse = parse_keys,
    .means = "the program is not known, and so neither are their units, nor the time of a step to compare them with",
    .watch = "python -m weir watch SCRIPT ...",
};
