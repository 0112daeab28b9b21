/* scenario_print.h: what weir scenario prints. */
#ifndef WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_PRINT_H
#define WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_PRINT_H

#include "extras/scenario/cli/scenario_run.h"

#include <stdio.h>

/* Before all runs: what the options make doubtful. */
void weir_scenario_print_warning(FILE *out, const struct scenario_options *options);
/* Before a run: what is run, and what of the options has no effect. */
void weir_scenario_print_head(FILE *out, const struct scenario_run *run);
/* One run: quick statistics, CUDA operations, GPU idle time, how to read it. */
void weir_scenario_print(FILE *out, const struct scenario_run *run, struct scenario_result *result);
/* Of several runs each a line; then how to read each scenario that is among them. */
void weir_scenario_print_line(FILE *out, const struct scenario_run *run, const struct scenario_result *result);
void weir_scenario_print_table(FILE *out, const struct scenario_run *runs, const struct scenario_result *results,
                               int n);

#endif
