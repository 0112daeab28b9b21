/* run_head.h: what is said of a run before its first batch: lines for people, and the line "run" of the log. */
#ifndef WEIR_CLI_RUN_RUN_HEAD_H
#define WEIR_CLI_RUN_RUN_HEAD_H

#include "base/ranks.h"
#include "cli/commands.h"
#include "cli/run/run_loop.h"
#include "cli/run/run_options.h"
#include "weir/loader.h"

#include <stdio.h>

/* All borrowed. */
struct weir_run_head {
    const struct weir_command *command;
    const void *values; /* of the command's options, which the log repeats */
    const struct run_options *options;
    const char *data;
    const struct weir_ranks *ranks;
    const struct weir_run_consumer *consumer; /* may be NULL */
};

/* Prints the machine line to stderr; its part of the cores is the loader's. */
void weir_run_head_machine(struct weir_report_machine *machine, const struct weir_loader *loader);
/* To stderr. */
void weir_run_head_print(const struct weir_run_head *head, const struct weir_loader *loader);
/* load_average: when the run began; negative = not known. */
void weir_run_head_log(FILE *out, const struct weir_run_head *head, const struct weir_loader *loader,
                       double load_average);

#endif
