/* Prints the verdict and the table over ranks. */
#include "analyze/ranks/rank_verdict.h"
#include "base/numbers.h"
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 96, TABLE_ROWS = 16 };
static const double SHOWN_PART = 0.01; /* of the median step: shorter figures are only in the JSON */

/* ---- rows: a figure of all ranks ---- */

struct row {
    char name[64];
    const struct weir_rank_stage *stage; /* NULL for the first rows */
    double (*figure)(const struct weir_rank_record *record);
    double median_s, worst_s;
    const struct weir_rank *worst;
};

struct rows {
    int n;
    struct row rows[ROWS_MAX];
};

static double step_s(const struct weir_rank_record *record)
{
    return record->step_s;
}

static double data_s(const struct weir_rank_record *record)
{
    return record->data_s;
}

static double own_s(const struct weir_rank_record *record)
{
    return record->own_s;
}

static double others_s(const struct weir_rank_record *record)
{
    return record->own_s < 0 ? -1 : fmax(record->step_s - record->data_s - record->own_s, 0);
}

static double core_wait_s(const struct weir_rank_record *record)
{
    return record->core_wait_s;
}

static double throttled_s(const struct weir_rank_record *record)
{
    return record->throttled_s;
}

static const struct figure {
    const char *name;
    double (*figure)(const struct weir_rank_record *record);
} figures[] = {{"step", step_s},
               {"waiting for data", data_s},
               {"loop's own work", own_s},
               {"loop without a core", core_wait_s},
               {"loop throttled", throttled_s},
               {"loop asleep in step", others_s}};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static double value_of(const struct row *row, const struct weir_rank_record *record)
{
    return row->figure ? row->figure(record) : weir_rank_record_stage_s(record, row->stage);
}

/* Returns false if no rank has the figure. */
static bool fill_row(struct row *row, const struct weir_rank *ranks, int n, double *values)
{
    int known = 0;
    row->worst = NULL;
    for (int i = 0; i < n; i++) {
        double value = ranks[i].record ? value_of(row, ranks[i].record) : -1;
        if (value < 0)
            continue;
        values[known++] = value;
        if (!row->worst || value > row->worst_s) {
            row->worst = &ranks[i];
            row->worst_s = value;
        }
    }
    row->median_s = weir_median(values, (size_t)known);
    return known > 0 && row->worst_s >= 0.5e-6;
}

static bool has_stage(const struct rows *rows, const struct weir_rank_stage *stage)
{
    for (int i = 0; i < rows->n; i++)
        if (rows->rows[i].stage && strcmp(rows->rows[i].stage->name, stage->name) == 0 &&
            strcmp(rows->rows[i].stage->side, stage->side) == 0)
            return true;
    return false;
}

static void name_stage(struct row *row, const struct weir_rank_stage *stage)
{
    bool told = strcmp(stage->side, "helper") == 0 || strcmp(stage->side, "gpu") == 0;
    snprintf(row->name, sizeof row->name, "%s%s%s%s", stage->name, told ? " (" : "", told ? stage->side : "",
             told ? ")" : "");
}

_Static_assert(offsetof(struct row, name) == 0, "for weir_compare_text");

/* Fills in the figures, then the stages in the order of their names. */
static bool fill_rows(struct rows *rows, const struct weir_rank *ranks, int n)
{
    double *values = calloc((size_t)n + 1, sizeof *values);
    rows->n = 0;
    for (int i = 0; i < FIGURES && values; i++) {
        struct row *row = &rows->rows[rows->n];
        *row = (struct row){.figure = figures[i].figure};
        snprintf(row->name, sizeof row->name, "%s", figures[i].name);
        rows->n += fill_row(row, ranks, n, values);
    }
    int first = rows->n;
    for (int i = 0; i < n && values; i++) {
        const struct weir_rank_record *record = ranks[i].record;
        for (int s = 0; record && s < record->n_stages && rows->n < ROWS_MAX; s++) {
            struct row *row = &rows->rows[rows->n];
            if (has_stage(rows, &record->stages[s]))
                continue;
            *row = (struct row){.stage = &record->stages[s]};
            name_stage(row, row->stage);
            rows->n += fill_row(row, ranks, n, values);
        }
    }
    qsort(rows->rows + first, (size_t)(rows->n - first), sizeof *rows->rows, weir_compare_text);
    free(values);
    return values != NULL;
}

static double skew_of(const struct row *row)
{
    return row->median_s > 0 ? row->worst_s / row->median_s : INFINITY;
}

/* ---- sentences ---- */

static const char *ms(char text[24], double seconds)
{
    return weir_report_time(text, seconds);
}

/* Writes "rank 3 on node2". */
static void say_rank(FILE *out, const struct weir_rank *rank)
{
    fprintf(out, "rank %d%s%s", rank->rank, rank->host[0] ? " on " : "", rank->host);
}

bool weir_rank_missing_text(const struct weir_rank *rank, char *text, size_t size)
{
    char who[WEIR_RANK_HOST + 64], pid[24] = "", since[48] = " so far";
    snprintf(pid, sizeof pid, " (PID %d)", rank->pid);
    snprintf(who, sizeof who, "rank %d%s%s%s", rank->rank, rank->host[0] ? " on " : "", rank->host,
             rank->pid > 0 ? pid : "");
    if (rank->epoch > 0)
        snprintf(since, sizeof since, " since epoch %d", rank->epoch);
    switch (rank->presence) {
    case WEIR_RANK_REPORTED:
        return false;
    case WEIR_RANK_BEHIND:
        snprintf(text, size, "%s is alive, but behind: it has not reported%s", who, since);
        return true;
    case WEIR_RANK_ENDED:
        snprintf(text, size, "%s has ended and has not reported%s", who, since);
        return true;
    case WEIR_RANK_DIED:
        snprintf(text, size, "%s has died; it has not reported%s", who, since);
        return true;
    case WEIR_RANK_SILENT:
        snprintf(text, size, "%s has not reported%s (%.0f s)", who, since, rank->quiet_s);
        return true;
    case WEIR_RANK_NEVER:
        snprintf(text, size, "%s has never reported (%.0f s)", who, rank->quiet_s);
        return true;
    case WEIR_RANK_LOG:
        snprintf(text, size, "%s: %s", who, rank->why);
        return true;
    }
    return false;
}

static void say_slow(FILE *out, const struct weir_rank_verdict *verdict)
{
    char a[24], b[24];
    say_rank(out, verdict->slow);
    if (verdict->synchronous)
        fprintf(out, " holds the others up: per step it needs %s more than their median\n", ms(a, verdict->excess_s));
    else
        fprintf(out, " is slow: its step takes %s, the others' median is %s\n", ms(a, verdict->slow->record->step_s),
                ms(b, verdict->slow->record->step_s - verdict->excess_s));
    fprintf(out, "  it waits for data %s per step, the others %s", ms(a, verdict->data_s),
            ms(b, verdict->others_data_s));
    if (verdict->own_s >= 0 && verdict->others_own_s >= 0)
        fprintf(out, "; its own work takes %s, the others' %s", ms(a, verdict->own_s), ms(b, verdict->others_own_s));
    fprintf(out, "\n  cause: %s\n", verdict->cause.text);
}

static void say_verdict(FILE *out, const struct weir_rank_verdict *verdict)
{
    switch (verdict->finding) {
    case WEIR_RANKS_FEW:
        fprintf(out, "%d rank%s reported, so there is nothing to compare\n", verdict->reported,
                verdict->reported == 1 ? " has" : "s have");
        break;
    case WEIR_RANKS_SLOW:
        say_slow(out, verdict);
        break;
    case WEIR_RANKS_CHANGING:
        fprintf(out,
                "loading is too slow on all ranks: the slowest rank changes (now %d; %d different ones so far), and "
                "ranks wait for data %.0f %% of the time\n",
                verdict->slow->rank, verdict->changing, 100 * verdict->data_wait);
        break;
    case WEIR_RANKS_EVEN:
        fprintf(out, "no rank is slow: the longest step is %.2f times the median", verdict->step_skew);
        if (verdict->bound != WEIR_BOUND_NO)
            fprintf(out, "; all ranks wait for data %.0f %% of the time", 100 * verdict->data_wait);
        putc('\n', out);
        if (verdict->blind)
            fputs("  steps take equally long and all loops are busy in them: these figures cannot show whether one "
                  "rank's step is slow. Traces of two ranks show it: weir report TRACE\n",
                  out);
        break;
    }
}

static void say_missing(FILE *out, const struct weir_rank *ranks, int n)
{
    char text[512];
    enum { SHOWN = 16 };
    int missing = 0;
    for (int i = 0; i < n; i++)
        if (weir_rank_missing_text(&ranks[i], text, sizeof text) && ++missing <= SHOWN)
            fprintf(out, "%s\n", text);
    if (missing > SHOWN)
        fprintf(out, "... and %d further ranks\n", missing - SHOWN);
}

/* Writes "epochs 1-10", from the ranks' records. */
static void say_epochs(FILE *out, const struct weir_rank *ranks, int n)
{
    int first = 0, last = 0;
    for (int i = 0; i < n; i++) {
        const struct weir_rank_record *record = ranks[i].record;
        if (record && record->epoch_last > last) {
            first = record->epoch_first;
            last = record->epoch_last;
        }
    }
    if (last > 0)
        fprintf(out, ", epoch%s %d", last > first ? "s" : "", first);
    if (last > first)
        fprintf(out, "-%d", last);
}

/* ---- the table ---- */

static void print_rows(FILE *out, const struct rows *rows)
{
    static const struct weir_column columns[] = {{"per step", .left = true, .shrink_to = 19},
                                                 {.heading = "median"},
                                                 {.heading = "worst"},
                                                 {.heading = "skew"},
                                                 {.heading = "rank"},
                                                 {"host", 1, 12, .left = true}};
    struct weir_table table;
    weir_table_open(&table, columns, sizeof columns / sizeof columns[0]);
    for (int i = 0, printed = 0; i < rows->n && printed < FIGURES + TABLE_ROWS; i++) {
        const struct row *row = &rows->rows[i];
        char text[24];
        if (row->worst_s < SHOWN_PART * rows->rows[0].median_s)
            continue;
        printed++;
        weir_table_cell(&table, "%s", row->name);
        weir_table_cell(&table, "%s", ms(text, row->median_s));
        weir_table_cell(&table, "%s", ms(text, row->worst_s));
        if (skew_of(row) < 1000)
            weir_table_cell(&table, "%.2f", skew_of(row));
        else
            weir_table_cell(&table, "-");
        weir_table_cell(&table, "%d", row->worst->rank);
        weir_table_cell(&table, "%s", row->worst->host);
    }
    weir_table_print(out, &table);
}

void weir_rank_verdict_lines(FILE *out, const struct weir_rank_verdict *verdict, const struct weir_rank *ranks, int n)
{
    fprintf(out, "%d ranks", n);
    say_epochs(out, ranks, n);
    fputs(": ", out);
    say_verdict(out, verdict);
    say_missing(out, ranks, n);
}

void weir_rank_table_print(FILE *out, const struct weir_rank_verdict *verdict, const struct weir_rank *ranks, int n)
{
    struct weir_wrap wrap;
    struct rows *rows = malloc(sizeof *rows);
    weir_rank_verdict_lines(weir_wrap_open(&wrap, out, 4, NULL), verdict, ranks, n);
    weir_wrap_close(&wrap);
    if (rows && verdict->reported > 1 && fill_rows(rows, ranks, n))
        print_rows(out, rows);
    free(rows);
}

/* ---- JSON ---- */

static void verdict_json(struct weir_json *json, const struct weir_rank_verdict *verdict)
{
    static const char *const findings[] = {"too-few", "even", "slow-rank", "changing"};
    weir_json_object(json, "verdict");
    weir_json_text(json, "finding", findings[verdict->finding]);
    if (verdict->slow)
        weir_json_int(json, "rank", verdict->slow->rank);
    else
        weir_json_null(json, "rank");
    weir_json_text(json, "host", verdict->slow ? verdict->slow->host : NULL);
    weir_json_text(json, "cause", verdict->slow ? weir_cause_name(WEIR_SUBJECT_RANK, verdict->cause.cause) : NULL);
    weir_json_bool(json, "synchronous", verdict->synchronous);
    weir_json_bool(json, "blind", verdict->blind);
    weir_json_double(json, "step_s", verdict->step_s);
    weir_json_double(json, "step_skew", verdict->step_skew);
    weir_json_double(json, "excess_s", verdict->excess_s);
    weir_json_double(json, "data_wait_fraction", verdict->data_wait);
    weir_json_text(json, "stage", verdict->cause.who[0] ? verdict->cause.who : NULL);
    weir_json_end(json, '}');
}

static void ranks_json(struct weir_json *json, const struct weir_rank *ranks, int n)
{
    char text[512];
    weir_json_array(json, "ranks");
    for (int i = 0; i < n; i++) {
        weir_json_object(json, NULL);
        weir_json_int(json, "rank", ranks[i].rank);
        weir_json_text(json, "host", ranks[i].host[0] ? ranks[i].host : NULL);
        weir_json_int(json, "pid", ranks[i].pid);
        weir_json_text(json, "missing", weir_rank_missing_text(&ranks[i], text, sizeof text) ? text : NULL);
        if (ranks[i].record) {
            weir_json_object(json, "record");
            weir_rank_record_json(json, ranks[i].record);
            weir_json_end(json, '}');
        } else {
            weir_json_null(json, "record");
        }
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
}

void weir_rank_table_json(struct weir_json *json, const struct weir_rank_verdict *verdict,
                          const struct weir_rank *ranks, int n)
{
    struct rows *rows = malloc(sizeof *rows);
    verdict_json(json, verdict);
    weir_json_array(json, "table");
    bool filled = rows && verdict->reported > 0 && fill_rows(rows, ranks, n);
    for (int i = 0; filled && i < rows->n; i++) {
        const struct row *row = &rows->rows[i];
        weir_json_object(json, NULL);
        weir_json_text(json, "name", row->name);
        weir_json_double(json, "median_s", row->median_s);
        weir_json_double(json, "worst_s", row->worst_s);
        weir_json_double(json, "skew", skew_of(row));
        weir_json_int(json, "rank", row->worst->rank);
        weir_json_text(json, "host", row->worst->host);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    ranks_json(json, ranks, n);
    free(rows);
}
