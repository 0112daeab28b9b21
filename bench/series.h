/* series.h: a series of repeated measurements, and the header that every benchmark prints. */
#ifndef WEIR_BENCH_SERIES_H
#define WEIR_BENCH_SERIES_H

#include "cli/options.h"
#include "weir/base.h"

enum { SERIES_MAX = 1024 };

struct series {
    int n;
    double values[SERIES_MAX];
};

/* Appends a value. Does nothing if the series already contains SERIES_MAX values. */
void series_add(struct series *series, double value);

/* Returns the quantile q: the min for 0, the median for 0.5, the max for 1. Returns 0 for an empty series. */
double series_at(const struct series *series, double q);

/* Computes above / below for each round. */
void series_ratio(const struct series *above, const struct series *below, struct series *ratio);

/* Writes an object with n, min, median, p99, max, and all values in order of measurement. */
void series_json(struct weir_json *json, const char *key, const struct series *series);

/* Parses numbers such as "1,2,auto" into counts, where auto means the number of usable cores. Each number must be
 * in 1..largest. Returns how many numbers there are, or -EINVAL with an error that names the option. */
int bench_counts(const char *option, const char *text, int largest, int *counts, int max, struct weir_err *err);

/* Prints a description of the machine, the build and the libraries. */
void bench_print_machine(void);
/* Begins a JSON object on stdout with the same description, and the options as its member "config". The object remains
 * open. */
void bench_json_begin(struct weir_json *json, const struct weir_command *command, const void *options);

#endif
