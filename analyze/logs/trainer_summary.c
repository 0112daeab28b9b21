/* The summary of TraceML (traceml-ai on PyPI), a JSON document with means per step. */
#include "analyze/logs/log_words.h"
#include "analyze/logs/trainer.h"
#include "base/claims.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DOCUMENT_MAX_BYTES = 4 << 20, RANKS_MAX = 4096 };
enum { BEFORE, INSIDE, ELSEWHERE }; /* of the document, which begins with the log's first line */
enum { STEP, WAIT, FETCH, H2D, COMPUTE, RESIDUAL };

static bool is_summary(const struct weir_trainer_log *log, const char *line)
{
    (void)line;
    return log->state_ != ELSEWHERE;
}

static int append(struct weir_trainer_log *log, const char *text)
{
    size_t length = strlen(text);
    if (log->document_bytes_ + length + 2 > DOCUMENT_MAX_BYTES) {
        log->state_ = ELSEWHERE;
        return 0;
    }
    if (!log->document_)
        log->document_ = malloc(DOCUMENT_MAX_BYTES);
    if (!log->document_)
        return -ENOMEM;
    memcpy(log->document_ + log->document_bytes_, text, length);
    log->document_[log->document_bytes_ + length] = '\n';
    log->document_bytes_ += length + 1;
    return 0;
}

/* The brace on the first line of a file can be missing, because weir_log_unread skips it. */
static int parse_summary(struct weir_trainer_log *log, const char *line, uint64_t number)
{
    (void)number;
    const char *text = weir_skip_spaces(line);
    bool braceless = strncmp(text, "\"schema_version\":", strlen("\"schema_version\":")) == 0;
    if (log->state_ == BEFORE) {
        log->state_ = *text == '{' || braceless ? INSIDE : ELSEWHERE;
        int code = braceless ? append(log, "{") : 0;
        if (code < 0 || log->state_ == ELSEWHERE)
            return code;
    }
    return append(log, line);
}

/* Adds a row with the metrics, in seconds. */
static int add_metrics(struct weir_trainer_log *log, const char *label, const json_t *metrics)
{
    static const char *const keys[] = {
        [STEP] = "step_time_ms", [WAIT] = "input_wait_ms", [FETCH] = "dataloader_fetch_cpu_ms",
        [H2D] = "h2d_ms",        [COMPUTE] = "compute_ms", [RESIDUAL] = "residual_ms"};
    struct weir_trainer_row *row;
    int code = weir_trainer_add(log, 1, &row);
    if (code < 0 || !row)
        return code;
    for (int i = 0; i <= RESIDUAL; i++) {
        const json_t *value = json_object_get(metrics, keys[i]);
        double ms = json_is_number(value) ? json_number_value(value) : NAN;
        row->values[i] = ms >= 0 && weir_plausible_time(ms / 1e3) ? ms / 1e3 : NAN;
    }
    weir_trainer_label(row, label, strlen(label));
    return 0;
}

/* Reads the ranks, or the mean if there is only one. */
static int read_step_time(struct weir_trainer_log *log, json_t *step_time)
{
    json_t *global = json_object_get(step_time, "global"), *rank;
    json_t *ranks = json_object_get(json_object_get(step_time, "groups"), "rows");
    const char *key;
    json_t *steps = json_object_get(json_object_get(global, "window"), "steps_analyzed");
    if (json_is_number(steps) && json_number_value(steps) > 0 && json_number_value(steps) < 1e15)
        log->steps_per_row = json_number_value(steps);
    log->ranks = json_object_size(ranks) <= RANKS_MAX ? (int)json_object_size(ranks) : 0;
    if (log->ranks < 2)
        return add_metrics(log, "mean", json_object_get(global, "average"));
    json_object_foreach(ranks, key, rank)
    {
        char label[WEIR_TRAINER_LABEL];
        snprintf(label, sizeof label, "rank %.16s", key);
        int code = add_metrics(log, label, json_object_get(rank, "metrics"));
        if (code < 0)
            return code;
    }
    return 0;
}

static int finish_summary(struct weir_trainer_log *log)
{
    if (log->state_ != INSIDE)
        return 0;
    struct weir_err ignored = WEIR_ERR_NONE;
    bool fits = weir_json_claim(log->document_, log->document_bytes_, NULL, &ignored) == 0;
    json_t *summary = fits ? json_loadb(log->document_, log->document_bytes_, JSON_REJECT_DUPLICATES, NULL) : NULL;
    json_t *step_time = json_object_get(summary, "step_time");
    bool found = json_is_object(json_object_get(json_object_get(step_time, "global"), "average"));
    int code = found ? read_step_time(log, step_time) : 0;
    json_decref(summary);
    return code;
}

static void remark_on_summary(FILE *out, const struct weir_trainer_log *log)
{
    if (log->steps_per_row > 0)
        fprintf(out, "  means of %.0f steps\n", log->steps_per_row);
    if (log->ranks > 1)
        fprintf(out, "  the wait is the mean of %d ranks\n", log->ranks);
}

const struct weir_trainer weir_trainer_traceml = {
    .name = "traceml",
    .title = "the summary of TraceML",
    .label = "rank",
    .columns = {[STEP] = {"step_time", "step", WEIR_TRAINER_STEP, .unit = WEIR_TRAINER_SECONDS},
                [WAIT] = {"input_wait", NULL, WEIR_TRAINER_WAIT, .unit = WEIR_TRAINER_SECONDS},
                [FETCH] = {"dataloader_fetch_cpu", "fetch (CPU)", WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_SECONDS},
                [H2D] = {"h2d", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_SECONDS},
                [COMPUTE] = {"compute", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_SECONDS},
                [RESIDUAL] = {"residual", NULL, WEIR_TRAINER_OTHER, .unit = WEIR_TRAINER_SECONDS}},
    .recognise = is_summary,
    .parse = parse_summary,
    .finish = finish_summary,
    .remark = remark_on_summary,
    .means =
        "input_wait is the wait for a batch, part of step_time; dataloader_fetch_cpu is the time in the DataLoader",
    .watch = "python -m weir watch SCRIPT ...",
};
