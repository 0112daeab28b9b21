#include "analyze/trials/interrupt.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/sysinfo.h"
#include "cli/whatif/whatif_parts.h"
#include "weir/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what was found ---- */

static void write_json(FILE *out, const struct weir_whatif *found, const struct weir_command *command,
                       const struct whatif_options *options, bool pretty)
{
    struct weir_json json;
    struct weir_sysinfo machine;
    weir_sysinfo_read(&machine);
    weir_json_open(&json, out, pretty);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "whatif");
    weir_json_text(&json, "weir", weir_version());
    weir_json_text(&json, "git", weir_git_describe());
    weir_json_object(&json, "machine");
    weir_sysinfo_json(&machine, &json);
    weir_json_end(&json, '}');
    weir_json_object(&json, "config");
    weir_options_json(command, options, &json);
    weir_json_end(&json, '}');
    weir_whatif_json(&json, found);
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static int write_log(const struct whatif *w, FILE *log, const struct weir_command *command, struct weir_err *err)
{
    const char *path = w->options->log;
    if (!log)
        return 0;
    write_json(log, &w->found, command, w->options, false);
    if (fflush(log) == 0 && !ferror(log))
        return 0;
    return weir_err_set(err, -EIO, "%s: could not be written completely; is the disk full?", path);
}

/* ---- the command ---- */

static int find_out(struct whatif *w, struct weir_err *err)
{
    int rc = whatif_measure_now(w, err);
    if (rc == 0)
        rc = whatif_ladder(w);
    if (rc == 0)
        rc = whatif_predict(w);
    if (rc == 0 && w->options->check)
        rc = whatif_check(w);
    if (rc == -ENOMEM)
        weir_err_set(err, rc, "out of memory");
    w->found.interrupted = rc == -EINTR;
    w->found.seconds = (double)(weir_clock_monotonic_ns() - w->begin_ns) / 1e9;
    return rc == -EINTR && w->now.known ? 0 : rc;
}

static int whatif(struct whatif *w, const struct weir_command *command, struct weir_err *err)
{
    FILE *log = NULL;
    int rc = whatif_open(w, command, err);
    if (rc == 0)
        rc = weir_output_open(&log, w->options->log, err); /* before anything is measured */
    if (rc == 0)
        rc = find_out(w, err);
    whatif_remove_copies(w);
    weir_path_list_free(&w->files);
    if (rc == 0)
        rc = write_log(w, log, command, err);
    if (log)
        fclose(log);
    if (rc == 0 && w->options->json)
        write_json(stdout, &w->found, command, w->options, true);
    else if (rc == 0)
        weir_whatif_print(stdout, &w->found);
    return rc;
}

static int whatif_main(const struct weir_command *command, int argc, char **argv)
{
    static struct whatif w; /* large */
    struct whatif_options o;
    const char *data;
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &data, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_whatif_options_check(&o, &err) < 0) {
        weir_cli_fail(command, &err);
        return 2;
    }
    uint64_t now_ns = weir_clock_monotonic_ns();
    w = (struct whatif){.options = &o,
                        .data = data,
                        .interrupted = &weir_interrupted,
                        .begin_ns = now_ns,
                        .end_ns = now_ns + (uint64_t)(o.max_minutes * 60e9),
                        .base = {.run = o.run, .data = data}};
    weir_catch_interrupts();
    int rc = whatif(&w, command, &err);
    if (weir_interrupted)
        return 130;
    return rc < 0 ? weir_cli_fail(command, &err) : 0;
}

const struct weir_command weir_cmd_whatif = {
    .name = "whatif",
    .summary = "say what changes of a run would give, and check it",
    .group = WEIR_GROUP_TUNE,
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_READ},
    .opts = weir_whatif_opts,
    .n_opts = WEIR_WHATIF_OPTS,
    .sets = weir_whatif_sets,
    .takes_config = true,
    .examples = "weir whatif episodes/ --step-ms 20\tWhat would help a training step of 20 ms that waits for data.\n"
                "weir whatif episodes/ --num-workers 4 --check --log whatif.jsonl\tEvery change is made and measured, "
                "and what was predicted stands beside it.\n",
    .notes = "Options are those of weir run. It is run for short times, one process each. Predictions are ratios of\n"
             "images/s. Ctrl-C ends with what is known so far (exit status 130).",
    .run = whatif_main,
};
