#include "base/table.h"

#include "base/fields.h"
#include "base/grow.h"
#include "base/terminal.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2 };

struct fit {
    int widths[WEIR_TABLE_COLUMNS]; /* 0: the column is left out */
    int last;                       /* the last column that is printed */
};

void weir_table_open(struct weir_table *table, const struct weir_column *columns, int n)
{
    *table = (struct weir_table){.columns = columns, .n_columns = n};
}

/* Appends the columns of the fields, and returns their new number. */
static int add_columns(struct weir_table *table, const struct weir_fields *fields, int n)
{
    for (int i = 0; i < fields->n; i++) {
        const struct weir_field *field = &fields->fields[i];
        if (field->type == WEIR_FIELD_GROUP)
            n = add_columns(table, field->inner, n);
        else if (field->column.heading && n < WEIR_TABLE_COLUMNS)
            table->own[n++] = field->column;
    }
    return n;
}

void weir_table_open_fields(struct weir_table *table, const struct weir_fields *fields)
{
    weir_table_open(table, table->own, 0);
    table->columns = table->own;
    table->n_columns = add_columns(table, fields, 0);
}

static void add_number(struct weir_table *table, const struct weir_column *column, double value)
{
    switch (column->unit) {
    case WEIR_UNIT_NUMBER:
        weir_table_cell(table, "%.*f%s", column->decimals, value, column->suffix ? column->suffix : "");
        break;
    case WEIR_UNIT_PERCENT:
        weir_table_cell(table, "%.*f%s", column->decimals, 100 * value, column->suffix ? column->suffix : "%");
        break;
    case WEIR_UNIT_TIME:
        weir_table_cell(table, "%s", weir_time(value).text);
        break;
    case WEIR_UNIT_SIZE:
        weir_table_cell(table, "%s", weir_size_short(value).text);
        break;
    }
}

static void add_printed(struct weir_table *table, const struct weir_column *column, const void *object)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out)
        column->print(out, object);
    if (out && fclose(out) == 0)
        weir_table_cell(table, "%s", text);
    else
        table->failed_ = true;
    free(text);
}

static void add_field(struct weir_table *table, const struct weir_field *field, const void *object)
{
    const struct weir_column *column = &table->own[table->n_cells_ % (size_t)table->n_columns];
    const char *text = weir_field_text(field, object);
    double value, whole = 1;
    if (column->whole)
        memcpy(&whole, (const char *)object + column->whole, sizeof whole);
    if (column->print)
        add_printed(table, column, (const char *)object + (field->type == WEIR_FIELD_CELL ? field->offset : 0));
    else if (!weir_field_number(field, object, &value))
        weir_table_cell(table, "%s", text ? text : "-");
    else if (!isfinite(value) || value < 0 || (field->flags & WEIR_FIELD_POSITIVE && value <= 0))
        weir_table_cell(table, "-");
    else
        add_number(table, column, whole > 0 ? value / whole : 0);
}

void weir_table_row(struct weir_table *table, const struct weir_fields *fields, const void *object)
{
    for (int i = 0; i < fields->n; i++) {
        const struct weir_field *field = &fields->fields[i];
        if (field->type == WEIR_FIELD_GROUP)
            weir_table_row(table, field->inner, (const char *)object + field->offset);
        else if (field->column.heading)
            add_field(table, field, object);
    }
}

void weir_table_print_fields(FILE *out, const struct weir_fields *fields, const void *elements, int n, size_t size,
                             bool (*shown)(const void *element))
{
    struct weir_table table;
    weir_table_open_fields(&table, fields);
    for (int i = 0; i < n; i++) {
        const void *element = (const char *)elements + (size_t)i * size;
        if (!shown || shown(element))
            weir_table_row(&table, fields, element);
    }
    weir_table_print(out, &table);
}

void weir_table_cell(struct weir_table *table, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    if (table->failed_)
        return;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        text = NULL;
    va_end(args);
    if (text && weir_grow(&table->cells_, table->n_cells_, sizeof *table->cells_)) {
        table->cells_[table->n_cells_++] = text;
        return;
    }
    free(text);
    table->failed_ = true;
}

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

/* Returns the width of the columns up to a priority, when cells are as short as they can be. */
static int least_width(const struct weir_table *table, const int *natural, int priority)
{
    int width = -GAP;
    for (int i = 0; i < table->n_columns; i++) {
        const struct weir_column *column = &table->columns[i];
        bool shrinks = column->shrink_to > 0 && column->shrink_to < natural[i];
        if (column->priority <= priority && natural[i] > 0)
            width += (shrinks ? column->shrink_to : natural[i]) + GAP;
    }
    return width;
}

static void choose(struct fit *fit, const struct weir_table *table, const int *natural, int width)
{
    int priority = 0;
    for (int i = 0; i < table->n_columns; i++)
        priority = max_of(priority, table->columns[i].priority);
    while (priority > 0 && least_width(table, natural, priority) > width)
        priority--;
    int spare = width - least_width(table, natural, priority);
    for (int i = 0; i < table->n_columns; i++) {
        const struct weir_column *column = &table->columns[i];
        bool shrinks = column->shrink_to > 0 && column->shrink_to < natural[i];
        fit->widths[i] = 0;
        if (column->priority > priority || natural[i] == 0)
            continue;
        fit->last = i;
        fit->widths[i] = natural[i];
        if (!shrinks)
            continue;
        int more = natural[i] - column->shrink_to;
        more = more < spare ? more : max_of(spare, 0);
        fit->widths[i] = column->shrink_to + more;
        spare -= more;
    }
}

static void print_cell(FILE *out, const struct weir_table *table, int i, int width, char *text, bool is_last)
{
    weir_text_shorten(text, width);
    int padding = max_of(width - weir_text_width(text), 0);
    if (!table->columns[i].left)
        fprintf(out, "%*s%s", padding, "", text);
    else
        fprintf(out, "%s%*s", text, is_last ? 0 : padding, "");
    if (!is_last)
        fprintf(out, "%*s", GAP, "");
}

static void print_row(FILE *out, const struct weir_table *table, const struct fit *fit, int last, char *const *cells)
{
    for (int i = 0; i <= last; i++)
        if (fit->widths[i] > 0)
            print_cell(out, table, i, fit->widths[i], cells[i], i == last);
    fputc('\n', out);
}

/* Ends the line after the last heading that has text. */
static void print_headings(FILE *out, const struct weir_table *table, const struct fit *fit)
{
    char headings[WEIR_TABLE_COLUMNS][64], *cells[WEIR_TABLE_COLUMNS];
    int last = fit->last;
    for (int i = 0; i <= fit->last; i++) {
        snprintf(headings[i], sizeof headings[i], "%s", table->columns[i].heading);
        cells[i] = headings[i];
    }
    while (last > 0 && (fit->widths[last] == 0 || !*cells[last]))
        last--;
    print_row(out, table, fit, last, cells);
}

/* Chooses the columns and their widths. */
static void fit_width(struct fit *fit, const struct weir_table *table, FILE *out)
{
    size_t n = (size_t)table->n_columns;
    int natural[WEIR_TABLE_COLUMNS] = {0};
    for (size_t i = 0; i < table->n_cells_; i++)
        natural[i % n] = max_of(natural[i % n], weir_text_width(table->cells_[i]));
    for (int i = 0; i < table->n_columns; i++) {
        const struct weir_column *column = &table->columns[i];
        if (natural[i] > 0 || !column->optional)
            natural[i] = max_of(natural[i], max_of(weir_text_width(column->heading), max_of(column->width, 1)));
    }
    choose(fit, table, natural, weir_terminal_width(out));
}

static void print(FILE *out, const struct weir_table *table)
{
    size_t n = (size_t)table->n_columns;
    struct fit fit = {.last = 0};
    bool headings = false;
    fit_width(&fit, table, out);
    for (int i = 0; i < table->n_columns; i++)
        headings |= *table->columns[i].heading != '\0';
    if (headings)
        print_headings(out, table, &fit);
    for (size_t i = 0; i + n <= table->n_cells_; i += n)
        print_row(out, table, &fit, fit.last, table->cells_ + i);
}

bool weir_table_shows(const struct weir_table *table, FILE *out, int column)
{
    struct fit fit = {.last = 0};
    fit_width(&fit, table, out);
    return fit.widths[column] > 0;
}

void weir_table_free(struct weir_table *table)
{
    for (size_t i = 0; i < table->n_cells_; i++)
        free(table->cells_[i]);
    free(table->cells_);
    *table = (struct weir_table){0};
}

void weir_table_print(FILE *out, struct weir_table *table)
{
    if (table->failed_)
        fputs("out of memory: a table is left out\n", out);
    else
        print(out, table);
    weir_table_free(table);
}
