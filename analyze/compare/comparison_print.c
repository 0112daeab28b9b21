/* The text of a comparison. */
#include "analyze/compare/comparison.h"
#include "base/table.h"
#include "base/terminal.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OTHERS_APART 0.10 /* of the usable cores */

static bool is_rate(const struct weir_comparison *comparison)
{
    return comparison->before->more_is_better;
}

/* ---- cells ---- */

/* Formats a rate with four digits, or seconds with the unit that fits. */
static const char *value_text(char text[32], double value, bool rate)
{
    if (isnan(value))
        snprintf(text, 32, "-");
    else if (rate)
        snprintf(text, 32, value < 1000 ? "%.4g" : "%.0f", value);
    else if (value >= 1)
        snprintf(text, 32, "%.4gs", value);
    else if (value >= 1e-3)
        snprintf(text, 32, "%.4gms", 1e3 * value);
    else
        snprintf(text, 32, "%.4gus", 1e6 * value);
    return text;
}

static bool is_change(const struct weir_delta *change)
{
    return change->kind == WEIR_DELTA_LOWER || change->kind == WEIR_DELTA_HIGHER;
}

/* points: the values are fractions, so their change is in percentage points. */
static void add_change(struct weir_table *table, const struct weir_delta *change, bool points)
{
    const char *unit = points ? "" : "%";
    if (is_change(change) && isfinite(change->change))
        weir_table_cell(table, "%+.1f%s", 100 * change->change, unit);
    else
        weir_table_cell(table, isnan(change->before) ? "new" : isnan(change->after) ? "gone" : "~");
    if (isfinite(change->low) && isfinite(change->high))
        weir_table_cell(table, "%+.1f%s to %+.1f%s", 100 * change->low, unit, 100 * change->high, unit);
    else
        weir_table_cell(table, "-");
    if (isnan(change->p))
        weir_table_cell(table, "-");
    else
        weir_table_cell(table, change->p < 0.0001 ? "<0.0001" : "%.4f", change->p);
    weir_table_cell(table, "%d+%d", change->n_before, change->n_after);
}

static void add_value_row(struct weir_table *table, const char *name, const struct weir_delta *change, bool rate)
{
    char text[32];
    weir_table_cell(table, "%s", name);
    weir_table_cell(table, "%s", value_text(text, change->before, rate));
    weir_table_cell(table, "%s", value_text(text, change->after, rate));
    add_change(table, change, false);
}

/* Shows the change of the fastest call, marked with *, if noise hides that of all calls. */
static void add_stage_row(struct weir_table *table, const struct weir_comparison_row *row)
{
    char text[32];
    if (is_change(&row->change) || !is_change(&row->fastest)) {
        add_value_row(table, row->name, &row->change, false);
        return;
    }
    weir_table_cell(table, "%s", row->name);
    weir_table_cell(table, "%s", value_text(text, row->change.before, false));
    weir_table_cell(table, "%s", value_text(text, row->change.after, false));
    weir_table_cell(table, "*%+.1f%%", 100 * row->fastest.change);
    weir_table_cell(table, "%+.1f%% to %+.1f%%", 100 * row->fastest.low, 100 * row->fastest.high);
    weir_table_cell(table, row->fastest.p < 0.0001 ? "<0.0001" : "%.4f", row->fastest.p);
    weir_table_cell(table, "%d+%d", row->fastest.n_before, row->fastest.n_after);
}

static bool has_fastest(const struct weir_comparison *c)
{
    for (int i = 0; i < c->n_rows; i++)
        if (!c->rows[i].small && !is_change(&c->rows[i].change) && is_change(&c->rows[i].fastest))
            return true;
    return false;
}

static void add_wait_row(struct weir_table *table, const struct weir_delta *change)
{
    if (isnan(change->before) && isnan(change->after))
        return;
    weir_table_cell(table, "data wait");
    for (int i = 0; i < 2; i++) {
        double wait = i == 0 ? change->before : change->after;
        weir_table_cell(table, isnan(wait) ? "-" : "%.1f%%", 100 * wait);
    }
    add_change(table, change, true);
}

/* Returns the noun for the table's rows. */
static const char *rows_of(const struct weir_comparison *c)
{
    return strcmp(c->before->unit, "trial") == 0 ? "candidate" : "stage";
}

static void print_tables(FILE *out, const struct weir_comparison *c, bool all)
{
    char heading[64] = "";
    const struct weir_column columns[] = {{heading, .left = true, .shrink_to = 22, .width = 22},
                                          {"before", .width = 9},
                                          {"after", .width = 9},
                                          {"change", .width = 7},
                                          {"interval", .priority = 1, .width = 18},
                                          {"p", .priority = 2, .width = 7},
                                          {"n", .priority = 3, .width = 5}};
    struct weir_table table;
    int left_out = 0;
    if (c->n_rows > 0)
        snprintf(heading, sizeof heading, "%s, per %s", rows_of(c), c->before->per ? c->before->per : "");
    weir_table_open(&table, columns, sizeof columns / sizeof *columns);
    add_value_row(&table, c->before->whole_name, &c->whole, is_rate(c));
    add_wait_row(&table, &c->wait);
    for (int i = 0; i < c->n_rows; i++)
        if (all || !c->rows[i].small)
            add_stage_row(&table, &c->rows[i]);
        else
            left_out++;
    weir_table_print(out, &table);
    if (left_out > 0)
        fprintf(out, "%d more %s%s under 1 %% of the largest: --wide\n", left_out, rows_of(c),
                left_out == 1 ? "" : "s");
}

/* ---- lines ---- */

static void write_verdict(FILE *out, const struct weir_comparison *c)
{
    double slower = weir_comparison_slower(c), low = is_rate(c) ? -c->whole.high : c->whole.low,
           high = is_rate(c) ? -c->whole.low : c->whole.high;
    if (c->whole.kind == WEIR_DELTA_UNKNOWN)
        fprintf(out, "Cannot tell: %d and %d measurements, and the test needs %d on each side.", c->whole.n_before,
                c->whole.n_after, WEIR_DELTA_LEAST);
    else if (c->whole.kind == WEIR_DELTA_NOISE)
        fprintf(out, "No change beyond the noise of the %ss (%+.1f %% to %+.1f %%).", c->before->unit,
                100 * c->whole.low, 100 * c->whole.high);
    else if (slower > 0)
        fprintf(out, "%.1f %% slower (%.1f %% to %.1f %%), beyond the noise of the %ss.", 100 * slower, 100 * low,
                100 * high, c->before->unit);
    else
        fprintf(out, "%.1f %% faster (%.1f %% to %.1f %%), beyond the noise of the %ss.", -100 * slower, -100 * high,
                -100 * low, c->before->unit);
}

static void print_headline(FILE *out, const struct weir_comparison *c)
{
    struct weir_wrap wrap;
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    wrap.highlight = true;
    fputs(is_change(&c->whole) ? "verdict: " : "verdict: ~ ", text);
    write_verdict(text, c);
    putc('\n', text);
    weir_wrap_close(&wrap);
}

static void print_file(FILE *out, const char *side, const struct weir_compared *compared, const char *unit)
{
    fprintf(out, "%s %s: %s, %zu %s%s%s\n", side, compared->path, compared->what, compared->whole.n, unit,
            compared->whole.n == 1 ? "" : "s", compared->cut ? "; its last line is cut off" : "");
}

static void print_bound(FILE *out, const char *side, const struct weir_compared *compared)
{
    const char *bound = weir_data_bound_name(compared->bound);
    fprintf(out, "%s%s%s%s", side, bound ? bound : "cannot tell", compared->cause[0] && bound ? ", limited by " : "",
            bound ? compared->cause : "");
}

static const char *value_of(const struct weir_compared *compared, const char *name)
{
    for (int i = 0; i < compared->n_settings; i++)
        if (strcmp(compared->settings[i].name, name) == 0)
            return compared->settings[i].value;
    return "-";
}

/* Prints the settings of `of` that differ, either those of the machine and versions, or the others. */
static int print_settings(FILE *out, const struct weir_comparison *c, bool machine)
{
    int n = 0;
    for (int side = 0; side < 2; side++) {
        const struct weir_compared *of = side == 0 ? c->before : c->after, *other = side == 0 ? c->after : c->before;
        for (int i = 0; i < of->n_settings; i++) {
            const char *name = of->settings[i].name, *value = value_of(other, name);
            bool own = strncmp(name, "machine.", 8) == 0 || strncmp(name, "versions.", 9) == 0 ||
                       strcmp(name, "used.host") == 0;
            if (own != machine || strcmp(value, of->settings[i].value) == 0 || (side == 1 && strcmp(value, "-") != 0))
                continue;
            fprintf(out, "%s%s %s -> %s",
                    n++ > 0   ? ", "
                    : machine ? "machines differ: "
                              : "settings differ: ",
                    name, side == 0 ? of->settings[i].value : value, side == 0 ? value : of->settings[i].value);
        }
    }
    if (n > 0)
        putc('\n', out);
    return n;
}

static void print_load(FILE *out, const struct weir_comparison *c)
{
    const struct weir_compared *before = c->before, *after = c->after;
    bool known = before->others_cores >= 0 && after->others_cores >= 0 && before->cores > 0;
    if (known && fabs(before->others_cores - after->others_cores) > OTHERS_APART * before->cores)
        fprintf(out, "other processes kept %.1f cores busy before, %.1f after: the machine's load may be the change\n",
                before->others_cores, after->others_cores);
}

static void print_test(FILE *out, const struct weir_comparison *c)
{
    if (has_fastest(c))
        fprintf(out, "*: of the fastest call in each %s, where noise hides the change of all calls\n", c->before->unit);
    fprintf(out,
            "~: no change beyond the noise, or fewer than %d measurements. Test: Mann-Whitney U over %ss, p < %g; "
            "intervals %g %%",
            WEIR_DELTA_LEAST, c->before->unit, WEIR_DELTA_P, 100 * (1 - WEIR_DELTA_P));
    if (c->n_rows > 1)
        fprintf(out, "; of %d %ss, p must also be below %g / %d, or the means %d standard errors apart", c->n_rows,
                rows_of(c), WEIR_DELTA_P_OF_ANY, c->n_rows, WEIR_DELTA_ERRORS);
    if (strcmp(c->before->unit, "run") != 0)
        fputs(". It knows the noise within these runs, not that between runs", out);
    putc('\n', out);
}

void weir_comparison_print(FILE *out, const struct weir_comparison *c, bool all)
{
    struct weir_wrap wrap;
    print_headline(out, c);
    FILE *text = weir_wrap_open(&wrap, out, 2, ", ");
    print_file(text, "before", c->before, c->before->unit);
    print_file(text, "after ", c->after, c->after->unit);
    weir_wrap_close(&wrap);
    putc('\n', out);
    print_tables(out, c, all);
    putc('\n', out);
    text = weir_wrap_open(&wrap, out, 2, NULL);
    if (strcmp(c->before->unit, "trial") != 0) {
        print_bound(text, "data-bound: ", c->before);
        print_bound(text, " -> ", c->after);
        putc('\n', text);
    }
    if (c->stages_differ)
        fprintf(text, "stages: not compared, because one file has them per %s and the other per %s\n", c->before->per,
                c->after->per);
    print_settings(text, c, false);
    print_settings(text, c, true);
    print_load(text, c);
    print_test(text, c);
    weir_wrap_close(&wrap);
}

/* ---- JSON ---- */

static void number(struct weir_json *json, const char *key, double value)
{
    if (isfinite(value))
        weir_json_double(json, key, value);
    else
        weir_json_null(json, key);
}

static void members_json(struct weir_json *json, const char *name, const struct weir_delta *change)
{
    static const char *const kinds[] = {
        [WEIR_DELTA_NOISE] = "none", [WEIR_DELTA_LOWER] = "lower", [WEIR_DELTA_HIGHER] = "higher"};
    weir_json_text(json, "name", name);
    weir_json_text(json, "result", kinds[change->kind]);
    number(json, "before", change->before);
    number(json, "after", change->after);
    number(json, "change", change->change);
    number(json, "low", change->low);
    number(json, "high", change->high);
    number(json, "p", change->p);
    weir_json_int(json, "n_before", change->n_before);
    weir_json_int(json, "n_after", change->n_after);
}

static void change_json(struct weir_json *json, const char *key, const char *name, const struct weir_delta *change)
{
    weir_json_object(json, key);
    members_json(json, name, change);
    weir_json_end(json, '}');
}

static void row_json(struct weir_json *json, const struct weir_comparison_row *row)
{
    weir_json_object(json, NULL);
    members_json(json, row->name, &row->change);
    change_json(json, "fastest", row->name, &row->fastest);
    weir_json_end(json, '}');
}

static void file_json(struct weir_json *json, const char *key, const struct weir_compared *compared)
{
    weir_json_object(json, key);
    weir_json_text(json, "file", compared->path);
    weir_json_text(json, "kind", compared->family);
    weir_json_text(json, "unit", compared->unit);
    weir_json_text(json, "data_bound", weir_data_bound_name(compared->bound));
    weir_json_text(json, "cause", compared->cause[0] ? compared->cause : NULL);
    weir_json_known(json, "others_cores", compared->others_cores);
    weir_json_bool(json, "cut_off", compared->cut);
    weir_json_end(json, '}');
}

static void settings_json(struct weir_json *json, const struct weir_comparison *c)
{
    weir_json_array(json, "differences");
    for (int side = 0; side < 2; side++) {
        const struct weir_compared *of = side == 0 ? c->before : c->after, *other = side == 0 ? c->after : c->before;
        for (int i = 0; i < of->n_settings; i++) {
            const char *value = value_of(other, of->settings[i].name);
            if (strcmp(value, of->settings[i].value) == 0 || (side == 1 && strcmp(value, "-") != 0))
                continue;
            weir_json_object(json, NULL);
            weir_json_text(json, "name", of->settings[i].name);
            weir_json_text(json, "before", side == 0 ? of->settings[i].value : NULL);
            weir_json_text(json, "after", side == 1 ? of->settings[i].value : strcmp(value, "-") == 0 ? NULL : value);
            weir_json_end(json, '}');
        }
    }
    weir_json_end(json, ']');
}

static void verdict_json(struct weir_json *json, const struct weir_comparison *c)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out)
        write_verdict(out, c);
    weir_json_text(json, "verdict", out && fclose(out) == 0 ? text : NULL);
    free(text);
}

void weir_comparison_json(struct weir_json *json, const struct weir_comparison *c)
{
    verdict_json(json, c);
    file_json(json, "before", c->before);
    file_json(json, "after", c->after);
    change_json(json, "whole", c->before->whole_name, &c->whole);
    number(json, "slower", weir_comparison_slower(c));
    change_json(json, "data_wait", "data wait", &c->wait);
    weir_json_text(json, "per", c->before->per);
    weir_json_array(json, "stages");
    for (int i = 0; i < c->n_rows; i++)
        row_json(json, &c->rows[i]);
    weir_json_end(json, ']');
    settings_json(json, c);
}
