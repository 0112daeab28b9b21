/* series.h: repeated measurements of one quantity, and the header that every benchmark prints. */
#ifndef WEIR_BENCH_SERIES_H
#define WEIR_BENCH_SERIES_H

#include "cli/options.h"
#include "weir/base.h"

enum { SERIES_MAX = 1024 };

struct series {
    int n;
    double values[SERIES_MAX];
};

/* Appends a value; ignored when the series holds SERIES_MAX values. */
void series_add(struct series *series, double value);

/* Returns the q quantile (0..1): 0 the min, 0.5 the median, 1 the max; 0 for an empty series. */
double series_at(const struct series *series, double q);

/* Stores above / below for each round. */
void series_ratio(const struct series *above, const struct series *below, struct series *ratio);

/* Writes an object with n, min, median, p99, max, and all values in the order of measurement. */
void series_json(struct weir_json *json, const char *key, const struct series *series);

/* Parses "1,2,auto" (auto: one per usable core) into counts, each within 1..largest. Returns their number, or -EINVAL
 * with err naming the option. */
int bench_counts(const char *option, const char *text, int largest, int *counts, int max, struct weir_err *err);

/* Prints the machine, the build and its libraries. */
void bench_print_machine(void);
/* Writes the same as JSON to stdout, in an object that is left open, with the options as its member "config". */
void bench_json_begin(struct weir_json *json, const struct weir_command *command, const void *options);

#endif
