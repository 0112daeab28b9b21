/* Prints the table of averages as torch.profiler does, or with the columns that fit the width of the output. */
#include "base/field_rows.h"
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"
#include "weir/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_WIDTH = 55, SHAPES_MAX_WIDTH = 80, SOURCE_MAX_WIDTH = 75, WIDTH = 12, SPACE = 2, COLUMNS_MAX = 24 };

#define TOP_LEVEL "This report only display top-level ops statistics" /* as torch prints it */

/* ---- order ---- */

static const struct key {
    const char *name;
    size_t offset;
    bool mean;           /* divide by the number of calls */
    const char *heading; /* of its column */
} keys[] = {
    {"self_cpu_time_total", offsetof(struct weir_averages_row, self_cpu_ns), false, "Self CPU"},
    {"cpu_time_total", offsetof(struct weir_averages_row, cpu_ns), false, "CPU total"},
    {"cpu_time", offsetof(struct weir_averages_row, cpu_ns), true, "CPU time avg"},
    {"self_cuda_time_total", offsetof(struct weir_averages_row, self_device_ns), false, "Self CUDA"},
    {"cuda_time_total", offsetof(struct weir_averages_row, device_ns), false, "CUDA total"},
    {"cuda_time", offsetof(struct weir_averages_row, device_ns), true, "CUDA time avg"},
    {"self_device_time_total", offsetof(struct weir_averages_row, self_device_ns), false, "Self CUDA"},
    {"device_time_total", offsetof(struct weir_averages_row, device_ns), false, "CUDA total"},
    {"device_time", offsetof(struct weir_averages_row, device_ns), true, "CUDA time avg"},
    {"self_cpu_memory_usage", offsetof(struct weir_averages_row, self_cpu_bytes), false, "Self CPU Mem"},
    {"cpu_memory_usage", offsetof(struct weir_averages_row, cpu_bytes), false, "CPU Mem"},
    {"self_cuda_memory_usage", offsetof(struct weir_averages_row, self_device_bytes), false, "Self CUDA Mem"},
    {"cuda_memory_usage", offsetof(struct weir_averages_row, device_bytes), false, "CUDA Mem"},
    {"self_device_memory_usage", offsetof(struct weir_averages_row, self_device_bytes), false, "Self CUDA Mem"},
    {"device_memory_usage", offsetof(struct weir_averages_row, device_bytes), false, "CUDA Mem"},
    {"count", offsetof(struct weir_averages_row, count), false, "# of Calls"},
};

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

int weir_averages_check_sort(const char *sort_by, struct weir_err *err)
{
    char names[512];
    size_t n = 0;
    if (find_key(sort_by))
        return 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", keys[i].name);
    return weir_err_set(err, -EINVAL, "'%s' is not a sort key; use one of %s", sort_by, names);
}

struct place {
    const struct weir_averages_row *row;
    double value;
};

static int by_value(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row; /* otherwise in their original order */
}

/* Rows to print, in order. The caller frees the places, which are NULL without memory. */
struct places {
    struct place *places;
    size_t n, left_out; /* left_out: by the row limit */
};

/* Returns the rows of work in the table's order, or the waits, the longest first. */
static struct places ordered(const struct weir_averages *averages, const struct weir_averages_table *table, bool waits)
{
    struct places to = {.places = malloc((averages->n_rows + 1) * sizeof *to.places)};
    const char *sort_by = waits ? "self_cpu_time_total" : table->sort_by;
    const struct key *key = sort_by ? find_key(sort_by) : NULL;
    for (size_t i = 0; i < averages->n_rows && to.places; i++) {
        const struct weir_averages_row *row = &averages->rows[i];
        int64_t value = 0;
        if (row->wait != waits || (table->top_level && row->nested))
            continue;
        if (key)
            memcpy(&value, (const char *)row + key->offset, sizeof value);
        to.places[to.n++] = (struct place){row, key && key->mean ? (double)value / (double)row->count : (double)value};
    }
    if (to.n > 0)
        qsort(to.places, to.n, sizeof *to.places, by_value);
    if (table->row_limit >= 0 && to.n > (size_t)table->row_limit) {
        to.left_out = to.n - (size_t)table->row_limit;
        to.n = (size_t)table->row_limit;
    }
    return to;
}

/* ---- cells ---- */

static void put_time(char *cell, size_t size, double ns)
{
    double us = ns / 1000;
    if (us >= 1e6)
        snprintf(cell, size, "%.3fs", us / 1e6);
    else if (us >= 1e3)
        snprintf(cell, size, "%.3fms", us / 1e3);
    else
        snprintf(cell, size, "%.3fus", us);
}

static void put_share(char *cell, size_t size, int64_t part, int64_t whole)
{
    if (whole == 0)
        snprintf(cell, size, "NaN");
    else
        snprintf(cell, size, "%.2f%%", (double)part * 100 / (double)whole);
}

static void put_memory(char *cell, size_t size, int64_t bytes)
{
    static const char *const units[] = {"GB", "MB", "KB"};
    uint64_t amount = bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes;
    for (int i = 0; i < 3; i++)
        if (amount >> (30 - 10 * i)) {
            snprintf(cell, size, "%.2f %s", (double)bytes / (double)(1 << (30 - 10 * i)), units[i]);
            return;
        }
    snprintf(cell, size, "%" PRId64 " B", bytes);
}

struct column {
    const char *title;
    int width;
    bool left;
};

struct print {
    FILE *out;
    const struct weir_averages *averages;
    struct column columns[COLUMNS_MAX];
    int n;
    int shapes, flops, stacks; /* their columns; 0 = there is none */
    double flops_unit;
};

/* Counts characters instead of bytes, as Python does. */
static int characters(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void print_cell(struct print *p, int column, const char *text)
{
    const struct column *c = &p->columns[column];
    int pad = c->width - characters(text);
    fprintf(p->out, "%*s%s%*s", c->left || pad < 0 ? 0 : pad, "", text, (c->left && pad > 0 ? pad : 0) + SPACE, "");
}

static void print_rule(struct print *p)
{
    for (int i = 0; i < p->n; i++) {
        for (int k = 0; k < p->columns[i].width; k++)
            fputc('-', p->out);
        fprintf(p->out, "%*s", SPACE, "");
    }
    fputc('\n', p->out);
}

static void print_line(struct print *p, const char *text)
{
    int width = -SPACE;
    for (int i = 0; i < p->n; i++)
        width += p->columns[i].width + SPACE;
    for (int i = 0; i < width; i++)
        fputc('=', p->out);
    fprintf(p->out, "\n%s\n", text);
}

/* ---- columns ---- */

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static const char *shapes_of(const struct weir_averages *averages, const struct weir_averages_row *row)
{
    return row->shapes ? weir_trace_text(averages->trace, row->shapes) : "[]";
}

/* Copies line `frame` of a stack; line 0 is the innermost. Returns false if the stack has fewer lines. */
static bool frame_of(const char *stack, int frame, char *text, size_t size)
{
    for (; frame > 0 && stack; frame--) {
        stack = strchr(stack, ';');
        stack = stack ? stack + 1 : NULL;
    }
    if (!stack || !*stack)
        return false;
    snprintf(text, size, "%.*s", (int)strcspn(stack, ";"), stack);
    weir_text_printable(text);
    return true;
}

/* Returns the number of the column. */
static int add_column(struct print *p, const char *title, int width, bool left)
{
    p->columns[p->n] = (struct column){title, width, left};
    return p->n++;
}

static int source_width(const struct weir_averages *averages)
{
    int longest = 0;
    char frame[2048];
    for (size_t i = 0; i < averages->n_rows; i++) {
        const char *stack = weir_trace_text(averages->trace, averages->rows[i].stack);
        for (int k = 0; frame_of(stack, k, frame, sizeof frame); k++)
            longest = characters(frame) > longest ? characters(frame) : longest;
    }
    return at_most(longest + 4, SOURCE_MAX_WIDTH);
}

/* The unit suits the smallest number, as in torch. */
static void plan_flops(struct print *p)
{
    static const char *const titles[] = {"Total FLOPs",  "Total KFLOPs", "Total MFLOPs",
                                         "Total GFLOPs", "Total TFLOPs", "Total PFLOPs"};
    double least = 0;
    int unit = 0;
    for (size_t i = 0; i < p->averages->n_rows; i++) {
        double flops = p->averages->rows[i].flops;
        least = flops > 0 && (least == 0 || flops < least) ? flops : least;
    }
    if (least == 0)
        return;
    for (p->flops_unit = 1; unit < 5 && least >= 1000 * p->flops_unit; unit++)
        p->flops_unit *= 1000;
    p->flops = add_column(p, titles[unit], WIDTH, false);
}

static void plan_columns(struct print *p)
{
    const struct weir_averages *a = p->averages;
    static const char *const cpu[] = {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"};
    static const char *const device[] = {"Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"};
    int name = 0, shapes = 0;
    bool has_shapes = false, has_stacks = false;
    for (size_t i = 0; i < a->n_rows; i++) {
        if (a->rows[i].wait)
            continue;
        int n = characters(weir_trace_text(a->trace, a->rows[i].name));
        int s = characters(shapes_of(a, &a->rows[i]));
        name = n > name ? n : name;
        shapes = s > shapes ? s : shapes;
        has_shapes |= a->config.by_shape && a->rows[i].shapes;
        has_stacks |= a->rows[i].stack != 0;
    }
    add_column(p, "Name", at_most(name + 4, NAME_MAX_WIDTH), false);
    for (int i = 0; i < 5; i++)
        add_column(p, cpu[i], WIDTH, false);
    for (int i = 0; i < 4 && a->has_device_time; i++)
        add_column(p, device[i], WIDTH, false);
    if (a->has_memory) {
        add_column(p, "CPU Mem", WIDTH, false);
        add_column(p, "Self CPU Mem", WIDTH, false);
    }
    if (a->has_memory && a->has_device_memory) {
        add_column(p, "CUDA Mem", WIDTH, false);
        add_column(p, "Self CUDA Mem", WIDTH, false);
    }
    add_column(p, "# of Calls", WIDTH, false);
    if (has_shapes)
        p->shapes = add_column(p, "Input Shapes", at_most(shapes + 4, SHAPES_MAX_WIDTH), false);
    plan_flops(p);
    if (has_stacks)
        p->stacks = add_column(p, "Source Location", source_width(a), true);
}

/* ---- rows ---- */

/* Copies at most `most` characters and never splits one. */
static void cut_text(char *to, size_t size, const char *text, int most)
{
    size_t bytes = 0;
    for (int n = 0; text[bytes] && n < most; n++)
        for (bytes++; ((unsigned char)text[bytes] & 0xc0) == 0x80;)
            bytes++;
    snprintf(to, size, "%.*s", (int)bytes, text);
}

/* Formats the row's columns other than the name, the shapes and the stack. */
static void format_numbers(char cells[COLUMNS_MAX][64], const struct print *p, const struct weir_averages_row *row)
{
    const struct weir_averages *a = p->averages;
    int n = 1;
    put_share(cells[n++], 64, row->self_cpu_ns, a->work_ns);
    put_time(cells[n++], 64, (double)row->self_cpu_ns);
    put_share(cells[n++], 64, row->work_ns, a->work_ns);
    put_time(cells[n++], 64, (double)row->cpu_ns);
    put_time(cells[n++], 64, (double)row->cpu_ns / (double)row->count);
    if (a->has_device_time) {
        put_time(cells[n++], 64, (double)row->self_device_ns);
        put_share(cells[n++], 64, row->self_device_ns, a->self_device_ns);
        put_time(cells[n++], 64, (double)row->device_ns);
        put_time(cells[n++], 64, (double)row->device_ns / (double)row->count);
    }
    if (a->has_memory) {
        put_memory(cells[n++], 64, row->cpu_bytes);
        put_memory(cells[n++], 64, row->self_cpu_bytes);
    }
    if (a->has_memory && a->has_device_memory) {
        put_memory(cells[n++], 64, row->device_bytes);
        put_memory(cells[n++], 64, row->self_device_bytes);
    }
    snprintf(cells[n], 64, "%" PRIu64, row->count);
    if (p->flops && row->flops > 0)
        snprintf(cells[p->flops], 64, "%.3f", row->flops / p->flops_unit);
    else if (p->flops)
        snprintf(cells[p->flops], 64, "--");
}

static void print_source(struct print *p, int column, const char *frame)
{
    int width = p->columns[column].width, n = characters(frame);
    char text[2048];
    if (n <= width) {
        print_cell(p, column, frame);
        return;
    }
    for (int skip = n - width + 3; skip > 0; skip--) /* cuts off the beginning, because the end is more informative */
        for (frame++; ((unsigned char)*frame & 0xc0) == 0x80;)
            frame++;
    snprintf(text, sizeof text, "...%s", frame);
    print_cell(p, column, text);
}

/* Prints the stack's remaining frames on their own lines, followed by an empty line. */
static void print_stack(struct print *p, int column, const char *stack)
{
    char frame[2048] = "";
    frame_of(stack, 0, frame, sizeof frame);
    print_source(p, column, frame);
    fputc('\n', p->out);
    for (int k = 1; k == 1 || *frame; k++) {
        if (!frame_of(stack, k, frame, sizeof frame))
            *frame = '\0';
        for (int i = 0; i < column; i++)
            print_cell(p, i, "");
        print_source(p, column, frame);
        fputc('\n', p->out);
    }
}

static void print_row(struct print *p, const struct weir_averages_row *row)
{
    char text[512], cells[COLUMNS_MAX][64];
    const char *name = weir_trace_text(p->averages->trace, row->name);
    bool is_long = characters(name) >= NAME_MAX_WIDTH - 3;
    cut_text(text, sizeof text - 4, name, is_long ? NAME_MAX_WIDTH - 3 : NAME_MAX_WIDTH);
    if (is_long)
        strcat(text, "...");
    weir_text_printable(text);
    print_cell(p, 0, text);
    format_numbers(cells, p, row);
    if (p->shapes)
        cut_text(text, sizeof text, shapes_of(p->averages, row), p->columns[p->shapes].width);
    weir_text_printable(text);
    for (int i = 1; i < (p->stacks ? p->stacks : p->n); i++)
        print_cell(p, i, i == p->shapes ? text : cells[i]);
    if (p->stacks)
        print_stack(p, p->stacks, weir_trace_text(p->averages->trace, row->stack));
    else
        fputc('\n', p->out);
}

static void print_whole(struct print *p, const struct weir_averages_table *table, const struct places *rows)
{
    if (table->header)
        print_line(p, table->header);
    if (table->top_level)
        print_line(p, TOP_LEVEL);
    print_rule(p);
    for (int i = 0; i < p->n; i++)
        print_cell(p, i, p->columns[i].title);
    fputc('\n', p->out);
    print_rule(p);
    for (size_t i = 0; i < rows->n; i++)
        print_row(p, rows->places[i].row);
    print_rule(p);
}

/* ---- the columns that fit ---- */

enum { NAME_LEAST = 28, SHAPES_LEAST = 12, SOURCE_LEAST = 20 };

/* Returns the column's priority: its place in the order of importance, or 0 for the column that the rows are sorted by
 * and for those that always identify a row. */
static int priority_of(const char *title, const struct weir_averages_table *table)
{
    static const char *const order[] = {"Self CUDA",     "Self CPU",    "# of Calls",    "Self CUDA %",  "Self CPU %",
                                        "CUDA total",    "CPU total",   "Self CUDA Mem", "Self CPU Mem", "CPU time avg",
                                        "CUDA time avg", "CPU total %", "CUDA Mem",      "CPU Mem"};
    const struct key *key = table->sort_by ? find_key(table->sort_by) : NULL;
    if (key && strcmp(key->heading, title) == 0)
        return 0;
    for (int i = 0; i < (int)(sizeof order / sizeof *order); i++)
        if (strcmp(order[i], title) == 0)
            return 1 + i;
    return 0;
}

static void add_text(struct weir_table *table, const char *text)
{
    char shown[2048];
    snprintf(shown, sizeof shown, "%s", text);
    weir_text_printable(shown);
    weir_table_cell(table, "%s", shown);
}

/* Adds the row. Each further frame of its stack has a row of its own. */
static void add_row(struct weir_table *table, const struct print *p, const struct weir_averages_row *row)
{
    char cells[COLUMNS_MAX][64], frame[2048] = "";
    const char *stack = p->stacks ? weir_trace_text(p->averages->trace, row->stack) : "";
    add_text(table, weir_trace_text(p->averages->trace, row->name));
    format_numbers(cells, p, row);
    for (int i = 1; i < (p->stacks ? p->stacks : p->n); i++)
        add_text(table, i == p->shapes ? shapes_of(p->averages, row) : cells[i]);
    if (!p->stacks)
        return;
    frame_of(stack, 0, frame, sizeof frame);
    add_text(table, frame);
    for (int k = 1; frame_of(stack, k, frame, sizeof frame); k++) {
        for (int i = 1; i < p->n; i++)
            weir_table_cell(table, "%s", "");
        add_text(table, frame);
    }
}

static void print_fitted(const struct print *p, const struct weir_averages_table *table, const struct places *rows)
{
    struct weir_column columns[COLUMNS_MAX];
    struct weir_table fitted;
    for (int i = 0; i < p->n; i++)
        columns[i] = (struct weir_column){.heading = p->columns[i].title,
                                          .priority = priority_of(p->columns[i].title, table),
                                          .left = i == 0 || p->columns[i].left};
    columns[0].shrink_to = NAME_LEAST;
    if (p->shapes)
        columns[p->shapes].shrink_to = SHAPES_LEAST;
    if (p->stacks)
        columns[p->stacks].shrink_to = SOURCE_LEAST;
    if (table->header)
        fprintf(p->out, "%s\n", table->header);
    if (table->top_level)
        fputs(TOP_LEVEL "\n", p->out);
    weir_table_open(&fitted, columns, p->n);
    for (size_t i = 0; i < rows->n; i++)
        add_row(&fitted, p, rows->places[i].row);
    weir_table_print(p->out, &fitted);
}

static void print_totals(FILE *out, const struct weir_averages *averages)
{
    char total[64];
    put_time(total, sizeof total, (double)averages->work_ns);
    fprintf(out, "Self CPU time total: %s\n", total);
    put_time(total, sizeof total, (double)averages->self_device_ns);
    if (averages->has_device_time)
        fprintf(out, "Self CUDA time total: %s\n", total);
}

/* Waits, of all threads, in a list below the table: in the table they would lead it, although nothing needs to become
 * faster while a worker waits for a free slot. */
static void print_waits(FILE *out, const struct weir_averages *averages, const struct places *waits)
{
    static const struct weir_column columns[] = {{"waiting, not in the shares", .left = true, .shrink_to = NAME_LEAST},
                                                 {.heading = "total"},
                                                 {.heading = "avg"},
                                                 {.heading = "# of Calls"}};
    struct weir_table table;
    char cell[64];
    if (waits->n == 0)
        return;
    weir_table_open(&table, columns, 4);
    for (size_t i = 0; i < waits->n; i++) {
        const struct weir_averages_row *row = waits->places[i].row;
        add_text(&table, weir_trace_text(averages->trace, row->name));
        put_time(cell, sizeof cell, (double)row->self_cpu_ns);
        weir_table_cell(&table, "%s", cell);
        put_time(cell, sizeof cell, (double)row->self_cpu_ns / (double)row->count);
        weir_table_cell(&table, "%s", cell);
        weir_table_cell(&table, "%" PRIu64, row->count);
    }
    weir_table_print(out, &table);
}

size_t weir_averages_print(FILE *out, const struct weir_averages *averages, const struct weir_averages_table *table)
{
    struct print p = {.out = out, .averages = averages};
    struct places rows = ordered(averages, table, false), waits = ordered(averages, table, true);
    if (rows.places && waits.places && averages->n_rows > 0) {
        plan_columns(&p);
        if (weir_terminal_folds())
            print_fitted(&p, table, &rows);
        else
            print_whole(&p, table, &rows);
        print_totals(out, averages);
        print_waits(out, averages, &waits);
    }
    free(rows.places);
    free(waits.places);
    return rows.left_out + waits.left_out;
}

/* ---- JSON ---- */

#define S struct weir_averages_row
static const struct weir_field row_table[] = {
    PLAIN("count", count),
    PLAIN("self_cpu_ns", self_cpu_ns),
    PLAIN("cpu_ns", cpu_ns),
    PLAIN("self_device_ns", self_device_ns),
    PLAIN("device_ns", device_ns),
    PLAIN("self_cpu_bytes", self_cpu_bytes),
    PLAIN("cpu_bytes", cpu_bytes),
    PLAIN("self_device_bytes", self_device_bytes),
    PLAIN("device_bytes", device_bytes),
    OMIT("flops", flops),
};
static WEIR_FIELDS(row_fields, row_table);
#undef S

static void row_json(struct weir_json *json, const struct weir_averages *averages, const struct weir_averages_row *row)
{
    weir_json_object(json, NULL);
    weir_json_text(json, "name", weir_trace_text(averages->trace, row->name));
    weir_json_bool(json, "device", row->device);
    weir_json_bool(json, "annotation", row->annotation);
    weir_json_bool(json, "wait", row->wait);
    weir_json_bool(json, "top_level", !row->nested);
    if (averages->config.by_shape)
        weir_json_text(json, "shapes", shapes_of(averages, row));
    if (averages->config.by_stack)
        weir_json_text(json, "stack", weir_trace_text(averages->trace, row->stack));
    weir_fields_json(json, &row_fields, row);
    weir_json_end(json, '}');
}

void weir_averages_json(struct weir_json *json, const char *key, const struct weir_averages *averages,
                        const struct weir_averages_table *table)
{
    weir_json_array(json, key);
    for (int waits = 0; waits < 2; waits++) {
        struct places rows = ordered(averages, table, waits);
        for (size_t i = 0; i < rows.n; i++)
            row_json(json, averages, rows.places[i].row);
        free(rows.places);
    }
    weir_json_end(json, ']');
}
