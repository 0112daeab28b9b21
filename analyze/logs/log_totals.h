/* log_totals.h: stage totals over time, as a matrix of stages and tables, collected while a log is read. */
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
    uint64_t line;   /* number of its first line in the log */
    int epoch_first; /* epochs that it covers; 0 = unknown */
    int epoch_last;
    bool final;      /* it covers the whole run */
    int after_epoch; /* last epoch named before the table; -1 = none */
    bool closed;     /* its closing line was found */
    size_t first_cell, n_cells;
};

struct weir_totals_cell {
    int stage;
    uint64_t count;
    double total_s, mean_s;
};

struct weir_totals {
    int decimals; /* number of decimals for printing seconds and milliseconds */
    int n_stages;
    char (*names)[WEIR_TOTALS_NAME_SIZE];
    size_t n_tables, n_cells;
    struct weir_totals_table *tables;
    struct weir_totals_cell *cells;
    bool full;             /* the max number of tables is reached */
    uint64_t dropped_rows; /* rows beyond the limits above */
};

void weir_totals_free(struct weir_totals *totals);

/* Begins a table, to which the following rows belong. Returns 0 or -ENOMEM. */
int weir_totals_begin_table(struct weir_totals *totals, const struct weir_totals_table *table);
/* Adds a row; name must be printable. Returns 0 or -ENOMEM. Rows beyond the limits are only counted, in dropped_rows.
 */
int weir_totals_add(struct weir_totals *totals, const char *name, double total_s, uint64_t count, double mean_s);
/* Returns whether the latest table has a row with this name. */
bool weir_totals_has(const struct weir_totals *totals, const char *name);
/* Removes the latest table if it has no rows. */
void weir_totals_drop_empty(struct weir_totals *totals);

/* Returns whether each table seems to continue the counts of the previous one: no total and no call count decreases, no
 * stage disappears unless the table was cut off, and no total grows without calls. False if there are fewer than two
 * tables, or if rows were dropped. */
bool weir_totals_cumulative(const struct weir_totals *totals);

/* If the last of three or more tables has the sums of all others, marks it as that of the whole run. */
void weir_totals_find_whole(struct weir_totals *totals);

/* Each stage's figures over the whole log. Stages without calls have 0. */
struct weir_totals_whole {
    double total_s[WEIR_TOTALS_STAGES_MAX];
    uint64_t count[WEIR_TOTALS_STAGES_MAX];
};

/* If the tables are cumulative, the figures come from the last table. Otherwise they are the sums of the tables that
 * cover whole runs, or without such tables, of all tables. */
void weir_totals_whole(const struct weir_totals *totals, bool cumulative, struct weir_totals_whole *whole);

/* Prints matrices of totals and means. If the tables are cumulative, also prints matrices of the differences between
 * tables. */
void weir_totals_print(FILE *out, const struct weir_totals *totals, bool cumulative);
/* Adds the members "tables", "totals" and "periods" (null unless cumulative) to the open JSON object. */
void weir_totals_json(struct weir_json *json, const struct weir_totals *totals, bool cumulative);

#endif
