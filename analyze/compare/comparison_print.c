/* The text of a comparison. */
#include "analyze/compare/comparison.h"
#include "base/field_rows.h"
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

/* A line of the table. */
struct line {
    const char *name;
    struct weir_delta of;
    bool rate, points, fastest; /* points: the values are fractions, so their change is in percentage points */
};

static void print_value(FILE *out, const struct line *line, double value)
{
    char text[32];
    if (line->points && !isnan(value))
        fprintf(out, "%.1f%%", 100 * value);
    else
        fputs(value_text(text, value, line->rate), out);
}

static void print_before(FILE *out, const void *line)
{
    print_value(out, line, ((const struct line *)line)->of.before);
}

static void print_after(FILE *out, const void *line)
{
    print_value(out, line, ((const struct line *)line)->of.after);
}

static void print_change(FILE *out, const void *object)
{
    const struct line *line = object;
    const struct weir_delta *of = &line->of;
    if (is_change(of) && isfinite(of->change))
        fprintf(out, "%s%+.1f%s", line->fastest ? "*" : "", 100 * of->change, line->points ? "" : "%");
    else
        fputs(isnan(of->before) ? "new" : isnan(of->after) ? "gone" : "~", out);
}

static void print_interval(FILE *out, const void *object)
{
    const struct line *line = object;
    const char *unit = line->points ? "" : "%";
    if (isfinite(line->of.low) && isfinite(line->of.high))
        fprintf(out, "%+.1f%s to %+.1f%s", 100 * line->of.low, unit, 100 * line->of.high, unit);
    else
        putc('-', out);
}

static void print_p(FILE *out, const void *line)
{
    double p = ((const struct line *)line)->of.p;
    fprintf(out, isnan(p) ? "-" : p < 0.0001 ? "<0.0001" : "%.4f", p);
}

static void print_n(FILE *out, const void *line)
{
    const struct weir_delta *of = &((const struct line *)line)->of;
    fprintf(out, "%d+%d", of->n_before, of->n_after);
}

/* The change of the fastest call, marked with *, is shown if noise hides that of all calls. */
static bool shows_fastest(const struct weir_comparison_row *row)
{
    return !is_change(&row->change) && is_change(&row->fastest);
}

static bool has_fastest(const struct weir_comparison *c)
{
    for (int i = 0; i < c->n_rows; i++)
        if (!c->rows[i].small && shows_fastest(&c->rows[i]))
            return true;
    return false;
}

static struct line stage_line(const struct weir_comparison_row *row)
{
    struct line line = {row->name, row->change, .fastest = shows_fastest(row)};
    if (line.fastest) {
        line.of = row->fastest;
        line.of.before = row->change.before;
        line.of.after = row->change.after;
    }
    return line;
}

/* Returns the noun for the table's rows. */
static const char *rows_of(const struct weir_comparison *c)
{
    return strcmp(c->before->unit, "trial") == 0 ? "candidate" : "stage";
}

#define S struct line
static void add_table(struct weir_document *document, const struct weir_comparison *c, bool all)
{
    char heading[64] = "";
    const struct weir_field columns[] = {
        PLAIN(NULL, name, COLUMN(heading, .left = true, .shrink_to = 22, .width = 22)),
        CELL("before", print_before, .width = 9),
        CELL("after", print_after, .width = 9),
        CELL("change", print_change, .width = 7),
        CELL("interval", print_interval, .priority = 1, .width = 18),
        CELL("p", print_p, .priority = 2, .width = 7),
        CELL("n", print_n, .priority = 3, .width = 5),
    };
    WEIR_FIELDS(fields, columns);
    struct line *lines = calloc((size_t)c->n_rows + 2, sizeof *lines);
    int n = 0, left_out = 0;
    if (!lines)
        return;
    if (c->n_rows > 0)
        snprintf(heading, sizeof heading, "%s, per %s", rows_of(c), c->before->per ? c->before->per : "");
    lines[n++] = (struct line){c->before->whole_name, c->whole, .rate = is_rate(c)};
    if (!isnan(c->wait.before) || !isnan(c->wait.after))
        lines[n++] = (struct line){"data wait", c->wait, .points = true};
    for (int i = 0; i < c->n_rows; i++)
        if (all || !c->rows[i].small)
            lines[n++] = stage_line(&c->rows[i]);
        else
            left_out++;
    weir_document_table(document, NULL, &fields, lines, n, sizeof *lines, NULL);
    free(lines);
    if (left_out > 0)
        fprintf(weir_document_text(document, NULL, 0), "%d more %s%s under 1 %% of the largest: --wide\n", left_out,
                rows_of(c), left_out == 1 ? "" : "s");
}
#undef S

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

/* ---- settings ---- */

struct difference {
    const char *name, *before, *after; /* NULL = missing */
    bool machine;                      /* of the machine and versions */
};

#define S struct difference
static const struct weir_field difference[] = {
    PLAIN("name", name),
    PLAIN("before", before),
    PLAIN("after", after),
};
static WEIR_FIELDS(difference_fields, difference);
#undef S

static const char *value_of(const struct weir_compared *compared, const char *name)
{
    for (int i = 0; i < compared->n_settings; i++)
        if (strcmp(compared->settings[i].name, name) == 0)
            return compared->settings[i].value;
    return NULL;
}

static bool is_of_machine(const char *name)
{
    return strncmp(name, "machine.", 8) == 0 || strncmp(name, "versions.", 9) == 0 || strcmp(name, "used.host") == 0;
}

/* Finds the settings that differ. Returns their number. The caller frees the list, which is NULL without memory. */
static int find_differences(const struct weir_comparison *c, struct difference **list)
{
    int n = 0;
    *list = calloc((size_t)(c->before->n_settings + c->after->n_settings) + 1, sizeof **list);
    for (int i = 0; i < c->before->n_settings && *list; i++) {
        const struct weir_compared_setting *setting = &c->before->settings[i];
        const char *after = value_of(c->after, setting->name);
        if (strcmp(setting->value, after ? after : "-") != 0)
            (*list)[n++] = (struct difference){setting->name, setting->value, after, is_of_machine(setting->name)};
    }
    for (int i = 0; i < c->after->n_settings && *list; i++) {
        const struct weir_compared_setting *setting = &c->after->settings[i];
        if (!value_of(c->before, setting->name))
            (*list)[n++] = (struct difference){setting->name, NULL, setting->value, is_of_machine(setting->name)};
    }
    return n;
}

static void print_settings(FILE *out, const struct difference *list, int n, bool machine)
{
    int printed = 0;
    for (int i = 0; i < n; i++)
        if (list[i].machine == machine)
            fprintf(out, "%s%s %s -> %s",
                    printed++ > 0 ? ", "
                    : machine     ? "machines differ: "
                                  : "settings differ: ",
                    list[i].name, list[i].before ? list[i].before : "-", list[i].after ? list[i].after : "-");
    if (printed > 0)
        putc('\n', out);
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

/* ---- the comparison ---- */

static const char *result_name(int kind)
{
    static const char *const kinds[] = {
        [WEIR_DELTA_NOISE] = "none", [WEIR_DELTA_LOWER] = "lower", [WEIR_DELTA_HIGHER] = "higher"};
    return kinds[kind];
}

#define S struct weir_delta
static const struct weir_field delta[] = {
    NAME("result", kind, result_name),
    PLAIN("before", before),
    PLAIN("after", after),
    PLAIN("change", change),
    PLAIN("low", low),
    PLAIN("high", high),
    PLAIN("p", p),
    PLAIN("n_before", n_before),
    PLAIN("n_after", n_after),
};
static WEIR_FIELDS(delta_fields, delta);
#undef S

#define S struct weir_comparison_row
#define DELTA(member)                                                                                                  \
    {                                                                                                                  \
        .type = WEIR_FIELD_GROUP, .inner = &delta_fields, WEIR_FIELD_AT(S, member)                                     \
    }
static const struct weir_field change[] = {PLAIN("name", name), DELTA(change)};
static WEIR_FIELDS(change_fields, change);
static const struct weir_field fastest[] = {PLAIN("name", name), DELTA(fastest)};
static WEIR_FIELDS(fastest_fields, fastest);
static const struct weir_field stage[] = {PLAIN("name", name), DELTA(change), OBJECT("fastest", fastest_fields)};
static WEIR_FIELDS(stage_fields, stage);
#undef S

static const char *bound_name(int bound)
{
    return weir_data_bound_name((enum weir_data_bound)bound);
}

#define S struct weir_compared
static const struct weir_field file[] = {
    PLAIN("file", path),      PLAIN("kind", family),
    PLAIN("unit", unit),      NAME("data_bound", bound, bound_name),
    OPTIONAL("cause", cause), KNOWN("others_cores", others_cores),
    PLAIN("cut_off", cut),
};
static WEIR_FIELDS(file_fields, file);
#undef S

static void add_change(struct weir_document *document, const char *key, const char *name, const struct weir_delta *of)
{
    const struct weir_comparison_row row = {.name = name, .change = *of};
    weir_document_object(document, key, &change_fields, &row);
}

static void add_verdict(struct weir_document *document, const struct weir_comparison *c)
{
    FILE *text = weir_document_text(document, "verdict", WEIR_WRAP_COLUMN);
    document->text.highlight = true;
    if (!document->json)
        fputs(is_change(&c->whole) ? "verdict: " : "verdict: ~ ", text);
    write_verdict(text, c);
    putc('\n', text);
}

static void add_remarks(struct weir_document *document, const struct weir_comparison *c)
{
    struct difference *differences;
    int n = find_differences(c, &differences);
    FILE *text = weir_document_text(document, NULL, 2);
    putc('\n', text);
    if (strcmp(c->before->unit, "trial") != 0) {
        print_bound(text, "data-bound: ", c->before);
        print_bound(text, " -> ", c->after);
        putc('\n', text);
    }
    if (c->stages_differ)
        fprintf(text, "stages: not compared, because one file has them per %s and the other per %s\n", c->before->per,
                c->after->per);
    print_settings(text, differences, n, false);
    print_settings(text, differences, n, true);
    print_load(text, c);
    print_test(text, c);
    weir_document_table(document, "differences", &difference_fields, differences, n, sizeof *differences, NULL);
    free(differences);
}

void weir_comparison_describe(struct weir_document *document, const struct weir_comparison *c, bool all)
{
    add_verdict(document, c);
    weir_document_object(document, "before", &file_fields, c->before);
    weir_document_object(document, "after", &file_fields, c->after);
    FILE *text = weir_document_text(document, NULL, 2);
    document->text.separator = ", ";
    print_file(text, "before", c->before, c->before->unit);
    print_file(text, "after ", c->after, c->after->unit);
    putc('\n', text);
    add_change(document, "whole", c->before->whole_name, &c->whole);
    weir_document_fact(document, "slower", weir_comparison_slower(c));
    add_change(document, "data_wait", "data wait", &c->wait);
    weir_document_fact(document, "per", c->before->per);
    weir_document_table(document, "stages", &stage_fields, c->rows, c->n_rows, sizeof *c->rows, NULL);
    add_table(document, c, all);
    add_remarks(document, c);
}
