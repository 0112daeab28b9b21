/* log_totals.h: stage totals over time, a matrix of stages by tables, collected while a log is read. */
#ifndef WEIR_ANALYZE_LOGS_LOG_TOTALS_H
#define WEIR_ANALYZE_LOGS_LOG_TOTALS_H

#include "weir/base.h"
#include "weir/profiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    WEIR_TOTALS_STAGES_MAX = 256,
    WEIR_TOTALS_TABLES_MAX = 1 << 14,
    WEIR_TOTALS_CELLS_MAX = 1 << 19,
    WEIR_TOTALS_NAME_SIZE = 128,
};

struct weir_totals_table {
    uint64_t line;   /* first line in the log */
    int epoch_first; /* covered epochs, 0 = unknown */
    int epoch_last;
    bool final;      /* covers the whole run */
    int after_epoch; /* last epoch named before it, -1 = none */
    bool closed;     /* its last line exists */
    size_t first_cell, n_cells;
};

struct weir_totals_cell {
    int stage;
    uint64_t count;
    double total_s, mean_s;
};

struct weir_totals {
    int decimals; /* for printed seconds and milliseconds */
    int n_stages;
    char (*names)[WEIR_TOTALS_NAME_SIZE];
    size_t n_tables, n_cells;
    struct weir_totals_table *tables;
    struct weir_totals_cell *cells;
    bool full;             /* the limit of tables is reached */
    uint64_t dropped_rows; /* beyond the limits above */
};

void weir_totals_free(struct weir_totals *totals);

/* Begins a table for the following rows. Returns 0 or -ENOMEM. */
int weir_totals_begin(struct weir_totals *totals, const struct weir_totals_table *table);
/* Adds a row; name must be printable. Returns 0 or -ENOMEM. Rows beyond the limits are counted in dropped_rows. */
int weir_totals_add(struct weir_totals *totals, const char *name, double total_s, uint64_t count, double mean_s);
/* Whether the latest table has a row with this name. */
bool weir_totals_has(const struct weir_totals *totals, const char *name);
/* Removes the latest table if it has no rows. */
void weir_totals_drop_empty(struct weir_totals *totals);

/* Whether each table seems to continue the previous one: no total and no call count decreases, no stage disappears, no
 * total grows without calls. False for fewer than two tables. */
bool weir_totals_cumulative(const struct weir_totals *totals);

/* Each stage's total over the whole log: from the last table if they are cumulative, otherwise the sum of the tables of
 * whole runs, otherwise the sum of all. 0 for stages without calls. */
void weir_totals_whole(const struct weir_totals *totals, bool cumulative, double total_s[WEIR_TOTALS_STAGES_MAX]);

/* Prints matrices of totals and means; if cumulative, also those of the differences between tables. */
void weir_totals_print(FILE *out, const struct weir_totals *totals, bool cumulative);
/* Writes the members "tables", "totals" and "periods" (null unless cumulative) of the open object. */
void weir_totals_json(struct weir_json *json, const struct weir_totals *totals, bool cumulative);

#endif
