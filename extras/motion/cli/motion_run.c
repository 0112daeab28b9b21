#include "analyze/trials/child.h"
#include "extras/motion/cli/motion_cli.h"
#include "weir/base.h"
#include "weir/profiler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The resources of a run. */
struct parts {
    const struct motion_options *options;
    struct weir_motion *motion;
    struct weir_profiler *profiler;
    struct motion_figures *figures;
    struct weir_err trace; /* error while writing the trace */
    double *ms;            /* duration of each timed step */
};

/* ---- the profiler ---- */

static void on_message(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "weir motion: profile: %s\n", line);
}

static void on_window(void *user, const struct weir_profiler_window *window)
{
    struct parts *parts = user;
    snprintf(parts->figures->trace_path, sizeof parts->figures->trace_path, "%s", window->path ? window->path : "");
    if (window->error)
        weir_err_set(&parts->trace, -EIO, "%s", window->error);
}

/* Returns JSON members for the trace, without the enclosing braces. The caller frees the string. NULL if memory is
 * exhausted. */
static char *metadata_of(const struct motion_options *options)
{
    struct weir_json json;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "weir_task", options->task ? options->task : "");
    weir_json_int(&json, "weir_num_envs", options->num_envs);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    char *end = fclose(out) == 0 && text ? strrchr(text, '}') : NULL;
    if (!end) {
        free(text);
        return NULL;
    }
    *end = '\0';
    memmove(text, text + 1, strlen(text));
    return text;
}

/* Configures the profiler like the trainer's start_profiling. */
static int open_profiler(struct parts *parts, struct weir_err *err)
{
    const struct motion_options *o = parts->options;
    struct weir_profiler_config config;
    char *metadata = metadata_of(o);
    weir_profiler_config_default(&config);
    config.schedule = (struct weir_schedule){.wait = 0, .warmup = o->warmup, .active = o->active, .repeat = 1};
    config.record_shapes = !o->no_shapes;
    config.profile_memory = !o->no_memory;
    config.with_stack = !o->no_stack;
    config.gpu = o->gpu >= 0;
    config.folder = o->trace_path;
    config.metadata = metadata;
    config.on_trace_ready = on_window;
    config.on_message = on_message;
    config.user = parts;
    int rc = weir_profiler_open(&parts->profiler, &config, err);
    free(metadata);
    return rc;
}

static int close_profiler(struct parts *parts, struct weir_err *err)
{
    weir_profiler_stop(parts->profiler);
    weir_profiler_flush(parts->profiler);
    parts->figures->trace = weir_profiler_take(parts->profiler);
    weir_profiler_close(&parts->profiler);
    if (parts->trace.code < 0)
        return weir_err_set(err, parts->trace.code, "cannot write the trace: %s", parts->trace.text);
    if (!parts->figures->trace)
        return weir_err_set(err, -ENOMEM, "out of memory for the trace; use a smaller --active");
    return 0;
}

/* ---- steps ---- */

static int step(struct parts *parts, struct weir_err *err)
{
    int rc = weir_motion_update(parts->motion, err);
    if (rc < 0 || parts->options->gpu < 0)
        return rc;
    WEIR_RANGE("measurement");
    return weir_motion_finish(parts->motion, err);
}

static int record_steps(struct parts *parts, struct weir_err *err)
{
    int rc = open_profiler(parts, err), n = parts->options->warmup + parts->options->active, i = 0;
    for (; i < n && rc == 0 && !weir_interrupted; i++) {
        rc = step(parts, err);
        weir_profiler_step(parts->profiler);
    }
    return rc == 0 && i == n ? close_profiler(parts, err) : rc;
}

static int time_steps(struct parts *parts, struct weir_err *err)
{
    const struct motion_options *o = parts->options;
    int rc = 0, n = o->num_steps - o->warmup - o->active, i = 0;
    for (; i < n && rc == 0 && !weir_interrupted; i++) {
        uint64_t start_ns = weir_clock_monotonic_ns();
        rc = step(parts, err);
        parts->ms[i] = (double)(weir_clock_monotonic_ns() - start_ns) / 1e6;
    }
    parts->figures->timed = i;
    return rc;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sum_up(struct parts *parts)
{
    struct motion_figures *f = parts->figures;
    f->operators = weir_motion_operators(parts->motion);
    if (f->timed < 1)
        return;
    qsort(parts->ms, (size_t)f->timed, sizeof *parts->ms, by_size);
    f->min_ms = parts->ms[0];
    f->median_ms = (parts->ms[(f->timed - 1) / 2] + parts->ms[f->timed / 2]) / 2;
    f->p99_ms = parts->ms[(int)(0.99 * (f->timed - 1))];
    f->max_ms = parts->ms[f->timed - 1];
}

static int open_parts(struct parts *parts, const struct weir_motion_clips *clips, struct weir_err *err)
{
    const struct motion_options *o = parts->options;
    struct weir_motion_config config;
    weir_motion_config_default(&config);
    config.clips = clips;
    config.envs = (size_t)o->num_envs;
    config.steps = o->num_steps_to_use;
    config.variant = (enum weir_motion_variant)o->variant;
    config.advice = weir_motion_advice_of(o);
    config.seed = o->seed;
    config.gpu = o->gpu;
    config.threads = o->threads == WEIR_OPT_AUTO ? 0 : o->threads;
    parts->ms = calloc((size_t)o->num_steps, sizeof *parts->ms);
    if (!parts->ms)
        return weir_err_set(err, -ENOMEM, "out of memory");
    int rc = weir_motion_open(&parts->motion, &config, err);
    if (rc == 0)
        snprintf(parts->figures->engine, sizeof parts->figures->engine, "%s", weir_motion_engine(parts->motion));
    return rc;
}

int weir_motion_run(const struct motion_options *options, const struct weir_motion_clips *clips,
                    struct motion_figures *figures, struct weir_err *err)
{
    struct parts parts = {.options = options, .figures = figures};
    *figures = (struct motion_figures){0};
    int rc = open_parts(&parts, clips, err);
    if (rc == 0)
        rc = record_steps(&parts, err);
    if (rc == 0 && figures->trace)
        rc = time_steps(&parts, err);
    if (rc == 0 && figures->trace)
        sum_up(&parts);
    weir_profiler_close(&parts.profiler);
    weir_motion_close(&parts.motion);
    free(parts.ms);
    return rc == 0 && weir_interrupted ? 1 : rc;
}

void weir_motion_figures_clear(struct motion_figures *figures)
{
    weir_trace_free(&figures->trace);
}
