#include "analyze/trials/interrupt.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/tune/tune_print.h"
#include "weir/base.h"

#include <errno.h>
#include <string.h>

/* An end before the search is over has a result too, and its own exit status. */
static int search(const struct weir_command *command, struct tune_session *s, struct weir_err *err)
{
    tune_print_head(s, s->out);
    int rc = weir_tune_run(&s->tune, err);
    if (s->tune.chosen < 0)
        return rc;
    if (s->options->json)
        tune_print_json(s, command, stdout);
    else
        tune_print(s, stdout);
    if (rc == -ENOMEM)
        return weir_err_set(err, rc, "out of memory");
    return s->options->out ? tune_write_config(s, err) : 0;
}

static int tune(const struct weir_command *command, struct tune_session *s, struct weir_err *err)
{
    int rc = tune_session_open(s, command, err);
    if (rc == 0 && s->options->out)
        rc = weir_gz_open(&s->config, s->options->out, WEIR_GZ_PLAIN, err);
    if (rc == 0)
        rc = weir_output_open(&s->log, s->options->log, err);
    if (rc == 0)
        rc = search(command, s, err);
    int closed = weir_output_close(s->options->log, s->log, err);
    weir_gz_discard(&s->config);
    tune_session_close(s);
    return rc < 0 ? rc : closed;
}

static int tune_main(const struct weir_command *command, int argc, char **argv)
{
    static struct tune_session session; /* large */
    struct tune_options o;
    const char *data;
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &data, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    struct weir_err err = WEIR_ERR_NONE;
    session.options = &o;
    session.data = data;
    session.out = o.json ? stderr : stdout;
    session.interrupted = &weir_interrupted;
    session.begin_ns = weir_clock_monotonic_ns();
    session.end_ns = session.begin_ns + (uint64_t)(o.max_minutes * 60e9);
    weir_catch_interrupts();
    int rc = tune(command, &session, &err);
    if (rc < 0 && !weir_interrupted)
        weir_cli_fail(command, &err);
    if (rc == -EINVAL)
        return 2;
    return weir_interrupted ? 130 : rc < 0;
}

const struct weir_command weir_cmd_tune = {
    .name = "tune",
    .summary = "find workers, prefetch, I/O engine, decoder and decode cache for this machine",
    .group = WEIR_GROUP_TUNE,
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_READ},
    .opts = weir_tune_opts,
    .n_opts = TUNE_OPTS,
    .takes_config = true,
    .sets = weir_tune_sets,
    .examples =
        "weir tune episodes/ --step-ms 20\tThe cheapest settings that keep up with a training step of 20 ms.\n"
        "weir tune episodes/ --max-memory 4G --max-cpu 8 --out node.conf\tWithin limits, and written for --config.\n"
        "weir run episodes/ --config node.conf\tA run with what was found.\n",
    .notes = "Settings are measured by weir run, one process a turn. What the bounds of the first one rule out is not "
             "tried;\n"
             "the finalists take turns in rounds, and the cheapest within 3 % of the fastest is taken: fewest workers, "
             "then\n"
             "least memory, then the simplest engine. Ctrl-C ends with the best so far.",
    .run = tune_main,
};
