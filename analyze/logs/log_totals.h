/* log_totals.h: stage totals over time: a matrix of stages by tables, gathered while a log is read. */
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
    uint64_t line;   /* where it begins in the log */
    int epoch_first; /* the epochs it covers, 0 = not known */
    int epoch_last;
    bool final;      /* covers the whole run */
    int after_epoch; /* last epoch named before it, -1 = none */
    bool closed;     /* its last line is there */
    size_t first_cell, n_cells;
};

struct weir_totals_cell {
    int stage;
    uint64_t count;
    double total_s, mean_s;
};

struct weir_totals {
    int decimals; /* of printed seconds and milliseconds */
    int n_stages;
    char (*names)[WEIR_TOTALS_NAME_SIZE];
    size_t n_tables, n_cells, tables_capacity, cells_capacity;
    struct weir_totals_table *tables;
    struct weir_totals_cell *cells;
    bool full;             /* no further table fits */
    uint64_t dropped_rows; /* beyond the limits above */
};

void weir_totals_free(struct weir_totals *totals);

/* Begins a table; the rows that follow belong to it. 0 or -ENOMEM. */
int weir_totals_begin(struct weir_totals *totals, const struct weir_totals_table *table);
/* name is printable already. 0 or -ENOMEM; rows beyond the limits are counted in dropped_rows. */
int weir_totals_add(struct weir_totals *totals, const char *name, double total_s, uint64_t count, double mean_s);
/* The latest table has a row of this name. */
bool weir_totals_has(const struct weir_totals *totals, const char *name);
/* Takes back the latest table when it has no rows. */
void weir_totals_drop_empty(struct weir_totals *totals);

/* The tables look as if each went on counting from the one before: no total and no call count ever falls, no stage is
 * lost, no total grows without calls. False for fewer than two tables. */
bool weir_totals_cumulative(const struct weir_totals *totals);

/* Each stage's total over the whole log: the latest of tables that go on counting, else the sum of the tables that
 * cover whole runs, else that of all. 0 for a stage without one. */
void weir_totals_whole(const struct weir_totals *totals, bool cumulative, double total_s[WEIR_TOTALS_STAGES_MAX]);

/* Matrices of totals and means; with cumulative, those of the differences from table to table too. */
void weir_totals_print(FILE *out, const struct weir_totals *totals, bool cumulative);
/* Members "tables", "totals" and "periods" (null unless cumulative) into the open object. */
void weir_totals_json(struct weir_json *json, const struct weir_totals *totals, bool cumulative);

#endif
