#include "weir/profiler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int weir_schedule_check(const struct weir_schedule *s, struct weir_err *err)
{
    if (s->wait < 0 || s->warmup < 0 || s->repeat < 0 || s->skip_first < 0 || s->skip_first_wait < 0 || s->wait_s < 0)
        return weir_err_set(err, -EINVAL, "a schedule's numbers must not be negative");
    if (s->active < 0 || (s->active == 0 && !(s->active_s > 0)))
        return weir_err_set(err, -EINVAL, "a schedule needs active=N, the number of steps to record (at least 1)");
    int64_t most = (int64_t)1 << 40;
    if (s->wait > most || s->warmup > most || s->active > most || s->repeat > most || s->skip_first > most)
        return weir_err_set(err, -EINVAL, "a schedule's numbers must be at most 2^40");
    return 0;
}

/* ---- parsing ---- */

struct field {
    const char *name;
    int64_t *steps;
    double *seconds; /* NULL if the field accepts only a number of steps */
};

static int parse_value(const struct field *field, const char *text, struct weir_err *err)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    double scale = strcmp(end, "ms") == 0 ? 1e-3 : strcmp(end, "s") == 0 ? 1 : 0;
    bool is_time = end != text && scale > 0;
    if (is_time && !field->seconds)
        return weir_err_set(err, -EINVAL, "%s=%s: only wait and active accept a time", field->name, text);
    if (is_time && value * scale > 0 && value * scale <= 1e7) {
        *field->seconds = value * scale;
        return 0;
    }
    long long steps = strtoll(text, &end, 10);
    if (is_time || end == text || *end || errno || steps < 0 || text[0] == '-')
        return weir_err_set(err, -EINVAL, "%s=%s: not a number of steps%s", field->name, text,
                            field->seconds ? " or a time (500ms, 2s)" : "");
    *field->steps = steps;
    return 0;
}

static int parse_field(struct weir_schedule *s, char *text, struct weir_err *err)
{
    const struct field fields[] = {
        {"wait", &s->wait, &s->wait_s},       {"warmup", &s->warmup, NULL},
        {"active", &s->active, &s->active_s}, {"repeat", &s->repeat, NULL},
        {"skip_first", &s->skip_first, NULL}, {"skip_first_wait", &s->skip_first_wait, NULL},
    };
    char *value = strchr(text, '=');
    if (value)
        *value++ = '\0';
    for (size_t i = 0; i < sizeof fields / sizeof *fields && value; i++)
        if (strcmp(fields[i].name, text) == 0)
            return parse_value(&fields[i], value, err);
    return weir_err_set(err, -EINVAL,
                        "'%s' is not one of wait=, warmup=, active=, repeat=, skip_first=, skip_first_wait=", text);
}

int weir_schedule_parse(struct weir_schedule *schedule, const char *text, struct weir_err *err)
{
    char copy[256], *rest = copy, *part;
    memset(schedule, 0, sizeof *schedule);
    if (strlen(text) >= sizeof copy)
        return weir_err_set(err, -EINVAL, "a schedule must not exceed 255 characters");
    strcpy(copy, text);
    while ((part = strsep(&rest, ",")))
        if (parse_field(schedule, part, err) < 0)
            return -EINVAL;
    return weir_schedule_check(schedule, err);
}

/* ---- actions ---- */

enum weir_action weir_schedule_action(const struct weir_schedule *s, int64_t step)
{
    if (step < s->skip_first)
        return WEIR_ACTION_NONE;
    step -= s->skip_first;
    if (s->skip_first_wait != 0)
        step += s->wait;
    int64_t cycle = s->wait + s->warmup + s->active, at = step % cycle;
    if (s->repeat > 0 && step / cycle >= s->repeat)
        return WEIR_ACTION_NONE;
    if (at < s->wait)
        return WEIR_ACTION_NONE;
    if (at < s->wait + s->warmup)
        return WEIR_ACTION_WARMUP;
    return at < cycle - 1 ? WEIR_ACTION_RECORD : WEIR_ACTION_RECORD_AND_SAVE;
}

/* Whether the current part of the cycle is over for a step that begins now. */
static bool is_over(const struct weir_schedule *s, const struct weir_schedule_clock *c, uint64_t now_ns)
{
    double seconds = now_ns > c->part_ns ? (double)(now_ns - c->part_ns) / 1e9 : 0;
    if (c->part == WEIR_ACTION_NONE && c->cycles == 0 && s->skip_first_wait != 0)
        return true;
    if (c->part == WEIR_ACTION_NONE)
        return s->wait_s > 0 ? c->in_part > 0 && seconds >= s->wait_s : c->in_part >= s->wait;
    if (c->part == WEIR_ACTION_WARMUP)
        return c->in_part >= s->warmup;
    return s->active_s > 0 ? c->in_part > 0 && seconds >= s->active_s : c->in_part >= s->active;
}

enum weir_action weir_schedule_timed(const struct weir_schedule *s, struct weir_schedule_clock *c, uint64_t now_ns,
                                     enum weir_action *last)
{
    *last = c->current;
    c->current = WEIR_ACTION_NONE;
    if (c->steps++ < s->skip_first || (s->repeat > 0 && c->cycles >= s->repeat))
        return WEIR_ACTION_NONE;
    if (c->part == WEIR_ACTION_NONE && c->in_part == 0)
        c->part_ns = now_ns;
    while (is_over(s, c, now_ns)) {
        if (c->part == WEIR_ACTION_RECORD) {
            *last = WEIR_ACTION_RECORD_AND_SAVE;
            c->cycles++;
        }
        c->part = c->part == WEIR_ACTION_RECORD ? WEIR_ACTION_NONE : c->part + 1;
        c->in_part = 0;
        c->part_ns = now_ns;
        if (s->repeat > 0 && c->cycles >= s->repeat)
            return WEIR_ACTION_NONE;
    }
    c->in_part++;
    return c->current = c->part;
}

unsigned weir_transition(enum weir_action from, enum weir_action to)
{
    enum { NONE, WARMUP, RECORD, SAVE, EXIT };
    static const unsigned table[4][5] = {
        [NONE] = {0, WEIR_DO_PREPARE, WEIR_DO_PREPARE | WEIR_DO_START, WEIR_DO_PREPARE | WEIR_DO_START, 0},
        [WARMUP] = {WEIR_DO_WARN | WEIR_DO_START_STOP, 0, WEIR_DO_START, WEIR_DO_START, WEIR_DO_START_STOP},
        [RECORD] = {WEIR_DO_WARN | WEIR_DO_STOP, WEIR_DO_WARN | WEIR_DO_STOP, 0, 0, WEIR_DO_STOP | WEIR_DO_READY},
        [SAVE] = {WEIR_DO_STOP | WEIR_DO_READY, WEIR_DO_STOP | WEIR_DO_READY | WEIR_DO_PREPARE,
                  WEIR_DO_STOP | WEIR_DO_READY | WEIR_DO_PREPARE | WEIR_DO_START,
                  WEIR_DO_STOP | WEIR_DO_READY | WEIR_DO_PREPARE | WEIR_DO_START, WEIR_DO_STOP | WEIR_DO_READY},
    };
    return from != WEIR_ACTION_EXIT ? table[from][to] : 0;
}
