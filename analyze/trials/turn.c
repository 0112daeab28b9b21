#include "analyze/trials/turn.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const double NUMBER_MAX = 1e18;

struct parse {
    struct weir_turn *turn;
    struct weir_err *err;
    bool run, measured, stages;
    int line;
};

static int bad(const struct parse *p, const char *what)
{
    return weir_err_set(p->err, -EBADMSG, "line %d of its output: %s", p->line, what);
}

/* A number from 0. */
static int get(const struct parse *p, const json_t *object, const char *key, double *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_number_value(value);
    if (json_is_number(value) && isfinite(*out) && *out >= 0 && *out <= NUMBER_MAX)
        return 0;
    char text[96];
    snprintf(text, sizeof text, "no %.40s, or no number that it can be", key);
    return bad(p, text);
}

/* The same where null, or nothing, stands for "not known": -1. */
static int get_known(const struct parse *p, const json_t *object, const char *key, double *out)
{
    const json_t *value = json_object_get(object, key);
    *out = -1;
    return !value || json_is_null(value) ? 0 : get(p, object, key, out);
}

static void get_text(const json_t *object, const char *key, char *out, size_t size)
{
    const char *value = json_string_value(json_object_get(object, key));
    snprintf(out, size, "%s", value ? value : "");
}

static int parse_run(struct parse *p, const json_t *line)
{
    const json_t *used = json_object_get(line, "used");
    p->run = true;
    get_text(json_object_get(used, "io"), "used", p->turn->io, sizeof p->turn->io);
    get_text(used, "decoder", p->turn->decoder, sizeof p->turn->decoder);
    int rc = get(p, used, "num_workers", &p->turn->workers);
    return rc < 0 ? rc : get(p, used, "prefetch", &p->turn->prefetch);
}

static int parse_measured(struct parse *p, const json_t *line)
{
    struct weir_turn *turn = p->turn;
    const struct {
        const char *key;
        double *to;
    } figures[] = {{"seconds", &turn->seconds},
                   {"samples", &turn->samples},
                   {"images", &turn->images},
                   {"samples_per_s", &turn->samples_per_s},
                   {"images_per_s", &turn->images_per_s},
                   {"data_wait_fraction", &turn->data_wait},
                   {"peak_rss_bytes", &turn->peak_bytes}};
    p->measured = true;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        if (get(p, line, figures[i].key, figures[i].to) < 0)
            return -EBADMSG;
    get_text(line, "reads", turn->reads, sizeof turn->reads);
    return get_known(p, line, "page_cache_fraction", &turn->cached);
}

static int parse_stage(struct parse *p, const json_t *row, struct weir_turn_stage *stage)
{
    if (!json_is_object(row))
        return bad(p, "a stage is no object");
    get_text(row, "name", stage->name, sizeof stage->name);
    get_text(row, "kind", stage->kind, sizeof stage->kind);
    get_text(row, "side", stage->side, sizeof stage->side);
    if (get(p, row, "count", &stage->count) < 0 || get(p, row, "total_s", &stage->total_s) < 0 ||
        get(p, row, "self_s", &stage->self_s) < 0 || get(p, row, "mean_s", &stage->mean_s) < 0 ||
        get(p, row, "p99_s", &stage->p99_s) < 0)
        return -EBADMSG;
    return get_known(p, row, "share", &stage->share);
}

static int parse_rows(struct parse *p, const json_t *rows)
{
    struct weir_turn *turn = p->turn;
    for (size_t i = 0; i < json_array_size(rows) && turn->n_stages < WEIR_TURN_STAGES; i++) {
        int rc = parse_stage(p, json_array_get(rows, i), &turn->stages[turn->n_stages]);
        if (rc < 0)
            return rc;
        turn->n_stages++;
    }
    return 0;
}

static int parse_stages(struct parse *p, const json_t *line)
{
    struct weir_turn *turn = p->turn;
    const json_t *workers = json_object_get(line, "workers");
    p->stages = true;
    turn->n_stages = 0;
    turn->workers_wall_s = 0;
    for (size_t i = 0; i < json_array_size(workers); i++) {
        double wall_s;
        if (get(p, json_array_get(workers, i), "wall_s", &wall_s) < 0)
            return -EBADMSG;
        turn->workers_wall_s += wall_s;
    }
    if (get(p, line, "cpu_s", &turn->cpu_s) < 0 ||
        get(p, json_object_get(line, "io"), "read_bytes", &turn->read_bytes) < 0 ||
        get_known(p, json_object_get(line, "machine"), "others_cores", &turn->others_cores) < 0)
        return -EBADMSG;
    int rc = parse_rows(p, json_object_get(line, "stages"));
    return rc < 0 ? rc : parse_rows(p, json_object_get(json_object_get(line, "gpu"), "stages"));
}

static int parse_line(struct parse *p, const char *text, size_t length)
{
    json_error_t why;
    json_t *line = json_loadb(text, length, 0, &why);
    const char *type = json_string_value(json_object_get(line, "type"));
    int rc = 0;
    if (!line)
        rc = bad(p, "no JSON");
    else if (type && strcmp(type, "run") == 0)
        rc = parse_run(p, line);
    else if (type && strcmp(type, "measured") == 0)
        rc = parse_measured(p, line);
    else if (type && strcmp(type, "stages") == 0)
        rc = parse_stages(p, line);
    json_decref(line);
    return rc;
}

int weir_turn_parse(struct weir_turn *turn, const char *text, size_t length, struct weir_err *err)
{
    struct parse p = {.turn = turn, .err = err};
    memset(turn, 0, sizeof *turn);
    turn->cached = turn->wait_p99_s = turn->others_cores = -1;
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t n = end ? (size_t)(end - (text + at)) : length - at;
        p.line++;
        int rc = n > 0 ? parse_line(&p, text + at, n) : 0;
        if (rc < 0)
            return rc;
        at += n + 1;
    }
    if (!p.run || !p.measured || !p.stages)
        return weir_err_set(err, -EBADMSG, "its output has no line \"%s\"",
                            !p.run       ? "run"
                            : p.measured ? "stages"
                                         : "measured");
    if (turn->seconds <= 0 || turn->images <= 0)
        return weir_err_set(err, -EBADMSG, "it ended before anything was measured");
    for (int i = 0; i < turn->n_stages; i++)
        if (strncmp(turn->stages[i].name, "08_", 3) == 0 && turn->stages[i].p99_s > turn->wait_p99_s)
            turn->wait_p99_s = turn->stages[i].p99_s;
    return 0;
}

/* ---- what bounded it ---- */

static bool is(const struct weir_turn_stage *stage, const char *number)
{
    return strncmp(stage->name, number, strlen(number)) == 0;
}

/* 09_wait_for_slot is a worker that is ahead, 09b one that has nothing to do: neither is what the worker is held up by.
 */
static bool is_idle(const struct weir_turn_stage *stage)
{
    return is(stage, "09_") || is(stage, "09b_");
}

static bool is_worker(const struct weir_turn_stage *stage)
{
    return strcmp(stage->side, "worker") == 0 && (strcmp(stage->kind, "work") == 0 || strcmp(stage->kind, "wait") == 0);
}

static bool is_consumer(const struct weir_turn_stage *stage)
{
    bool own = is(stage, "24_") || is(stage, "25_"); /* checksums and reports of weir run itself */
    return strcmp(stage->side, "consumer") == 0 && !own && (strcmp(stage->kind, "work") == 0 || is(stage, "08b_"));
}

const struct weir_turn_stage *weir_turn_bound(const struct weir_turn *turn, double *part)
{
    const struct weir_turn_stage *busiest = NULL, *taking = NULL;
    double ahead_s = 0, all_s = 0;
    for (int i = 0; i < turn->n_stages; i++) {
        const struct weir_turn_stage *stage = &turn->stages[i];
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
        *part = turn->seconds > 0 ? fmin(taking->self_s / turn->seconds, 1) : 0;
        return taking;
    }
    *part = busiest && all_s > 0 ? busiest->self_s / all_s : 0;
    return busiest;
}
