/* Writes the sections of weir bench, the formats by size and speed, and of weir tune, its candidates. */
#include "analyze/page/page_priv.h"
#include "analyze/page/page_result.h"
#include "base/text.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FORMATS_MAX = 64, PLOT_HEIGHT = 320, LABEL_HEIGHT = 13 };
static const double END_RATIO = 1.3;    /* room at the ends of scales */
static const double NEAR_PERCENT = 4.5; /* of the plot's width: points whose labels are aligned */

/* ---- weir bench: formats as size against speed ---- */

struct format {
    const char *name;
    double bytes;      /* per frame */
    double warm, cold; /* images/s of the fastest settings; NAN = not measured */
    double x, y;       /* of the label: percent, and pixels */
};

struct formats {
    int n;
    struct format at[FORMATS_MAX];
    double least, most, slowest, fastest; /* bytes per frame, images/s */
};

static void take_cells(struct format *format, const json_t *cells)
{
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, i);
        double rate = weir_result_number(json_object_get(cell, "images_per_s"), "median");
        const char *cache = weir_result_text(cell, "cache");
        double *to = strcmp(cache, "warm") == 0   ? &format->warm
                     : strcmp(cache, "cold") == 0 ? &format->cold
                                                  : NULL; /* from memory: no format's own speed */
        if (to && strcmp(weir_result_text(cell, "format"), format->name) == 0)
            *to = fmax(*to, rate); /* fmax ignores NAN */
    }
}

static void collect(struct formats *formats, const json_t *result)
{
    const json_t *list = json_object_get(result, "formats");
    *formats = (struct formats){.least = INFINITY, .slowest = INFINITY};
    for (size_t i = 0; i < json_array_size(list) && formats->n < FORMATS_MAX; i++) {
        const json_t *each = json_array_get(list, i);
        struct format format = {
            weir_result_text(each, "name"), weir_result_number(each, "bytes_per_frame"), NAN, NAN, 0, 0};
        take_cells(&format, json_object_get(result, "cells"));
        double rate = fmax(format.warm, format.cold);
        if (!(format.bytes > 0) || !(rate > 0))
            continue;
        formats->least = fmin(formats->least, format.bytes);
        formats->most = fmax(formats->most, format.bytes);
        formats->slowest = fmin(formats->slowest, fmin(format.warm, format.cold)); /* fmin ignores NAN */
        formats->fastest = fmax(formats->fastest, rate);
        formats->at[formats->n++] = format;
    }
}

/* Both scales are logarithmic, with room at their ends. */
static double place(double value, double least, double most)
{
    double from = log(least / END_RATIO), to = log(most * END_RATIO);
    return weir_page_part(log(value) - from, to - from);
}

static double x_of(const struct formats *formats, double bytes)
{
    return 100 * place(bytes, formats->least, formats->most);
}

static double y_of(const struct formats *formats, double rate)
{
    return PLOT_HEIGHT * (1 - place(rate, formats->slowest, formats->fastest));
}

static double rate_shown(const struct format *format)
{
    return isfinite(format->warm) ? format->warm : format->cold;
}

static int by_rate(const void *a, const void *b)
{
    double left = rate_shown(a), right = rate_shown(b);
    return left > right ? -1 : left < right;
}

static bool overlaps(const struct format *a, const struct format *b)
{
    return fabs(a->x - b->x) < 25 && fabs(a->y - b->y) < LABEL_HEIGHT;
}

/* Labels on the right of the plot stand to the left of their points. */
static bool is_left(double x)
{
    return x > 60;
}

/* Aligns the label with those of formats of about the same size, clear of their points. */
static double label_x(const struct formats *formats, double bytes)
{
    double x = x_of(formats, bytes), found = x;
    for (int i = 0; i < formats->n; i++) {
        double other = x_of(formats, formats->at[i].bytes);
        if (fabs(other - x) < NEAR_PERCENT && is_left(other) == is_left(x))
            found = is_left(x) ? fmin(found, other) : fmax(found, other);
    }
    return found;
}

/* Returns a faster format whose label this one's covers, or NULL. */
static const struct format *covered(const struct formats *formats, int i)
{
    for (int k = 0; k < i; k++)
        if (overlaps(&formats->at[i], &formats->at[k]))
            return &formats->at[k];
    return NULL;
}

/* Moves a label down until it covers none of a faster format. Each move passes one of them, because labels are at
 * whole pixels, where sums are exact. */
static void place_label(struct formats *formats, int i)
{
    struct format *format = &formats->at[i];
    format->x = label_x(formats, format->bytes);
    format->y = round(y_of(formats, rate_shown(format)));
    const struct format *other = covered(formats, i);
    for (int moves = 0; other && moves < i; moves++) {
        format->y = other->y + LABEL_HEIGHT;
        other = covered(formats, i);
    }
}

static void put_point(FILE *out, const struct formats *formats, const struct format *format)
{
    double x = x_of(formats, format->bytes);
    bool both = isfinite(format->warm) && isfinite(format->cold), left = is_left(x);
    if (both)
        fprintf(out, "<line class=\"whisker\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%.1f\" y2=\"%.1f\"/>", x, x,
                y_of(formats, format->warm), y_of(formats, format->cold));
    if (isfinite(format->cold))
        fprintf(out, "<circle class=\"open\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"4\"/>", x, y_of(formats, format->cold));
    if (isfinite(format->warm))
        fprintf(out, "<circle class=\"cool\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"4\"/>", x, y_of(formats, format->warm));
    weir_page_put(out, "<text x=\"%.2f%%\" y=\"%.1f\" dx=\"%d\" text-anchor=\"%s\">%H</text>", format->x, format->y + 4,
                  left ? -9 : 9, left ? "end" : "start", format->name);
}

static void put_formats_table(FILE *out, const struct formats *formats)
{
    fputs("<details><summary>Table</summary>\n<table class=\"data\"><thead><tr><th scope=\"col\">format</th><th "
          "scope=\"col\">bytes per frame</th><th scope=\"col\">images/s, warm</th><th scope=\"col\">images/s, "
          "cold</th></tr></thead>\n<tbody>\n",
          out);
    for (int i = 0; i < formats->n; i++) {
        const struct format *format = &formats->at[i];
        weir_page_put(out, "<tr><th scope=\"row\">%H</th><td>%s</td><td>%N</td><td>%N</td></tr>\n", format->name,
                      weir_size(format->bytes).text, format->warm, format->cold);
    }
    fputs("</tbody></table></details>\n", out);
}

static void put_formats(FILE *out, const struct json_t *result)
{
    struct formats formats;
    collect(&formats, result);
    if (formats.n == 0)
        return;
    qsort(formats.at, (size_t)formats.n, sizeof formats.at[0], by_rate);
    for (int i = 0; i < formats.n; i++)
        place_label(&formats, i);
    weir_page_put(out,
                  "<section>\n<h2>Size and speed</h2>\n<p class=\"note\">Each format with its fastest settings, on "
                  "logarithmic scales. Filled: from the page cache; ring: from storage.</p>\n<figure "
                  "class=\"scatter\">\n<div class=\"frame\"><svg class=\"axis\" width=\"72\" height=\"%d\" "
                  "aria-hidden=\"true\"><text x=\"64\" y=\"%.1f\">%N</text><text x=\"64\" y=\"%.1f\">%N</text>",
                  PLOT_HEIGHT, y_of(&formats, formats.fastest) + 4, formats.fastest,
                  y_of(&formats, formats.slowest) + 4, formats.slowest);
    weir_page_put(out,
                  "<text x=\"64\" y=\"%.1f\">images/s</text></svg><svg class=\"plot\" role=\"img\" width=\"100%%\" "
                  "height=\"%d\" aria-labelledby=\"tf df\"><title id=\"tf\">Size and speed</title><desc id=\"df\">%d "
                  "formats, up to %N images/s</desc><line class=\"rule\" x1=\"0\" x2=\"100%%\" y1=\"%d\" y2=\"%d\"/>",
                  y_of(&formats, formats.fastest) + 20, PLOT_HEIGHT, formats.n, formats.fastest, PLOT_HEIGHT,
                  PLOT_HEIGHT);
    for (int i = 0; i < formats.n; i++)
        put_point(out, &formats, &formats.at[i]);
    fprintf(out, "</svg><div class=\"x\"><span>%s per frame</span><span>%s</span></div></div>\n",
            weir_size(formats.least / END_RATIO).text, weir_size(formats.most * END_RATIO).text);
    put_formats_table(out, &formats);
    fputs("</figure>\n</section>\n", out);
}

/* Writes the members of an object as "num_workers 2, io pread"; automatic ones are left out. */
static void put_settings(FILE *out, const json_t *settings)
{
    const char *key;
    json_t *value;
    const char *comma = "";
    json_object_foreach((json_t *)(uintptr_t)settings, key, value)
    {
        bool is_auto = json_is_string(value) && strcmp(json_string_value(value), "auto") == 0;
        bool no_cache = strcmp(key, "decode_cache_bytes") == 0 && json_number_value(value) <= 0;
        if (is_auto || no_cache || json_is_null(value) || !(json_is_string(value) || json_is_number(value)))
            continue;
        weir_page_put(out, "%s%H ", comma, key);
        if (json_is_string(value))
            weir_page_text(out, json_string_value(value));
        else
            fprintf(out, "%.10g", json_number_value(value));
        comma = ", ";
    }
}

/* ---- candidates ---- */

struct rate {
    double median, low, high;
};

static struct rate rate_of(const json_t *candidate)
{
    const json_t *rate = json_object_get(candidate, "images_per_s"), *turns = json_object_get(candidate, "turns");
    if (json_is_object(rate))
        return (struct rate){weir_result_number(rate, "median"), weir_result_number(rate, "low"),
                             weir_result_number(rate, "high")};
    struct rate found = {weir_result_number(candidate, "images_per_s"), INFINITY, -INFINITY};
    for (size_t i = 0; i < json_array_size(turns); i++) {
        double each = weir_result_number(json_array_get(turns, i), "images_per_s");
        found.low = fmin(found.low, each);
        found.high = fmax(found.high, each);
    }
    return found;
}

static void put_candidate(FILE *out, const json_t *candidate, double most, bool chosen)
{
    struct rate rate = rate_of(candidate);
    const json_t *settings = json_object_get(candidate, "settings");
    const char *format = weir_result_text(candidate, "format"), *cache = weir_result_text(candidate, "cache");
    weir_page_put(out, "<tr%s><th scope=\"row\" class=\"long\">%H%s%H%s", chosen ? " class=\"chosen\"" : "", format,
                  *format ? " " : "", cache, *cache ? " " : "");
    put_settings(out, settings ? settings : json_object_get(candidate, "setting"));
    fputs("</th><td class=\"wide\">", out);
    if (rate.median > 0)
        fprintf(
            out,
            "<svg class=\"bar\" width=\"100%%\" height=\"12\" aria-hidden=\"true\"><rect class=\"%s\" width=\"%.2f%%\" "
            "height=\"12\"/><line class=\"now\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"6\" y2=\"6\"/></svg>",
            chosen ? "cool" : "pale", 100 * weir_page_part(rate.median, most), 100 * weir_page_part(rate.low, most),
            100 * weir_page_part(rate.high, most));
    else
        weir_page_text(out, weir_result_text(candidate, "error"));
    weir_page_put(out, "</td><td>%N</td></tr>\n", rate.median);
}

static void put_candidates(FILE *out, const json_t *candidates, int chosen)
{
    double most = 0;
    for (size_t i = 0; i < json_array_size(candidates); i++) {
        struct rate rate = rate_of(json_array_get(candidates, i));
        most = fmax(most, fmax(rate.median, rate.high));
    }
    fputs("<section>\n<h2>Candidates</h2>\n<p class=\"note\">The median rate of each; the thin line is its confidence "
          "interval, or the range of its trials.</p>\n<table class=\"candidates\"><thead><tr><th scope=\"col\">settings"
          "</th><td></td><th scope=\"col\">images/s</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = 0; i < json_array_size(candidates); i++)
        put_candidate(out, json_array_get(candidates, i), most, (int)i == chosen);
    fputs("</tbody></table>\n</section>\n", out);
}

void weir_result_bench(FILE *out, const json_t *result)
{
    const json_t *advice = json_object_get(result, "advice");
    weir_page_put(out, "<section>\n<p class=\"verdict\">%H</p>\n<p class=\"remark\">%H</p>\n",
                  weir_result_text(advice, "format"), weir_result_text(advice, "next"));
    weir_result_command(out, json_object_get(advice, "command"));
    fputs("</section>\n", out);
    put_formats(out, result);
    put_candidates(out, json_object_get(result, "cells"), -1);
}

void weir_result_tune(FILE *out, const json_t *result)
{
    const json_t *candidates = json_object_get(result, "candidates"), *path = json_object_get(result, "path");
    int chosen = (int)fmin(fmax(weir_result_number(result, "chosen"), -1), 1e6);
    const json_t *best = chosen >= 0 ? json_array_get(candidates, (size_t)chosen) : NULL;
    fputs("<section>\n<p class=\"verdict\">", out);
    if (best) {
        weir_page_put(out, "%N images/s with ", rate_of(best).median);
        put_settings(out, json_object_get(best, "setting"));
    } else {
        fputs("No candidate was measured", out);
    }
    fputs(".</p>\n", out);
    weir_result_command(out, json_object_get(result, "command"));
    fputs("</section>\n", out);
    put_candidates(out, candidates, chosen);
    fputs("<section>\n<h2>Search</h2>\n<ol class=\"path\">\n", out);
    for (size_t i = 0; i < json_array_size(path); i++) {
        const char *line = json_string_value(json_array_get(path, i));
        weir_page_put(out, "<li>%H</li>\n", line ? line : "");
    }
    fputs("</ol>\n</section>\n", out);
}
