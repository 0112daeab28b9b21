/* Writes the charts over the epochs: rate, data wait and ready batches. */
#include "analyze/page/page_priv.h"

#include <math.h>
#include <string.h>

enum { POINTS_MAX = 200, HEIGHT = 100, WIDTH = 1000 };

/* One or more epochs: a point of the chart, and a row of its table. */
struct point {
    int first, last;
    double mean, low, high;
};

struct chart {
    const char *name, *note;
    const char *(*format)(char text[WEIR_PAGE_FIGURE], double value);
    void (*fill)(struct point *point, const struct weir_page_run *run, size_t from, size_t to);
    bool to_one; /* the scale ends at 1 at most */
    size_t n;
    struct point points[POINTS_MAX];
};

/* ---- values ---- */

static double over(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void fill_rate(struct point *point, const struct weir_page_run *run, size_t from, size_t to)
{
    double images = 0, seconds = 0;
    *point = (struct point){run->epochs[from].first, run->epochs[to - 1].last, 0, INFINITY, 0};
    for (size_t i = from; i < to; i++) {
        const struct weir_page_epoch *epoch = &run->epochs[i];
        images += epoch->images;
        seconds += epoch->total_s;
        point->low = fmin(point->low, epoch->rate_min);
        point->high = fmax(point->high, epoch->rate_max);
    }
    point->mean = over(images, seconds);
}

static void fill_wait(struct point *point, const struct weir_page_run *run, size_t from, size_t to)
{
    double waits = 0, seconds = 0;
    *point = (struct point){run->epochs[from].first, run->epochs[to - 1].last, 0, INFINITY, 0};
    for (size_t i = from; i < to; i++) {
        const struct weir_page_epoch *epoch = &run->epochs[i];
        waits += epoch->wait_s;
        seconds += epoch->train_s;
        point->low = fmin(point->low, epoch->wait_min);
        point->high = fmax(point->high, epoch->wait_max);
    }
    point->mean = over(waits, seconds);
}

static void fill_total(struct point *point, const struct weir_page_run *run, size_t from, size_t to)
{
    double seconds = 0;
    *point = (struct point){run->epochs[from].first, run->epochs[to - 1].last, 0, INFINITY, 0};
    for (size_t i = from; i < to; i++) {
        const struct weir_page_epoch *epoch = &run->epochs[i];
        seconds += epoch->total_s;
        point->low = fmin(point->low, epoch->total_min);
        point->high = fmax(point->high, epoch->total_max);
    }
    point->mean = fmin(fmax(over(seconds, (double)point->last - point->first + 1), point->low), point->high);
}

static void fill_ready(struct point *point, const struct weir_page_run *run, size_t from, size_t to)
{
    double ready = 0, requests = 0;
    *point = (struct point){run->tables[from].first, run->tables[to - 1].last, 0, INFINITY, 0};
    for (size_t i = from; i < to; i++) {
        const struct weir_page_table *table = &run->tables[i];
        ready += table->ready;
        requests += table->requests;
        point->low = fmin(point->low, table->ready_min);
        point->high = fmax(point->high, table->ready_max);
    }
    point->mean = over(ready, requests);
}

static void fill_points(struct chart *chart, const struct weir_page_run *run, size_t n)
{
    chart->n = n < POINTS_MAX ? n : POINTS_MAX;
    for (size_t i = 0; i < chart->n; i++)
        chart->fill(&chart->points[i], run, n * i / chart->n, n * (i + 1) / chart->n);
}

/* ---- the drawing ---- */

/* Returns the next 1, 2, 4, 6, 8 or 10 times a power of ten. */
static double round_up(double value)
{
    double power = pow(10, floor(log10(value))), digit = value / power;
    return power * (digit <= 1 ? 1 : 2 * ceil(digit / 2));
}

static double scale_of(const struct chart *chart)
{
    double largest = 0;
    for (size_t i = 0; i < chart->n; i++)
        largest = fmax(largest, fmax(chart->points[i].mean, chart->points[i].high));
    double scale = largest > 1e-9 && isfinite(largest) ? round_up(largest) : 1;
    return chart->to_one ? fmin(fmax(scale, 0.1), 1) : scale;
}

static double y_of(double value, double scale)
{
    return HEIGHT * (1 - weir_page_part(value, scale));
}

static double x_of(const struct chart *chart, size_t i)
{
    return (double)WIDTH * (double)i / (double)(chart->n - 1);
}

static void put_paths(FILE *out, const struct chart *chart, double scale)
{
    fputs("<path class=\"band\" d=\"", out);
    for (size_t i = 0; i < chart->n; i++)
        fprintf(out, "%c%.4g %.4g", i ? 'L' : 'M', x_of(chart, i), y_of(chart->points[i].high, scale));
    for (size_t i = chart->n; i > 0; i--)
        fprintf(out, "L%.4g %.4g", x_of(chart, i - 1), y_of(chart->points[i - 1].low, scale));
    fputs("Z\"/><path class=\"line\" d=\"", out);
    for (size_t i = 0; i < chart->n; i++)
        fprintf(out, "%c%.4g %.4g", i ? 'L' : 'M', x_of(chart, i), y_of(chart->points[i].mean, scale));
    fprintf(out, "\"/><path class=\"dot\" d=\"M%d %.4gh0\"/>", WIDTH, y_of(chart->points[chart->n - 1].mean, scale));
}

/* Labels have columns of their own, because the chart's drawing is stretched to the width of the page. */
static void put_axis(FILE *out, const struct chart *chart, double scale)
{
    char top[WEIR_PAGE_FIGURE], half[WEIR_PAGE_FIGURE], zero[WEIR_PAGE_FIGURE];
    fprintf(out,
            "<svg class=\"axis\" width=\"64\" height=\"120\" aria-hidden=\"true\"><text x=\"56\" y=\"14\">%s</text>"
            "<text x=\"56\" y=\"64\">%s</text><text x=\"56\" y=\"114\">%s</text></svg>",
            chart->format(top, scale), chart->format(half, scale / 2), chart->format(zero, 0));
}

static void put_end(FILE *out, const struct chart *chart, double scale)
{
    char text[WEIR_PAGE_FIGURE];
    double value = chart->points[chart->n - 1].mean;
    fprintf(out,
            "<svg class=\"end\" width=\"64\" height=\"120\" aria-hidden=\"true\"><text x=\"8\" y=\"%.4g\">%s</text>"
            "</svg>",
            14 + y_of(value, scale), chart->format(text, value));
}

static void put_summary(FILE *out, const struct chart *chart, enum weir_lang lang)
{
    char least[WEIR_PAGE_FIGURE], most[WEIR_PAGE_FIGURE], last[WEIR_PAGE_FIGURE];
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < chart->n; i++) {
        low = fmin(low, chart->points[i].low);
        high = fmax(high, chart->points[i].high);
    }
    fprintf(out, "%s %s, %s %s, %s %s", weir_word(WEIR_WORD_LEAST, lang), chart->format(least, low),
            weir_word(WEIR_WORD_MOST, lang), chart->format(most, high), weir_word(WEIR_WORD_LAST, lang),
            chart->format(last, chart->points[chart->n - 1].mean));
}

static void put_table(struct weir_page_out *page, const struct chart *chart)
{
    static const enum weir_word heads[] = {WEIR_WORD_EPOCH, WEIR_WORD_MEAN, WEIR_WORD_LEAST, WEIR_WORD_MOST};
    char mean[WEIR_PAGE_FIGURE], low[WEIR_PAGE_FIGURE], high[WEIR_PAGE_FIGURE];
    FILE *out = page->out;
    fprintf(out, "<details><summary>%s</summary>\n<table class=\"data\"><thead><tr>",
            weir_word(WEIR_WORD_TABLE, page->lang));
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        fprintf(out, "<th scope=\"col\">%s</th>", weir_word(heads[i], page->lang));
    fputs("</tr></thead>\n<tbody>\n", out);
    for (size_t i = 0; i < chart->n; i++) {
        const struct point *point = &chart->points[i];
        fprintf(out, "<tr><th scope=\"row\">%d", point->first);
        if (point->last != point->first)
            fprintf(out, "–%d", point->last);
        fprintf(out, "</th><td>%s</td><td>%s</td><td>%s</td></tr>\n", chart->format(mean, point->mean),
                chart->format(low, point->low), chart->format(high, point->high));
    }
    fputs("</tbody></table></details>\n", out);
}

static void put_chart(struct weir_page_out *page, const struct chart *chart)
{
    FILE *out = page->out;
    double scale = scale_of(chart);
    int id = page->next_id++;
    fprintf(out, "<figure class=\"chart\">\n<figcaption>%s <output></output></figcaption>\n<div class=\"frame\">",
            chart->name);
    put_axis(out, chart, scale);
    fprintf(out,
            "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
            "aria-labelledby=\"t%d d%d\"><title id=\"t%d\">%s</title><desc id=\"d%d\">",
            WIDTH, HEIGHT, id, id, id, chart->name, id);
    put_summary(out, chart, page->lang);
    fprintf(out, "</desc><path class=\"rule\" d=\"M0 0H%d M0 %dH%d M0 %dH%d\"/>", WIDTH, HEIGHT / 2, WIDTH, HEIGHT,
            WIDTH);
    put_paths(out, chart, scale);
    fputs("</svg>", out);
    put_end(out, chart, scale);
    fprintf(out, "<div class=\"x\"><span>%s %d</span><span>%d</span></div></div>\n",
            weir_word(WEIR_WORD_EPOCH, page->lang), chart->points[0].first, chart->points[chart->n - 1].last);
    if (chart->note)
        fprintf(out, "<p class=\"note\">%s</p>\n", chart->note);
    put_table(page, chart);
    fputs("</figure>\n", out);
}

static bool has_ready(const struct weir_page_run *run)
{
    double requests = 0;
    for (size_t i = 0; i < run->n_tables; i++)
        requests += run->tables[i].requests;
    return requests > 0 && run->n_tables > 1;
}

void weir_page_over_time(struct weir_page_out *page)
{
    const struct weir_page_run *run = page->run;
    enum weir_lang lang = page->lang;
    const enum weir_word rate = run->watch ? WEIR_WORD_ITEMS_S : WEIR_WORD_IMAGES_S;
    struct chart charts[] = {
        {.name = weir_word(WEIR_WORD_TOTAL, lang), .format = weir_page_time, .fill = fill_total},
        {.name = weir_word(rate, lang), .format = weir_page_number, .fill = fill_rate},
        {.name = weir_word(WEIR_WORD_DATA_WAIT, lang), .format = weir_page_percent, .fill = fill_wait, .to_one = true},
        {.name = weir_word(WEIR_WORD_READY, lang),
         .note = weir_word(WEIR_WORD_READY_NOTE, lang),
         .format = weir_page_number,
         .fill = fill_ready},
    };
    bool epochs = run->n_epochs > 1, tables = has_ready(run);
    if (!epochs && !tables)
        return;
    fprintf(page->out, "<section>\n<h2>%s</h2>\n", weir_word(WEIR_WORD_OVER_TIME, lang));
    for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
        bool of_tables = charts[i].fill == fill_ready, of_plain = charts[i].fill == fill_total;
        if (of_tables ? !tables : !epochs || of_plain != (run->plain != NULL))
            continue;
        fill_points(&charts[i], run, of_tables ? run->n_tables : run->n_epochs);
        put_chart(page, &charts[i]);
    }
    fputs("</section>\n", page->out);
}
