/* Writes pages of results: weir compare's here, those of trials in page_trials.c. They have no Chinese, like the
 * commands. */
#include "analyze/page/page_result.h"
#include "analyze/page/page_priv.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

static const double NUMBER_MAX = 1e15; /* larger figures are unknown */

double weir_result_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    double number = json_number_value(value);
    return json_is_number(value) && fabs(number) <= NUMBER_MAX ? number : NAN;
}

const char *weir_result_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

void weir_result_command(FILE *out, const json_t *words)
{
    if (json_array_size(words) == 0)
        return;
    fputs("<p class=\"remark\"><code>", out);
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        fputs(i ? " " : "", out);
        weir_page_text(out, word ? word : "");
    }
    fputs("</code></p>\n", out);
}

/* ---- weir compare ---- */

static const double CHANGE_MAX = 1; /* the axis ends at -100 % and +100 % */

static bool is_clear(const json_t *delta)
{
    const char *result = weir_result_text(delta, "result");
    return strcmp(result, "higher") == 0 || strcmp(result, "lower") == 0;
}

static double place(double change)
{
    return 100 * weir_page_part(change + CHANGE_MAX, 2 * CHANGE_MAX);
}

/* The change with its interval. It is filled if it exceeds the noise. */
static void put_interval(FILE *out, const json_t *delta)
{
    double change = weir_result_number(delta, "change"), low = weir_result_number(delta, "low");
    double high = weir_result_number(delta, "high");
    fputs("<td class=\"wide\"><svg class=\"range\" width=\"100%\" height=\"18\" aria-hidden=\"true\">"
          "<line class=\"rule\" x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"18\"/>",
          out);
    if (low <= high)
        fprintf(out, "<line class=\"whisker\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"9\" y2=\"9\"/>", place(low),
                place(high));
    if (isfinite(change))
        fprintf(out, "<circle class=\"%s\" cx=\"%.2f%%\" cy=\"9\" r=\"4\"/>", is_clear(delta) ? "cool" : "open",
                place(change));
    fputs("</svg></td>", out);
}

static void put_change(FILE *out, const json_t *delta)
{
    double change = weir_result_number(delta, "change");
    if (!isfinite(change) || !json_is_string(json_object_get(delta, "result")))
        fputs("<td>–</td>", out);
    else if (!is_clear(delta))
        fputs("<td>~</td>", out);
    else if (change > 1)
        weir_page_put(out, "<td>%N ×</td>", 1 + change);
    else
        weir_page_put(out, "<td>%s%P</td>", change > 0 ? "+" : change < 0 ? "−" : "", fabs(change));
}

/* cells: the template of the values before and after. */
static void put_delta(FILE *out, const json_t *delta, const char *cells)
{
    if (!json_is_object(delta) || !isfinite(weir_result_number(delta, "before")))
        return;
    weir_page_put(out, "<tr%s><th scope=\"row\">%H</th>", is_clear(delta) ? " class=\"clear\"" : "",
                  weir_result_text(delta, "name"));
    weir_page_put(out, cells, weir_result_number(delta, "before"), weir_result_number(delta, "after"));
    put_interval(out, delta);
    put_change(out, delta);
    fputs("</tr>\n", out);
}

/* "no, limited by decode" */
static void put_bound(FILE *out, const json_t *side)
{
    const char *bound = weir_result_text(side, "data_bound"), *cause = weir_result_text(side, "cause");
    weir_page_put(out, "%H%s%H", *bound ? bound : "cannot tell", *bound && *cause ? ", limited by " : "",
                  *bound ? cause : "");
}

static void put_headline(FILE *out, const json_t *comparison)
{
    const json_t *before = json_object_get(comparison, "before"), *after = json_object_get(comparison, "after");
    weir_page_put(out, "<p class=\"verdict\">%H</p>\n", weir_result_text(comparison, "verdict"));
    if (!*weir_result_text(before, "data_bound") && !*weir_result_text(after, "data_bound"))
        return;
    fputs("<p>Data-bound before: ", out);
    put_bound(out, before);
    fputs("; after: ", out);
    put_bound(out, after);
    fputs(".</p>\n", out);
}

static void put_differences(FILE *out, const json_t *differences)
{
    if (json_array_size(differences) == 0)
        return;
    fputs("<h2>Differences</h2>\n<table class=\"settings\"><thead><tr><th scope=\"col\">name</th><th scope=\"col\">"
          "before</th><th scope=\"col\">after</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = 0; i < json_array_size(differences); i++) {
        const json_t *each = json_array_get(differences, i);
        weir_page_put(out, "<tr><th scope=\"row\">%H</th><td>%H</td><td>%H</td></tr>\n", weir_result_text(each, "name"),
                      weir_result_text(each, "before"), weir_result_text(each, "after"));
    }
    fputs("</tbody></table>\n", out);
}

static void put_comparison(FILE *out, const json_t *comparison)
{
    const json_t *stages = json_object_get(comparison, "stages");
    weir_page_put(out, "<section>\n<p class=\"facts\">%H → %H</p>\n",
                  weir_result_text(json_object_get(comparison, "before"), "file"),
                  weir_result_text(json_object_get(comparison, "after"), "file"));
    put_headline(out, comparison);
    weir_page_put(
        out,
        "<p class=\"note\">Each change with its confidence interval, from −100 %% to +100 %%; the line is no change. "
        "Filled: beyond the noise. ~: within it.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
        "aria-label=\"Changes\"><table class=\"changes\"><thead><tr><th scope=\"col\">time per %H</th><th "
        "scope=\"col\" class=\"minor\">before</th><th scope=\"col\">after</th><td></td><th "
        "scope=\"col\">change</th></tr></thead>\n<tbody>\n",
        weir_result_text(comparison, "per"));
    put_delta(out, json_object_get(comparison, "whole"), "<td class=\"minor\">%N</td><td>%N</td>");
    put_delta(out, json_object_get(comparison, "data_wait"), "<td class=\"minor\">%P</td><td>%P</td>");
    for (size_t i = 0; i < json_array_size(stages); i++)
        put_delta(out, json_array_get(stages, i), "<td class=\"minor\">%T</td><td>%T</td>");
    fputs("</tbody></table></div>\n", out);
    put_differences(out, json_object_get(comparison, "differences"));
    fputs("</section>\n", out);
}

static void put_comparisons(FILE *out, const json_t *comparisons)
{
    for (size_t i = 0; i < json_array_size(comparisons); i++)
        put_comparison(out, json_array_get(comparisons, i));
}

/* ---- the page ---- */

int weir_page_of_result(FILE *out, const char *json, size_t length, struct weir_err *err)
{
    json_error_t where;
    json_t *result = json_loadb(json, length, 0, &where);
    const json_t *comparisons = json_object_get(result, "comparisons"), *cells = json_object_get(result, "cells");
    const json_t *candidates = json_object_get(result, "candidates");
    if (!json_is_array(comparisons) && !json_is_array(cells) && !json_is_array(candidates)) {
        json_decref(result);
        return weir_err_set(err, -ENODATA, "is no result of weir compare, bench or tune");
    }
    const char *data = weir_result_text(result, "data");
    const char *title = comparisons ? "Comparison"
                        : cells     ? weir_result_text(json_object_get(result, "config"), "data")
                                    : data;
    weir_page_head(out, WEIR_LANG_EN, title);
    weir_page_put(out, "<header><h1>%H</h1></header>\n", title);
    if (comparisons)
        put_comparisons(out, comparisons);
    else if (cells)
        weir_result_bench(out, result);
    else
        weir_result_tune(out, result);
    weir_page_foot(out);
    json_decref(result);
    return 0;
}
