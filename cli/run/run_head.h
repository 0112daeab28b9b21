/* run_head.h: the output before a run's first batch: lines on stderr, and the "run" line of the log. */
#ifndef WEIR_CLI_RUN_RUN_HEAD_H
#define WEIR_CLI_RUN_RUN_HEAD_H

#include "base/ranks.h"
#include "cli/commands.h"
#include "cli/run/run_loop.h"
#include "cli/run/run_options.h"
#include "weir/loader.h"

#include <stdio.h>

/* All members are borrowed. */
struct weir_run_head {
    const struct weir_command *command;
    const void *values; /* the command's option values, for the log */
    const struct run_options *options;
    const char *data;
    const struct weir_ranks *ranks;
    const struct weir_run_consumer *consumer; /* may be NULL */
};

/* Prints the machine line, including the number of cores that the loader uses, to stderr. */
void weir_run_head_machine(struct weir_report_machine *machine, const struct weir_loader *loader);
/* Prints the dataset, the loader and its device to stderr. */
void weir_run_head_print(const struct weir_run_head *head, const struct weir_loader *loader);
/* Writes the "run" line. load_average is the load at the start of the run; negative if unknown. */
void weir_run_head_log(FILE *out, const struct weir_run_head *head, const struct weir_loader *loader,
                       double load_average);

#endif
