/* bench_print.h: what `weir bench` found out, as a table, as one JSON object, as a line of CSV a cell. */
#ifndef WEIR_CLI_BENCH_BENCH_PRINT_H
#define WEIR_CLI_BENCH_BENCH_PRINT_H

#include "analyze/trials/advice.h"
#include "analyze/trials/rotation.h"
#include "cli/bench/bench_setup.h"
#include "cli/options.h"

#include <stdio.h>

struct bench_results {
    const struct bench_setup *setup;
    const struct weir_grid *grid;
    struct weir_rotation_result warm, cold;
    struct weir_advice advice;
    double took_s;
};

/* Of the format's cells the one that others are compared with: the best of as-is, or of the first format; NULL = none.
 */
const struct weir_cell *bench_reference(const struct weir_grid *grid, bool cold);
/* The best of all cells in this state. */
const struct weir_cell *bench_leader(const struct weir_grid *grid, bool cold);
/* The command line, quoted for a shell, without --json. */
void bench_command(const struct weir_cell *cell, FILE *out);
/* How the rotations ended, a line each; "" when everything is as it should be. */
void bench_remarks(const struct bench_results *results, FILE *out);

void bench_print(const struct bench_results *results, FILE *out);
void bench_print_csv(const struct bench_results *results, FILE *out);
void bench_print_json(const struct bench_results *results, const struct weir_command *command, FILE *out);

#endif
