#include "analyze/logs/log_totals.h"

#include "base/grow.h"
#include "base/terminal.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_WIDTH = 11 };

enum figure { FIGURE_TOTAL, FIGURE_COUNT, FIGURE_MEAN };

/* One table, with arrays that are indexed by stage. */
struct spread {
    bool there[WEIR_TOTALS_STAGES_MAX];
    uint64_t count[WEIR_TOTALS_STAGES_MAX];
    double total_s[WEIR_TOTALS_STAGES_MAX], mean_s[WEIR_TOTALS_STAGES_MAX];
};

void weir_totals_free(struct weir_totals *totals)
{
    free(totals->names);
    free(totals->tables);
    free(totals->cells);
    *totals = (struct weir_totals){.decimals = totals->decimals};
}

int weir_totals_begin_table(struct weir_totals *totals, const struct weir_totals_table *table)
{
    weir_totals_drop_empty(totals);
    if (totals->n_tables == WEIR_TOTALS_TABLES_MAX) {
        totals->full = true;
        return 0;
    }
    if (!weir_grow(&totals->tables, totals->n_tables, sizeof *totals->tables))
        return -ENOMEM;
    totals->tables[totals->n_tables] = *table;
    totals->tables[totals->n_tables].first_cell = totals->n_cells;
    totals->tables[totals->n_tables++].n_cells = 0;
    return 0;
}

void weir_totals_drop_empty(struct weir_totals *totals)
{
    if (totals->n_tables > 0 && totals->tables[totals->n_tables - 1].n_cells == 0)
        totals->n_tables--;
}

/* Starts the search after the previous result, because tables list their rows in nearly the same order. */
static int find_stage(const struct weir_totals *totals, const char *name)
{
    int start = totals->n_cells ? totals->cells[totals->n_cells - 1].stage + 1 : 0;
    for (int i = 0; i < totals->n_stages; i++) {
        int stage = (start + i) % totals->n_stages;
        if (strncmp(totals->names[stage], name, WEIR_TOTALS_NAME_SIZE - 1) == 0)
            return stage;
    }
    return -1;
}

static int add_stage(struct weir_totals *totals, const char *name)
{
    if (!totals->names)
        totals->names = calloc(WEIR_TOTALS_STAGES_MAX, sizeof *totals->names);
    if (!totals->names)
        return -ENOMEM;
    if (totals->n_stages == WEIR_TOTALS_STAGES_MAX)
        return -ENOSPC;
    char *kept = totals->names[totals->n_stages];
    size_t length = strnlen(name, WEIR_TOTALS_NAME_SIZE - 1);
    memcpy(kept, name, length);
    kept[length] = '\0';
    return totals->n_stages++;
}

int weir_totals_add(struct weir_totals *totals, const char *name, double total_s, uint64_t count, double mean_s)
{
    if (totals->full || totals->n_tables == 0 || totals->n_cells == WEIR_TOTALS_CELLS_MAX) {
        totals->dropped_rows++;
        return 0;
    }
    int stage = find_stage(totals, name);
    if (stage < 0)
        stage = add_stage(totals, name);
    if (stage == -ENOSPC) {
        totals->dropped_rows++;
        return 0;
    }
    if (stage < 0)
        return stage;
    if (!weir_grow(&totals->cells, totals->n_cells, sizeof *totals->cells))
        return -ENOMEM;
    totals->cells[totals->n_cells++] =
        (struct weir_totals_cell){.stage = stage, .count = count, .total_s = total_s, .mean_s = mean_s};
    totals->tables[totals->n_tables - 1].n_cells++;
    return 0;
}

bool weir_totals_has(const struct weir_totals *totals, const char *name)
{
    if (totals->n_tables == 0)
        return false;
    int stage = find_stage(totals, name);
    const struct weir_totals_table *table = &totals->tables[totals->n_tables - 1];
    for (size_t i = 0; i < table->n_cells && stage >= 0; i++)
        if (totals->cells[table->first_cell + i].stage == stage)
            return true;
    return false;
}

static void spread_table(const struct weir_totals *totals, size_t table, struct spread *spread)
{
    memset(spread->there, 0, sizeof spread->there);
    const struct weir_totals_table *from = &totals->tables[table];
    for (size_t i = 0; i < from->n_cells; i++) {
        const struct weir_totals_cell *cell = &totals->cells[from->first_cell + i];
        spread->there[cell->stage] = true;
        spread->count[cell->stage] = cell->count;
        spread->total_s[cell->stage] = cell->total_s;
        spread->mean_s[cell->stage] = cell->mean_s;
    }
}

static bool goes_on(const struct spread *before, const struct spread *now, int n_stages, bool now_closed)
{
    for (int i = 0; i < n_stages; i++) {
        if (!before->there[i])
            continue;
        if (!now->there[i]) {
            if (now_closed)
                return false;
            continue;
        }
        if (now->count[i] < before->count[i] || now->total_s[i] < before->total_s[i])
            return false;
        if (now->count[i] == before->count[i] && now->total_s[i] > before->total_s[i])
            return false;
    }
    return true;
}

bool weir_totals_cumulative(const struct weir_totals *totals)
{
    if (totals->n_tables < 2 || totals->dropped_rows > 0)
        return false;
    struct spread *pair = malloc(2 * sizeof *pair);
    bool cumulative = pair != NULL;
    if (pair)
        spread_table(totals, 0, &pair[0]);
    for (size_t table = 1; cumulative && table < totals->n_tables; table++) {
        struct spread *now = &pair[table & 1];
        spread_table(totals, table, now);
        cumulative = goes_on(&pair[!(table & 1)], now, totals->n_stages, totals->tables[table].closed);
    }
    free(pair);
    return cumulative;
}

/* Whether the last table is the sum of the others: equal counts, and totals that differ only by their rounding. */
static bool last_is_sum(const struct weir_totals *totals, const struct weir_totals_whole *sums)
{
    const struct weir_totals_table *last = &totals->tables[totals->n_tables - 1];
    double most_s = 0, rounding_s = 0.005 * (double)totals->n_tables;
    uint64_t counted = 0, listed = 0;
    for (int i = 0; i < totals->n_stages; i++)
        counted += sums->count[i];
    for (size_t i = 0; i < last->n_cells; i++) {
        const struct weir_totals_cell *cell = &totals->cells[last->first_cell + i];
        listed += cell->count;
        if (cell->count != sums->count[cell->stage] || fabs(cell->total_s - sums->total_s[cell->stage]) > rounding_s)
            return false;
        most_s = fmax(most_s, cell->total_s);
    }
    return listed == counted && most_s > 2 * rounding_s;
}

void weir_totals_find_whole(struct weir_totals *totals)
{
    if (totals->n_tables < 3 || totals->dropped_rows > 0)
        return;
    struct weir_totals_whole sums = {0};
    for (size_t table = 0; table + 1 < totals->n_tables; table++) {
        const struct weir_totals_table *from = &totals->tables[table];
        if (from->final)
            return;
        for (size_t i = 0; i < from->n_cells; i++) {
            const struct weir_totals_cell *cell = &totals->cells[from->first_cell + i];
            sums.total_s[cell->stage] += cell->total_s;
            sums.count[cell->stage] += cell->count;
        }
    }
    totals->tables[totals->n_tables - 1].final |= last_is_sum(totals, &sums);
}

void weir_totals_whole(const struct weir_totals *totals, bool cumulative, struct weir_totals_whole *whole)
{
    bool runs = false;
    for (size_t table = 0; table < totals->n_tables; table++)
        runs |= totals->tables[table].final;
    *whole = (struct weir_totals_whole){0};
    for (size_t table = 0; table < totals->n_tables; table++) {
        const struct weir_totals_table *from = &totals->tables[table];
        for (size_t i = 0; i < from->n_cells && (!runs || from->final); i++) {
            const struct weir_totals_cell *cell = &totals->cells[from->first_cell + i];
            whole->total_s[cell->stage] = cell->total_s + (cumulative ? 0 : whole->total_s[cell->stage]);
            whole->count[cell->stage] = cell->count + (cumulative ? 0 : whole->count[cell->stage]);
        }
    }
}

/* Subtracts the previous table. Stages that are missing because the table was cut off stay missing. */
static void subtract(struct spread *now, const struct spread *before, int n_stages)
{
    for (int i = 0; i < n_stages; i++) {
        if (!now->there[i] || !before->there[i])
            continue;
        now->count[i] -= before->count[i];
        now->total_s[i] -= before->total_s[i];
        now->mean_s[i] = now->count[i] ? now->total_s[i] / (double)now->count[i] : 0;
    }
}

static void load(const struct weir_totals *totals, size_t table, bool difference, struct spread *spread,
                 struct spread *scratch)
{
    spread_table(totals, table, spread);
    if (!difference || table == 0)
        return;
    spread_table(totals, table - 1, scratch);
    subtract(spread, scratch, totals->n_stages);
}

static void table_label(char text[32], const struct weir_totals_table *table)
{
    if (table->final)
        snprintf(text, 32, "run");
    else if (table->epoch_first > 0)
        snprintf(text, 32, "%d-%d", table->epoch_first, table->epoch_last);
    else if (table->after_epoch >= 0)
        snprintf(text, 32, "<=%d", table->after_epoch);
    else
        snprintf(text, 32, "-");
}

static void print_head(FILE *out, const struct weir_totals *totals, size_t first, size_t end, int width)
{
    static const char *const names[3] = {"table", "line", "epochs"};
    for (int row = 0; row < 3; row++) {
        fprintf(out, "%-*s", width, names[row]);
        for (size_t table = first; table < end; table++) {
            char text[32];
            if (row == 0)
                snprintf(text, sizeof text, "%zu%s", table + 1, totals->tables[table].closed ? "" : "*");
            else if (row == 1)
                snprintf(text, sizeof text, "%" PRIu64, totals->tables[table].line);
            else
                table_label(text, &totals->tables[table]);
            fprintf(out, " %*s", COLUMN_WIDTH, text);
        }
        putc('\n', out);
    }
}

static void print_cell(FILE *out, const struct weir_totals *totals, const struct spread *spread, int stage,
                       enum figure figure)
{
    char text[24];
    if (!spread->there[stage])
        snprintf(text, sizeof text, "-");
    else if (figure == FIGURE_TOTAL)
        snprintf(text, sizeof text, "%.*fs", totals->decimals, spread->total_s[stage]);
    else if (spread->mean_s[stage] > 0 && spread->mean_s[stage] < 10e-6)
        weir_report_time(text, spread->mean_s[stage]);
    else
        snprintf(text, sizeof text, "%.*fms", totals->decimals, 1e3 * spread->mean_s[stage]);
    fprintf(out, " %*s", COLUMN_WIDTH, text);
}

static void print_matrix(FILE *out, const struct weir_totals *totals, enum figure figure, bool difference, int width)
{
    size_t fitting = (size_t)fmax((weir_terminal_width(out) - width) / (1 + COLUMN_WIDTH), 1);
    size_t block = fitting < totals->n_tables ? fitting : totals->n_tables;
    struct spread *spreads = calloc(block + 1, sizeof *spreads);
    for (size_t first = 0; spreads && first < totals->n_tables; first += block) {
        size_t end = first + block;
        if (end > totals->n_tables)
            end = totals->n_tables;
        for (size_t table = first; table < end; table++)
            load(totals, table, difference, &spreads[table - first], &spreads[block]);
        if (first > 0)
            putc('\n', out);
        print_head(out, totals, first, end, width);
        for (int stage = 0; stage < totals->n_stages; stage++) {
            const char *name = totals->names[stage];
            fprintf(out, "%s%*s", name, width - weir_text_width(name), "");
            for (size_t table = first; table < end; table++)
                print_cell(out, totals, &spreads[table - first], stage, figure);
            putc('\n', out);
        }
    }
    if (!spreads)
        fputs("(out of memory)\n", out);
    free(spreads);
}

void weir_totals_print(FILE *out, const struct weir_totals *totals, bool cumulative)
{
    static const struct {
        enum figure figure;
        bool difference;
        const char *title;
    } parts[] = {
        {FIGURE_TOTAL, false, "stage totals over time, as printed in the tables"},
        {FIGURE_MEAN, false, "mean per call, as printed in the tables"},
        {FIGURE_TOTAL, true, "totals per period (difference from the previous table)"},
        {FIGURE_MEAN, true, "mean per call within the period"},
    };
    int width = 10;
    for (int stage = 0; stage < totals->n_stages; stage++)
        if (weir_text_width(totals->names[stage]) > width)
            width = weir_text_width(totals->names[stage]);
    for (size_t part = 0; part < sizeof parts / sizeof parts[0]; part++) {
        if (parts[part].difference && !cumulative)
            continue;
        fprintf(out, "\n%s:\n", parts[part].title);
        print_matrix(out, totals, parts[part].figure, parts[part].difference, width);
    }
}

static void json_figure(struct weir_json *json, const char *key, const struct weir_totals *totals, int stage,
                        enum figure figure, bool difference)
{
    struct spread *pair = malloc(2 * sizeof *pair);
    weir_json_array(json, key);
    for (size_t table = 0; pair && table < totals->n_tables; table++) {
        load(totals, table, difference, &pair[0], &pair[1]);
        if (!pair->there[stage])
            weir_json_null(json, NULL);
        else if (figure == FIGURE_COUNT)
            weir_json_uint(json, NULL, pair->count[stage]);
        else
            weir_json_double(json, NULL, figure == FIGURE_TOTAL ? pair->total_s[stage] : pair->mean_s[stage]);
    }
    weir_json_end(json, ']');
    free(pair);
}

static void json_matrix(struct weir_json *json, const char *key, const struct weir_totals *totals, bool difference)
{
    weir_json_array(json, key);
    for (int stage = 0; stage < totals->n_stages; stage++) {
        weir_json_object(json, NULL);
        weir_json_text(json, "name", totals->names[stage]);
        json_figure(json, "total_s", totals, stage, FIGURE_TOTAL, difference);
        json_figure(json, "count", totals, stage, FIGURE_COUNT, difference);
        json_figure(json, "mean_s", totals, stage, FIGURE_MEAN, difference);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

void weir_totals_json(struct weir_json *json, const struct weir_totals *totals, bool cumulative)
{
    weir_json_array(json, "tables");
    for (size_t i = 0; i < totals->n_tables; i++) {
        const struct weir_totals_table *table = &totals->tables[i];
        weir_json_object(json, NULL);
        weir_json_uint(json, "line", table->line);
        if (table->epoch_first > 0) {
            weir_json_int(json, "epoch_first", table->epoch_first);
            weir_json_int(json, "epoch_last", table->epoch_last);
        }
        weir_json_bool(json, "final", table->final);
        if (table->after_epoch >= 0)
            weir_json_int(json, "after_epoch", table->after_epoch);
        weir_json_bool(json, "closed", table->closed);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    json_matrix(json, "totals", totals, false);
    if (cumulative)
        json_matrix(json, "periods", totals, true);
    else
        weir_json_null(json, "periods");
}
