/* Writes the verdict, its key figures and advice, and what limits the run. */
#include "analyze/page/page_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Figures that loaders and watched loaders both have. */
struct summary {
    enum weir_data_bound bound;
    double wait, rate;  /* -1, 0 = unknown */
    double gain;        /* largest predicted ratio; 0 = none */
    const char *change; /* name of the advice that predicts it, or its setting */
    bool is_setting;
    bool items;             /* the rate is in items/s */
    struct weir_verdict of; /* without causes for a watched loader */
    struct weir_job_verdict watch;
};

/* ---- the text ---- */

static bool begins(const char *line, const char *with)
{
    return strncmp(line, with, strlen(with)) == 0;
}

/* Writes the rest of an advice line, "name  effect  --flag", as cells. */
static void put_cells(FILE *out, const char *line, size_t length)
{
    size_t at = 0;
    for (int cell = 0; cell < 3; cell++) {
        const char *gap = cell < 2 ? memmem(line + at, length - at, "  ", 2) : NULL;
        size_t end = gap ? (size_t)(gap - line) : length;
        fputs(cell == 0 ? "<th scope=\"row\">" : cell == 2 && end > at ? "<td><code>" : "<td>", out);
        weir_page_text_n(out, line + at, end - at);
        fputs(cell == 0 ? "</th>" : cell == 2 && end > at ? "</code></td>" : "</td>", out);
        for (at = end; at < length && line[at] == ' ';)
            at++;
    }
}

static size_t put_headline(FILE *out, const char *text)
{
    size_t length = strcspn(text, "\n"), skip = begins(text, "verdict: ") ? strlen("verdict: ") : 0;
    fputs("<p class=\"verdict\" lang=\"en\">", out);
    weir_page_text_n(out, text + skip, length - skip);
    fputs("</p>\n", out);
    return length;
}

/* Lines with columns are advice; the others are further causes and remarks. The limits have a chart of their own. */
static void put_lines(FILE *out, const char *text)
{
    bool table = false;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t length = strcspn(line, "\n"), indent = strspn(line, " ");
        const char *body = line + indent;
        bool advice = indent > 0 && memmem(body, length - indent, "  ", 2);
        if (begins(body, "limits in images/s:") || length == indent)
            continue;
        if (advice != table)
            fputs(advice ? "<table class=\"advice\"><tbody>\n" : "</tbody></table>\n", out);
        table = advice;
        if (advice) {
            fputs("<tr>", out);
            put_cells(out, body, length - indent);
            fputs("</tr>\n", out);
            continue;
        }
        fputs("<p class=\"remark\">", out);
        weir_page_text_n(out, body, length - indent);
        fputs("</p>\n", out);
    }
    if (table)
        fputs("</tbody></table>\n", out);
}

/* ---- key figures ---- */

static void put_figure(FILE *out, const char *value, const char *name, const char *change, bool is_setting)
{
    fputs("<div><dt>", out);
    weir_page_text(out, name);
    fputs(is_setting ? " <code>" : " ", out);
    weir_page_text(out, change);
    fputs(is_setting ? "</code></dt><dd>" : "</dt><dd>", out);
    weir_page_text(out, value);
    fputs("</dd></div>\n", out);
}

static void put_figures(struct weir_page_out *page, const struct summary *s)
{
    FILE *out = page->out;
    char text[WEIR_PAGE_FIGURE], gain[WEIR_PAGE_FIGURE + 8];
    bool waits = s->wait >= 0 && s->bound != WEIR_BOUND_NO_STEP;
    if (!(s->rate > 0) && !waits && !(s->gain > 1))
        return;
    fputs("<dl class=\"figures\">\n", out);
    if (s->rate > 0)
        put_figure(out, weir_page_number(text, s->rate),
                   weir_word(s->items ? WEIR_WORD_ITEMS_S : WEIR_WORD_IMAGES_S, page->lang), "", false);
    if (waits)
        put_figure(out, weir_page_percent(text, s->wait), weir_word(WEIR_WORD_DATA_WAIT, page->lang), "", false);
    if (s->gain > 1) {
        snprintf(gain, sizeof gain, "%s ×", s->gain > 50 ? "> 50" : weir_page_number(text, s->gain));
        put_figure(out, gain, weir_word(WEIR_WORD_GAIN, page->lang), s->change, s->is_setting);
    }
    fputs("</dl>\n", out);
}

/* ---- what limits ---- */

/* Bounds far above the lowest would shrink the others to nothing, so bars end at this multiple. */
static const double BAR_MAX = 3;

struct limit {
    const char *name;
    double rate;
    bool lowest;
};

static int by_rate(const void *a, const void *b)
{
    const struct limit *left = a, *right = b;
    return left->rate < right->rate ? -1 : left->rate > right->rate;
}

/* measured: where the line of the measured rate stands, 0..1. */
static void put_limit(struct weir_page_out *page, const struct limit *limit, double scale, double measured)
{
    FILE *out = page->out;
    char text[WEIR_PAGE_FIGURE];
    fprintf(out, "<tr%s><th scope=\"row\">", limit->lowest ? " class=\"lowest\"" : "");
    weir_page_text(out, limit->name);
    fputs("</th><td class=\"wide\"><svg class=\"limit\" width=\"100%\" height=\"18\" aria-hidden=\"true\">", out);
    fprintf(out, "<rect class=\"%s\" y=\"3\" width=\"%.2f%%\" height=\"12\"/>", limit->lowest ? "hot" : "cool",
            100 * weir_page_part(limit->rate, scale));
    if (limit->rate > scale) /* marks that the bar is cut off */
        fputs("<text class=\"more\" x=\"100%\" y=\"13\" text-anchor=\"end\">»</text>", out);
    fprintf(out, "<line class=\"now\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"0\" y2=\"18\"/></svg></td><td>%s</td></tr>\n",
            100 * measured, 100 * measured, weir_page_number(text, limit->rate));
}

static int collect_limits(struct limit limits[WEIR_RESOURCES], const struct weir_verdict *verdict)
{
    const struct weir_demands *d = &verdict->demands;
    int n = 0;
    for (int i = 0; i < WEIR_RESOURCES; i++)
        if (d->bound[i] > 0 && !(i == WEIR_RESOURCE_CONSUMER && verdict->found.bound == WEIR_BOUND_NO_STEP))
            limits[n++] = (struct limit){weir_resource_text((enum weir_resource)i), d->bound[i], i == (int)d->least};
    qsort(limits, (size_t)n, sizeof *limits, by_rate);
    return n;
}

static void put_limits(struct weir_page_out *page, const struct weir_verdict *verdict)
{
    const struct weir_demands *d = &verdict->demands;
    struct limit limits[WEIR_RESOURCES];
    FILE *out = page->out;
    char text[WEIR_PAGE_FIGURE];
    int n = d->known && d->rate > 0 && verdict->found.bound != WEIR_BOUND_UNKNOWN ? collect_limits(limits, verdict) : 0;
    if (n == 0)
        return;
    double scale = fmin(fmax(limits[n - 1].rate, d->rate), BAR_MAX * fmax(d->rate, limits[0].rate));
    double measured = weir_page_part(d->rate, scale);
    fprintf(out,
            "<section>\n<h2>%s</h2>\n<p class=\"note\">%s</p>\n<table class=\"limits\"><thead><tr><td></td><td></td>",
            weir_word(WEIR_WORD_LIMITS, page->lang), weir_word(WEIR_WORD_LIMITS_NOTE, page->lang));
    fprintf(out, "<th scope=\"col\">%s</th></tr></thead>\n<tbody>\n", weir_word(WEIR_WORD_IMAGES_S, page->lang));
    for (int i = 0; i < n; i++)
        put_limit(page, &limits[i], scale, measured);
    fprintf(out, "<tr class=\"measured\"><th scope=\"row\">%s</th><td class=\"wide\">",
            weir_word(WEIR_WORD_MEASURED, page->lang));
    fprintf(out,
            "<svg class=\"limit\" width=\"100%%\" height=\"18\" aria-hidden=\"true\"><line class=\"now\" x1=\"%.2f%%\" "
            "x2=\"%.2f%%\" y1=\"0\" y2=\"18\"/></svg></td><td>%s</td></tr>\n</tbody></table>\n</section>\n",
            100 * measured, 100 * measured, weir_page_number(text, d->rate));
}

/* ---- both kinds of verdicts ---- */

static double rate_of(const struct weir_page_run *run)
{
    const struct weir_report_steps *steps = &run->report->steps;
    double seconds = steps->train_s + steps->val_s;
    if (run->is_measured)
        return run->measured.images_per_s;
    return seconds > 0 ? (double)steps->images / seconds : 0;
}

/* Takes the largest predicted gain, with the setting or name of the advice. */
static void take(struct summary *s, const struct weir_diagnosis *found, double rate)
{
    s->bound = found->bound;
    s->wait = found->wait;
    s->rate = rate;
    for (int i = 0; i < found->n_advices; i++) {
        const struct weir_advice *advice = &found->advices[i];
        if (advice->ratio <= s->gain || advice->kind == WEIR_ADVICE_FEWER_WORKERS)
            continue;
        s->gain = advice->ratio;
        s->is_setting = advice->setting[0] != '\0';
        s->change = s->is_setting ? advice->setting : weir_advice_words(found->subject, advice->kind)->name;
    }
}

static void summarise(struct summary *s, const struct weir_page_run *run)
{
    s->change = "";
    s->items = run->watch != NULL;
    if (run->plain) {
        s->wait = weir_plain_wait(run->plain);
    } else if (run->watch) {
        weir_job_judge(&s->watch, run->watch);
        take(s, &s->watch.found, run->watch->loop_s > 0 ? run->watch->items / run->watch->loop_s : 0);
    } else {
        weir_verdict_make(&s->of, run->report, NULL);
        take(s, &s->of.found, rate_of(run));
    }
}

int weir_page_verdict(struct weir_page_out *page)
{
    const struct weir_page_run *run = page->run;
    char *text = NULL;
    size_t size = 0;
    if (!run->report && !run->plain)
        return 0;
    struct summary *s = calloc(1, sizeof *s);
    FILE *lines = s ? open_memstream(&text, &size) : NULL;
    if (!lines) {
        free(s);
        return -ENOMEM;
    }
    summarise(s, run);
    if (run->plain)
        weir_plain_verdict_lines(lines, run->plain);
    else if (run->watch)
        weir_watch_verdict_lines(lines, &s->watch, run->watch);
    else
        weir_verdict_lines(lines, &s->of);
    int rc = fclose(lines) == 0 ? 0 : -ENOMEM;
    if (rc == 0) {
        fprintf(page->out, "<section>\n<h2 class=\"unseen\">%s</h2>\n", weir_word(WEIR_WORD_VERDICT, page->lang));
        size_t headline = put_headline(page->out, text);
        put_figures(page, s);
        fputs("<div lang=\"en\">\n", page->out);
        put_lines(page->out, text + headline);
        fputs("</div>\n</section>\n", page->out);
        if (!run->watch)
            put_limits(page, &s->of);
    }
    free(text);
    free(s);
    return rc;
}
