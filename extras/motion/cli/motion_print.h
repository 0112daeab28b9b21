/* motion_print.h: the output of weir motion. */
#ifndef WEIR_EXTRAS_MOTION_CLI_MOTION_PRINT_H
#define WEIR_EXTRAS_MOTION_CLI_MOTION_PRINT_H

#include "extras/motion/cli/motion_run.h"
#include "extras/motion/clips/motion_clips.h"

#include <stdio.h>

/* Before the run: the configuration. */
void weir_motion_print_head(FILE *out, const struct motion_options *options, const struct weir_motion_clips *clips);
/* The trainer's report, then the figures. */
void weir_motion_print(FILE *out, const struct motion_options *options, const struct motion_figures *figures);
/* Prints the figures as one line of JSON, with the command's options. */
void weir_motion_print_json(FILE *out, const struct weir_command *command, const struct motion_options *options,
                            const struct motion_figures *figures);

#endif
