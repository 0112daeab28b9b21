/* Prints the rows of a training program's log. */
#include "analyze/logs/trainer.h"
#include "base/table.h"
#include "base/terminal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { ROWS_SHOWN = 16 };

/* Returns whether any row has a value in the column. */
static bool is_used(const struct weir_trainer_log *log, int column)
{
    for (size_t i = 0; i < log->n_rows; i++)
        if (!isnan(log->rows[i].values[column]))
            return true;
    return false;
}

/* Times have as many digits as in the log, and means one more. */
static void print_value(struct weir_table *table, const struct weir_trainer_log *log, int column, double value,
                        bool is_mean)
{
    enum weir_trainer_unit unit = log->trainer->columns[column].unit;
    if (isnan(value))
        weir_table_cell(table, "-");
    else if (unit == WEIR_TRAINER_COUNT || (unit == WEIR_TRAINER_NUMBER && fabs(value) >= 1000))
        weir_table_cell(table, "%.0f", value);
    else if (unit == WEIR_TRAINER_NUMBER)
        weir_table_cell(table, "%.4g", value);
    else if (unit == WEIR_TRAINER_CLOCK) /* whole seconds */
        weir_table_cell(table, "%.*fs", is_mean, value);
    else if (log->rounding_s > 0)
        weir_table_cell(table, "%.*fs", (int)-log10(log->rounding_s) + is_mean, value);
    else {
        char time[24];
        weir_report_time(time, value);
        weir_table_cell(table, "%s", time);
    }
}

/* Returns the mean of the column's values in n rows; NAN if there are none. */
static double mean_of(const struct weir_trainer_row *rows, size_t n, int column)
{
    double sum = 0;
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(rows[i].values[column])) {
            sum += rows[i].values[column];
            found++;
        }
    return found > 0 ? sum / (double)found : NAN;
}

static void print_label(struct weir_table *table, const struct weir_trainer_row *rows, size_t n)
{
    if (n == 1 || strcmp(rows[0].label, rows[n - 1].label) == 0)
        weir_table_cell(table, "%s", *rows[0].label ? rows[0].label : "-");
    else
        weir_table_cell(table, "%s .. %s", rows[0].label, rows[n - 1].label);
}

/* Prints one line for each `each` rows, at most `lines`. */
static void print_rows(FILE *out, const struct weir_trainer_log *log, size_t each, size_t lines)
{
    struct weir_column columns[WEIR_TRAINER_COLUMNS + 2] = {{log->trainer->label, .left = true, .shrink_to = 20}};
    int used[WEIR_TRAINER_COLUMNS], n = 0;
    for (int i = 0; i < WEIR_TRAINER_COLUMNS && log->trainer->columns[i].name; i++)
        if (is_used(log, i)) {
            const char *heading = log->trainer->columns[i].heading;
            columns[1 + n] = (struct weir_column){.heading = heading ? heading : log->trainer->columns[i].name};
            used[n++] = i;
        }
    if (n == 0)
        return;
    columns[1 + n] = (struct weir_column){"line", .priority = 1};
    struct weir_table table;
    weir_table_open(&table, columns, n + 2);
    for (size_t line = 0; line < lines && line * each < log->n_rows; line++) {
        const struct weir_trainer_row *rows = &log->rows[line * each];
        size_t left = log->n_rows - line * each, count = left < each ? left : each;
        print_label(&table, rows, count);
        for (int i = 0; i < n; i++)
            print_value(&table, log, used[i], mean_of(rows, count, used[i]), each > 1);
        weir_table_cell(&table, "%" PRIu64, rows[0].line);
    }
    weir_table_print(out, &table);
}

void weir_trainer_print(FILE *out, const struct weir_trainer_log *log, enum weir_lang lang)
{
    bool folds = weir_terminal_folds() && log->n_rows > ROWS_SHOWN;
    size_t each = folds && log->trainer->series ? (log->n_rows + ROWS_SHOWN - 1) / ROWS_SHOWN : 1;
    fprintf(out, "plain training log: %s, %zu %s\n", log->trainer->title, log->n_rows,
            log->n_rows == 1 ? "row" : "rows");
    weir_trainer_verdict_print(out, log);
    putc('\n', out);
    if (lang == WEIR_LANG_ZH && weir_trainer_stages_zh(out, log))
        return;
    if (each > 1)
        fprintf(out, "means of %zu lines each; --wide prints every line\n", each);
    print_rows(out, log, each, folds ? ROWS_SHOWN : log->n_rows);
    if (folds && each == 1)
        fprintf(out, "%zu more rows; --wide prints all\n", log->n_rows - ROWS_SHOWN);
}
