#include "analyze/trials/child.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "cli/outputs.h"
#include "extras/motion/cli/motion_cli.h"

#include <string.h>

static int read_clips(const struct motion_options *o, struct weir_motion_clips **clips, struct weir_err *err)
{
    const struct weir_motion_synthetic made_up = {.seed = o->seed, .loop = o->loop == WEIR_MOTION_LOOP_ALWAYS};
    const struct weir_motion_read_options read = {
        .root_body = o->root_body, .key_bodies = o->key_bodies, .loop = (enum weir_motion_loop)o->loop};
    if (strcmp(o->motion, "synthetic") == 0)
        return weir_motion_synthetic(clips, &made_up, err);
    return weir_motion_read(clips, o->motion, &read, err);
}

static int run_with(const struct weir_command *command, struct motion_options *options,
                    const struct weir_motion_clips *clips, struct weir_err *err)
{
    struct motion_figures figures;
    weir_motion_print_head(stderr, options, clips);
    int rc = weir_motion_run(options, clips, &figures, err);
    bool recorded = rc >= 0 && figures.trace;
    struct weir_document document;
    weir_document_open(&document, options->json ? &weir_json_writer : &weir_terminal_writer, stdout);
    if (recorded) {
        weir_motion_describe(&document, command, options, &figures);
        weir_document_close(&document);
    }
    if (rc > 0)
        fputs(recorded ? "weir motion: interrupted; the figures cover the steps so far\n"
                       : "weir motion: interrupted; no figures\n",
              stderr);
    weir_motion_figures_clear(&figures);
    return rc;
}

static int run_motion(const struct weir_command *command, int argc, char **argv)
{
    struct motion_options options;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_motion_clips *clips = NULL;
    int n;
    enum weir_parse parse = weir_options_parse(command, &options, sizeof options, argc, argv, NULL, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    if (weir_motion_options_check(&options, &err) < 0) {
        weir_cli_fail(command, &err);
        return WEIR_EXIT_USAGE;
    }
    weir_terminal_set_wide(options.wide);
    weir_catch_interrupts();
    int rc = weir_motion_choose_device(&options, &err);
    if (rc == 0)
        rc = read_clips(&options, &clips, &err);
    if (rc == 0 && options.trace_path)
        rc = weir_output_folder(options.trace_path, "the folder of --trace_path", &err);
    if (rc == 0)
        rc = run_with(command, &options, clips, &err);
    weir_motion_clips_free(&clips);
    return rc < 0 ? weir_cli_fail(command, &err) : rc > 0 ? weir_exit_by_signal(weir_interrupted) : 0;
}

const struct weir_command weir_cmd_motion = {
    .name = "motion",
    .summary = "sample motion clips for many environments and show where time goes",
    .group = WEIR_GROUP_EXTRAS,
    .opts = weir_motion_opts,
    .n_opts = MOTION_OPTS,
    .examples = weir_motion_examples,
    .notes = "A step does what a whole-body-tracking trainer does with its motion data: for each environment "
             "it samples the robot's state at a time in a clip, interpolated between two frames. Shapes, "
             "memory and call stacks are recorded, and the report has the trainer's format.",
    .run = run_motion,
};
