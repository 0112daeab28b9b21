/* motion_print.h: what weir motion prints. */
#ifndef WEIR_EXTRAS_MOTION_CLI_MOTION_PRINT_H
#define WEIR_EXTRAS_MOTION_CLI_MOTION_PRINT_H

#include "extras/motion/cli/motion_run.h"
#include "extras/motion/clips/motion_clips.h"

#include <stdio.h>

/* Before the run: what is asked, of what. */
void weir_motion_print_head(FILE *out, const struct motion_options *options, const struct weir_motion_clips *clips);
/* The trainer's report, then the figures. */
void weir_motion_print(FILE *out, const struct motion_options *options, const struct motion_figures *figures);
/* The figures as an object on a line; command: whose options. */
void weir_motion_print_json(FILE *out, const struct weir_command *command, const struct motion_options *options,
                            const struct motion_figures *figures);

#endif
