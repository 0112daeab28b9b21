#include "analyze/trials/child.h"
#include "analyze/trials/whatif_run.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/run/run_options.h"
#include "cli/sysinfo.h"
#include "convert/convert_dataset.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/samples/batch_layout.h"
#include "pipeline/samples/read_ahead.h"
#include "weir/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct whatif_options {
    struct run_options run; /* must be first, because shared_options uses offset 0 */
    bool check, json, wide;
    double max_minutes;
    const char *log;
};

#define FIELD(field) .offset = offsetof(struct whatif_options, field)

static const struct weir_opt own_options[] = {
    {"check", WEIR_OPT_FLAG, FIELD(check), NULL, NULL, "predictions verified by trials", .topic = "Predictions",
     .details = "Tries each change that is possible on this machine, and measures it alongside the unchanged run.",
     .is_common = true},
    {"max-minutes", WEIR_OPT_DOUBLE, FIELD(max_minutes), "MIN", "10", "time limit", 0.05, 1e5, .unit = "minutes",
     .is_common = true},
    {"log", WEIR_OPT_TEXT, FIELD(log), "FILE.jsonl", NULL, "log of the findings, for weir report",
     .path = WEIR_PATH_WRITE, .is_common = true},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object", .is_common = true},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "all columns and rows of the tables, and no wrapping"},
};
static const struct weir_opt_set shared_options[] = WEIR_RUN_SETS(0, WEIR_FOR_WHATIF);

/* Returns -EINVAL for options that weir run would reject as a usage error, or 0. */
static int check_options(const struct whatif_options *options, struct weir_err *err)
{
    const struct run_options *run = &options->run;
    int number, rc = weir_device_parse(run->loader.device, &number, err);
    if (rc < 0) {
        weir_err_prefix(err, "--device");
        return -EINVAL;
    }
    if (weir_reading_check(run->loader.io, run->loader.direct, err) == -EINVAL ||
        weir_loader_decoder_check(run->loader.decoder, number >= 0, run->loader.on_warning, err) == -EINVAL ||
        weir_crop_check(run->loader.crop, err) < 0)
        return -EINVAL;
    if (run->loader.format.dtype >= WEIR_DTYPE_F16 && number < 0)
        return weir_err_set(err, -EINVAL, "--dtype: f16 and bf16 need a GPU; add --device cuda, or use f32");
    return 0;
}

/* ---- outputs ---- */

static void describe(struct weir_document *document, const struct weir_whatif *found,
                     const struct weir_command *command, const struct whatif_options *options)
{
    struct weir_sysinfo machine;
    weir_sysinfo_read(&machine);
    weir_document_fact(document, "type", "whatif");
    weir_document_fact(document, "weir", weir_version());
    weir_document_fact(document, "git", weir_git_describe());
    weir_document_object(document, "machine", &weir_sysinfo_fields, &machine);
    weir_options_document(document, "config", NULL, command, options);
    weir_whatif_describe(document, found);
    weir_document_close(document);
}

/* ---- the command ---- */

static struct weir_trial_progress progress;

enum { PROGRESS_HANG = 9 };

static void show_progress(double elapsed_s, const char *what)
{
    struct weir_wrap wrap;
    fputs(weir_progress_erase(), stderr);
    fprintf(weir_wrap_open(&wrap, stderr, PROGRESS_HANG, NULL), "%5.0f s: %s\n", elapsed_s, what);
    weir_wrap_close(&wrap);
}

static void show_trial(const char *what)
{
    weir_trial_progress(&progress, what);
}

static int whatif(const struct weir_command *command, const struct whatif_options *o, const char *data,
                  struct weir_err *err)
{
    static struct weir_whatif found; /* static because it is too large for the stack */
    struct weir_path_list files = {0};
    FILE *log = NULL;
    struct weir_whatif_config config = {.data = data,
                                        .files = &files,
                                        .max_minutes = o->max_minutes,
                                        .check = o->check,
                                        .fastest_format = weir_convert_fastest,
                                        .progress = show_progress,
                                        .trial = show_trial,
                                        .interrupted = &weir_interrupted};
    weir_run_options_copy(&config.run, &o->run);
    int rc = weir_run_source(command, o, &o->run.loader, data, &config.source, &files, NULL, err);
    if (rc == 0)
        rc = weir_output_open(&log, o->log, err); /* early, so that an error precedes the measurements */
    if (rc == 0) {
        uint64_t end_ns = weir_clock_monotonic_ns() + (uint64_t)(o->max_minutes * 60e9);
        weir_trial_progress_begin(&progress, 0, end_ns, "--max-minutes");
        rc = weir_whatif_run(&found, &config, err);
        weir_progress_clear();
    }
    weir_path_list_free(&files);
    struct weir_document document;
    if (rc == 0 && log) {
        weir_document_open(&document, &weir_line_writer, log);
        describe(&document, &found, command, o);
    }
    int closed = weir_output_close(o->log, log, err);
    rc = rc < 0 ? rc : closed;
    weir_document_open(&document, o->json ? &weir_json_writer : &weir_terminal_writer, stdout);
    if (rc == 0)
        describe(&document, &found, command, o);
    return rc;
}

static int whatif_main(const struct weir_command *command, int argc, char **argv)
{
    struct whatif_options o;
    const char *data;
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &data, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    struct weir_err err = WEIR_ERR_NONE;
    if (check_options(&o, &err) < 0) {
        weir_cli_fail(command, &err);
        return WEIR_EXIT_USAGE;
    }
    weir_terminal_set_wide(o.wide);
    weir_catch_interrupts();
    int rc = whatif(command, &o, data, &err);
    if (weir_interrupted)
        return weir_exit_by_signal(weir_interrupted);
    return rc < 0 ? weir_cli_fail(command, &err) : 0;
}

const struct weir_command weir_cmd_whatif = {
    .name = "whatif",
    .summary = "predict each change's speed-up, then verify it",
    .group = WEIR_GROUP_IMPROVE,
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_READ},
    .opts = own_options,
    .n_opts = sizeof own_options / sizeof own_options[0],
    .sets = shared_options,
    .takes_config = true,
    .examples = "weir whatif episodes/ --step-ms 20\tWhat would help a training step of 20 ms that waits for data.\n"
                "weir whatif episodes/ --num-workers 4 --check --log whatif.jsonl\tEvery change is tried and measured, "
                "and shown next to its prediction.\n",
    .notes = "The options are those of weir run, which is started several times for short measurements. "
             "Predictions are ratios of images/s. Ctrl-C stops the measurement and prints the results so far "
             "(exit status 130).",
    .run = whatif_main,
};
