/* Writes the tables of stages, of their latencies and of the threads. */
#include "analyze/page/page_priv.h"

#include <math.h>
#include <string.h>

enum { SPARK_WIDTH = 100, SPARK_HEIGHT = 20, SPARK_POINTS = 50 };

/* Rows of the report, then those timed by the GPU. */
static int n_rows(const struct weir_loader_report *report)
{
    return report->prof.n_rows + report->gpu.n_rows;
}

static const struct weir_report_row *row_at(const struct weir_loader_report *report, int i)
{
    return i < report->prof.n_rows ? &report->prof.rows[i] : &report->gpu.rows[i - report->prof.n_rows];
}

static void put_name(FILE *out, const struct weir_report_row *row)
{
    char name[WEIR_REPORT_NAME];
    weir_report_row_name(row, name);
    weir_page_put(out, "<th scope=\"row\">%H</th>", name);
}

/* ---- stages ---- */

/* Returns the time per image in part i of n parts of the run. */
static double per_image(const struct weir_page_run *run, int stage, size_t i, size_t n)
{
    double seconds = 0, images = 0;
    for (size_t at = run->n_tables * i / n; at < run->n_tables * (i + 1) / n; at++) {
        seconds += (double)run->tables[at].stage_s[stage];
        images += run->tables[at].images;
    }
    return images > 0 ? seconds / images : 0;
}

/* The time per image over the tables of the run, from zero to its maximum. */
static void put_spark(FILE *out, const struct weir_page_run *run, const struct weir_report_row *row)
{
    char name[WEIR_REPORT_NAME];
    double values[SPARK_POINTS], largest = 0;
    size_t n = run->n_tables < SPARK_POINTS ? run->n_tables : SPARK_POINTS;
    int stage = 0;
    weir_report_row_name(row, name);
    while (stage < run->n_stages && strcmp(run->stages[stage], name) != 0)
        stage++;
    for (size_t i = 0; i < n; i++) {
        values[i] = stage < run->n_stages ? per_image(run, stage, i, n) : 0;
        largest = fmax(largest, values[i]);
    }
    fputs("<td class=\"sparks\">", out);
    if (largest > 0) {
        fprintf(out,
                "<svg class=\"spark\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
                "<path class=\"line\" d=\"",
                SPARK_WIDTH, SPARK_HEIGHT);
        for (size_t i = 0; i < n; i++)
            fprintf(out, "%c%.4g %.3g", i ? 'L' : 'M', SPARK_WIDTH * (double)i / (double)(n - 1),
                    SPARK_HEIGHT * (1 - weir_page_part(values[i], largest)));
        fputs("\"/></svg>", out);
    }
    fputs("</td>", out);
}

static void put_stage(struct weir_page_out *page, const struct weir_report_row *row)
{
    FILE *out = page->out;
    double images = (double)page->run->report->steps.images;
    fputs("<tr>", out);
    put_name(out, row);
    if (row->share >= 0) {
        fputs("<td class=\"wide\">", out);
        weir_page_bar(out, row->share, "cool");
        weir_page_put(out, "</td><td>%P</td>", row->share);
    } else {
        fputs("<td class=\"wide\"></td><td></td>", out);
    }
    weir_page_put(out, "<td class=\"minor\">%T</td><td>%T</td><td class=\"minor\">%C</td>", row->total_s,
                  images > 0 ? row->total_s / images : NAN, (double)row->count);
    if (page->run->n_tables > 1)
        put_spark(out, page->run, row);
    fputs("</tr>\n", out);
}

static void put_group(struct weir_page_out *page, const char *name, enum weir_stage_kind kind, bool consumer)
{
    int columns = page->run->n_tables < 2 ? 6 : 7;
    const struct weir_loader_report *report = page->run->report;
    bool named = false;
    for (int i = 0; i < n_rows(report); i++) {
        const struct weir_report_row *row = row_at(report, i);
        if (row->count == 0 || row->kind != kind || (row->side == WEIR_SIDE_CONSUMER) != consumer)
            continue;
        if (!named)
            fprintf(page->out, "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"%d\">%s</th></tr>\n", columns,
                    name);
        named = true;
        put_stage(page, row);
    }
}

void weir_page_stages(struct weir_page_out *page)
{
    FILE *out = page->out;
    const struct weir_page_run *run = page->run;
    enum weir_lang lang = page->lang;
    char loop_wait[96];
    if (!run->report || n_rows(run->report) == 0)
        return;
    fprintf(out,
            "<section>\n<h2>%s</h2>\n<p class=\"note\">%s</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
            "aria-label=\"%s\"><table class=\"stages\"><thead><tr>",
            weir_word(WEIR_WORD_STAGES, lang), weir_word(WEIR_WORD_STAGES_NOTE, lang),
            weir_word(WEIR_WORD_STAGES, lang));
    fprintf(out,
            "<th scope=\"col\">%s</th><th scope=\"col\" colspan=\"2\">%s</th><th scope=\"col\" class=\"minor\">%s</th>",
            weir_word(WEIR_WORD_STAGE, lang), weir_word(WEIR_WORD_SHARE, lang), weir_word(WEIR_WORD_TOTAL, lang));
    fprintf(out, "<th scope=\"col\">%s</th><th scope=\"col\" class=\"minor\">%s</th>",
            weir_word(run->watch ? WEIR_WORD_PER_ITEM : WEIR_WORD_PER_IMAGE, lang), weir_word(WEIR_WORD_CALLS, lang));
    if (run->n_tables > 1)
        fprintf(out, "<th scope=\"col\" class=\"sparks\">%s %d–%d</th>", weir_word(WEIR_WORD_EPOCHS, lang),
                run->tables[0].first, run->tables[run->n_tables - 1].last);
    fputs("</tr></thead>\n<tbody>\n", out);
    put_group(page, weir_word(WEIR_WORD_WORK, lang), WEIR_KIND_WORK, false);
    put_group(page, weir_word(WEIR_WORD_WAIT, lang), WEIR_KIND_WAIT, false);
    put_group(page, weir_word(WEIR_WORD_LOOP, lang), WEIR_KIND_WORK, true);
    snprintf(loop_wait, sizeof loop_wait, "%s: %s", weir_word(WEIR_WORD_LOOP, lang), weir_word(WEIR_WORD_WAIT, lang));
    put_group(page, loop_wait, WEIR_KIND_WAIT, true);
    fputs("</tbody></table></div>\n</section>\n", out);
}

/* ---- stages of a plain log ---- */

static void put_share(FILE *out, const struct weir_plain_share *row, bool examples)
{
    weir_page_put(out, "<tr><th scope=\"row\">%H</th><td class=\"wide\">", row->name);
    weir_page_bar(out, row->share, "cool");
    weir_page_put(out, "</td><td>%P</td><td class=\"minor\">%T</td>", row->share, row->total_s);
    if (examples)
        fprintf(out, "<td>%s</td>", row->example);
    fputs("</tr>\n", out);
}

static void put_shares(struct weir_page_out *page, const struct weir_plain_shares *table)
{
    FILE *out = page->out;
    enum weir_lang lang = page->lang;
    bool examples = table->n > 0 && table->rows[0].example;
    weir_page_put(
        out,
        "<p class=\"note\" lang=\"en\">%H.</p>\n<table class=\"stages\"><thead><tr><th scope=\"col\">%s</th><th "
        "scope=\"col\" colspan=\"2\">%s</th><th scope=\"col\" class=\"minor\">%s</th>",
        table->title, weir_word(WEIR_WORD_STAGE, lang), weir_word(WEIR_WORD_SHARE, lang),
        weir_word(WEIR_WORD_TOTAL, lang));
    if (examples)
        fprintf(out, "<th scope=\"col\">%s</th>", weir_word(WEIR_WORD_EXAMPLE, lang));
    fputs("</tr></thead>\n<tbody>\n", out);
    for (int i = 0; i < table->n; i++)
        put_share(out, &table->rows[i], examples);
    fputs("</tbody></table>\n", out);
}

/* Writes what the tables of a plain log have in total: the shares, and every stage by its name in the log. */
void weir_page_shares(struct weir_page_out *page)
{
    FILE *out = page->out;
    enum weir_lang lang = page->lang;
    const struct weir_plain_log *log = page->run->plain;
    struct weir_plain_shares tables[WEIR_PLAIN_SHARES];
    struct weir_totals_whole whole;
    if (!log)
        return;
    fprintf(out, "<section>\n<h2>%s</h2>\n", weir_word(WEIR_WORD_STAGES, lang));
    int n = weir_plain_shares(log, tables);
    for (int i = 0; i < n; i++)
        put_shares(page, &tables[i]);
    weir_totals_whole(&log->totals, weir_plain_cumulative(log), &whole);
    fprintf(out,
            "<details><summary>%s (%d)</summary>\n<table class=\"settings\"><thead><tr><th scope=\"col\">%s</th><th "
            "scope=\"col\">%s</th><th scope=\"col\">%s</th></tr></thead>\n<tbody>\n",
            weir_word(WEIR_WORD_TABLE, lang), log->totals.n_stages, weir_word(WEIR_WORD_STAGE, lang),
            weir_word(WEIR_WORD_TOTAL, lang), weir_word(WEIR_WORD_CALLS, lang));
    for (int i = 0; i < log->totals.n_stages; i++)
        weir_page_put(out, "<tr><th scope=\"row\">%H</th><td>%T</td><td>%C</td></tr>\n", log->totals.names[i],
                      whole.total_s[i], (double)whole.count[i]);
    fputs("</tbody></table></details>\n</section>\n", out);
}

/* ---- latency ---- */

static const double FASTEST_S = 1e-8, SLOWEST_S = 1e4; /* shorter and longer calls are drawn at the ends */

struct scale {
    double from, to; /* powers of ten */
};

static void widen(struct scale *scale, const struct weir_report_row *row)
{
    if (row->count == 0 || !(row->max_s > 0) || row->kind != WEIR_KIND_WORK)
        return;
    double low = fmin(fmax(row->min_s, FASTEST_S), SLOWEST_S);
    double high = fmin(fmax(row->max_s, FASTEST_S), SLOWEST_S);
    scale->from = fmin(scale->from, floor(log10(low)));
    scale->to = fmax(scale->to, ceil(log10(high)));
}

static double percent_of(const struct scale *scale, double seconds)
{
    double power = log10(fmin(fmax(seconds, FASTEST_S), SLOWEST_S));
    return 100 * weir_page_part(power - scale->from, scale->to - scale->from);
}

static void put_quantiles(FILE *out, const struct scale *scale, const struct weir_report_row *row)
{
    double p50 = percent_of(scale, row->p50_s), p90 = percent_of(scale, row->p90_s),
           p99 = percent_of(scale, row->p99_s);
    fputs("<td class=\"wide\"><svg class=\"range\" width=\"100%\" height=\"18\" aria-hidden=\"true\">", out);
    for (double power = scale->from; power <= scale->to; power++)
        fprintf(out, "<line class=\"rule\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"18\"/>",
                100 * (power - scale->from) / (scale->to - scale->from),
                100 * (power - scale->from) / (scale->to - scale->from));
    fprintf(out, "<line class=\"whisker\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"9\" y2=\"9\"/>",
            percent_of(scale, row->min_s), percent_of(scale, row->max_s));
    fprintf(out, "<rect class=\"cool\" x=\"%.2f%%\" y=\"5\" width=\"%.2f%%\" height=\"8\"/>", p50,
            fmax(p99 - p50, 0.3));
    fprintf(out, "<line class=\"tick\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"4\" y2=\"14\"/></svg></td>", p90, p90);
}

static void put_latency(struct weir_page_out *page, const struct weir_report_row *row, const struct scale *scale)
{
    fputs("<tr>", page->out);
    put_name(page->out, row);
    put_quantiles(page->out, scale, row);
    weir_page_put(page->out, "<td>%T</td><td class=\"minor\">%T</td><td>%T</td><td class=\"minor\">%T</td></tr>\n",
                  row->p50_s, row->p90_s, row->p99_s, row->max_s);
}

/* The powers of ten above the ranges. If there are many, every other one has a label. The last always has one, and then
 * the one before it has none. */
static void put_scale(FILE *out, const struct scale *scale)
{
    char text[WEIR_PAGE_FIGURE];
    double wide = scale->to - scale->from, each = wide > 6 ? 2 : 1;
    fputs("<td class=\"wide\"><svg class=\"powers\" width=\"100%\" height=\"16\" aria-hidden=\"true\">", out);
    for (double power = scale->from; power <= scale->to; power++) {
        if (power < scale->to && (fmod(power - scale->from, each) > 0 || scale->to - power < each))
            continue;
        bool first = power <= scale->from, last = power >= scale->to;
        fprintf(out, "<text%s x=\"%.2f%%\" y=\"12\" text-anchor=\"%s\">%s</text>",
                first || last ? "" : " class=\"minor\"", 100 * (power - scale->from) / wide,
                first  ? "start"
                : last ? "end"
                       : "middle",
                weir_page_time(text, pow(10, power)));
    }
    fputs("</svg></td>", out);
}

void weir_page_latency(struct weir_page_out *page)
{
    FILE *out = page->out;
    const struct weir_loader_report *report = page->run->report;
    struct scale scale = {INFINITY, -INFINITY};
    if (!report)
        return;
    for (int i = 0; i < n_rows(report); i++)
        widen(&scale, row_at(report, i));
    if (!(scale.to > scale.from))
        return;
    fprintf(out,
            "<section>\n<h2>%s</h2>\n<p class=\"note\">%s</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
            "aria-label=\"%s\"><table class=\"latency\"><thead><tr><th scope=\"col\">%s</th>",
            weir_word(WEIR_WORD_LATENCY, page->lang), weir_word(WEIR_WORD_LATENCY_NOTE, page->lang),
            weir_word(WEIR_WORD_LATENCY, page->lang), weir_word(WEIR_WORD_STAGE, page->lang));
    put_scale(out, &scale);
    fprintf(out, "<th scope=\"col\">%s</th><th scope=\"col\" class=\"minor\">p90</th><th scope=\"col\">p99</th>",
            weir_word(WEIR_WORD_MEDIAN, page->lang));
    fprintf(out, "<th scope=\"col\" class=\"minor\">%s</th></tr></thead>\n<tbody>\n",
            weir_word(WEIR_WORD_MOST, page->lang));
    for (int i = 0; i < n_rows(report); i++) {
        const struct weir_report_row *row = row_at(report, i);
        if (row->count > 0 && row->kind == WEIR_KIND_WORK)
            put_latency(page, row, &scale);
    }
    fputs("</tbody></table></div>\n</section>\n", out);
}

/* ---- threads ---- */

static void put_thread(FILE *out, const struct weir_report_worker *thread)
{
    double worked = weir_page_part(thread->work_s, thread->wall_s);
    double waited = weir_page_part(thread->wait_s, thread->wall_s), drawn = fmin(waited, 1 - worked);
    if (!thread->name[0])
        return;
    weir_page_put(out,
                  "<tr><th scope=\"row\">%H</th><td class=\"wide\"><svg class=\"bar\" width=\"100%%\" height=\"12\" "
                  "aria-hidden=\"true\"><rect class=\"frame\" width=\"100%%\" height=\"12\"/><rect class=\"cool\" "
                  "width=\"%.2f%%\" height=\"12\"/><rect class=\"waits\" x=\"%.2f%%\" width=\"%.2f%%\" "
                  "height=\"12\"/></svg></td>",
                  thread->name, 100 * worked, 100 * worked, 100 * drawn);
    weir_page_put(out, "<td>%P</td><td>%P</td><td class=\"minor\">%P</td></tr>\n", worked, waited,
                  weir_page_part(thread->unattributed_s, thread->wall_s));
}

enum { THREADS_MAX = 256 };

void weir_page_threads(struct weir_page_out *page)
{
    FILE *out = page->out;
    const struct weir_loader_report *report = page->run->report;
    if (!report || report->prof.n_workers == 0)
        return;
    fprintf(out,
            "<section>\n<h2>%s</h2>\n<p class=\"note\">%s</p>\n<table class=\"threads\"><thead><tr><th "
            "scope=\"col\">%s</th><td></td><th scope=\"col\">%s</th><th scope=\"col\">%s</th>",
            weir_word(WEIR_WORD_THREADS, page->lang), weir_word(WEIR_WORD_THREADS_NOTE, page->lang),
            weir_word(WEIR_WORD_THREAD, page->lang), weir_word(WEIR_WORD_WORK, page->lang),
            weir_word(WEIR_WORD_WAIT, page->lang));
    fprintf(out, "<th scope=\"col\" class=\"minor\">%s</th></tr></thead>\n<tbody>\n",
            weir_word(WEIR_WORD_UNATTRIBUTED, page->lang));
    put_thread(out, &report->prof.consumer);
    for (int i = 0; i < report->prof.n_workers && i < THREADS_MAX; i++)
        put_thread(out, &report->prof.workers[i]);
    fputs("</tbody></table>\n</section>\n", out);
}
