/* series.h: repeated measurements of one thing, and what every benchmark prints before them. */
#ifndef WEIR_BENCH_SERIES_H
#define WEIR_BENCH_SERIES_H

#include "base/err.h"
#include "base/json.h"
#include "cli/options.h"

enum { SERIES_MAX = 1024 };

struct series {
    int n;
    double values[SERIES_MAX];
};

/* Drops what is past SERIES_MAX. */
void series_add(struct series *series, double value);

/* The value below which the fraction q (0..1) lies: 0 the least, 0.5 the median, 1 the largest; 0 when empty. */
double series_at(const struct series *series, double q);

/* Of each round, one by the other. */
void series_ratio(const struct series *above, const struct series *below, struct series *ratio);

/* An object with n, min, median, p99, max, and all values in the order of measuring. */
void series_json(struct weir_json *json, const char *key, const struct series *series);

/* Reads "1,2,auto" (auto: one per usable core) into counts, each within 1..largest. How many there are, or -EINVAL with
 * err naming the option. */
int bench_counts(const char *option, const char *text, int largest, int *counts, int max, struct weir_err *err);

/* The machine, the build and its libraries. */
void bench_print_machine(void);
/* The same in JSON on stdout, in an object that is left open, with the options as its member "config". */
void bench_json_begin(struct weir_json *json, const struct weir_command *command, const void *options);

#endif
