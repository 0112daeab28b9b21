/* table.h: prints tables that fit the width of the output.
 *
 *     static const struct weir_column columns[] = {
 *         {"file", .left = true, .shrink_to = 20}, {"reads", .priority = 1}, {"max", .priority = 2}};
 *     struct weir_table table;
 *     weir_table_open(&table, columns, 3);
 *     for (...) {
 *         weir_table_cell(&table, "%s", name);
 *         weir_table_cell(&table, "%d", reads);
 *         weir_table_cell(&table, "%.1fms", p99);
 *     }
 *     weir_table_print(stdout, &table);
 *
 * Columns are as wide as their longest cell and two spaces apart. If the table is too wide, the columns with the
 * highest priority number are left out, then those with the next one, until the rest fits. Then long cells are
 * shortened. */
#ifndef WEIR_BASE_TABLE_H
#define WEIR_BASE_TABLE_H

#include <stdbool.h>
#include <stdio.h>

enum { WEIR_TABLE_COLUMNS = 32 };

/* How tables for people show numbers. Unknown ones (negative, or not finite) are "-". */
enum weir_unit {
    WEIR_UNIT_NUMBER,
    WEIR_UNIT_PERCENT, /* of a fraction: "12%" */
    WEIR_UNIT_TIME,    /* seconds in the unit that fits: "12.34ms" */
    WEIR_UNIT_SIZE,    /* bytes: "563M" */
};

struct weir_column {
    const char *heading; /* NULL: the field has no column */
    int priority;        /* 0: always printed; columns of the same priority are printed together */
    int shrink_to;       /* cells can be shortened to this width (0: they cannot) */
    int width;           /* minimum width, which makes several tables or columns of one table line up */
    bool left;           /* aligned to the left */
    bool optional;       /* left out if all its cells are empty */
    /* The cells of a field's column: the member in a unit, or the text that `print` writes about the struct. */
    enum weir_unit unit;
    int decimals;
    const char *suffix; /* after numbers and percentages; NULL: "%" after a percentage, otherwise nothing */
    size_t whole; /* offset of the double of which the member is shown as a percentage; 0 = the member is a fraction */
    void (*print)(FILE *out, const void *object);
};

struct weir_table {
    const struct weir_column *columns; /* borrowed until weir_table_print */
    int n_columns;
    size_t n_cells_;
    char **cells_;
    bool failed_;                               /* out of memory */
    struct weir_column own[WEIR_TABLE_COLUMNS]; /* of a field table; can be changed before the first row */
};

struct weir_fields;

/* n: number of columns, at most WEIR_TABLE_COLUMNS. */
void weir_table_open(struct weir_table *table, const struct weir_column *columns, int n);
/* Opens a table with the columns of a field table (base/fields.h) and of its groups. */
void weir_table_open_fields(struct weir_table *table, const struct weir_fields *fields);
/* Appends a row with the cells of these columns. */
void weir_table_row(struct weir_table *table, const struct weir_fields *fields, const void *object);
/* Prints an array of n structs of this size as such a table. shown: NULL, or selects the rows. */
void weir_table_print_fields(FILE *out, const struct weir_fields *fields, const void *elements, int n, size_t size,
                             bool (*shown)(const void *element));
/* Appends the next cell of the current row. Cells of columns that are left out are also required. */
void weir_table_cell(struct weir_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns whether weir_table_print will print the column. */
bool weir_table_shows(const struct weir_table *table, FILE *out, int column);
void weir_table_free(struct weir_table *table);
/* Prints the headings and the rows, and frees the table. Prints no headings if none of them has text. Without memory,
 * one line says so. */
void weir_table_print(FILE *out, struct weir_table *table);

#endif
