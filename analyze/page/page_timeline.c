/* Writes the timeline: the ranges of a recorded window, which the script can enlarge. */
#include "analyze/page/page_priv.h"
#include "prof/trace/trace_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    RANGES_MAX = 5000,
    ROWS_MAX = 64,
    STAGES_MAX = 5, /* stages with a style of their own, those with the longest total time; then "other", and waits */
    OTHER = STAGES_MAX,
    WAITS,
    KERNELS, /* of GPUs */
    COPIES,
    CLASSES,
    ROW_HEIGHT = 16,
    NAME_BYTES = 15, /* of a thread, as the kernel has them */
    WIDTH = 1000000,
};

static const int heights[CLASSES] = {12, 10, 8,  6, 5,
                                     4,  2,  12, 7}; /* of ranges, so that colour is not all that differs */

struct named {
    weir_text_id name;
    int class;
    double total_s;
};

struct range {
    uint32_t track;
    int class;
    double x, width; /* in units of the drawing */
};

struct timeline {
    struct weir_trace *trace;
    const struct weir_loader_report *report;
    int n_names, n_ranges, n_rows;
    struct named names[WEIR_REPORT_ROWS];
    struct range ranges[RANGES_MAX];
    uint32_t rows[ROWS_MAX];
    double from_ns, to_ns; /* time shown, as doubles, because a damaged trace could overflow integers */
    bool cut;              /* the window is longer than the time shown */
    double total_s[ROWS_MAX][CLASSES];
    bool has_class[CLASSES];
};

/* ---- collecting, from events in the order of their starts ---- */

static const struct weir_report_row *find_row(const struct weir_loader_report *report, const char *name)
{
    for (int i = 0; i < report->prof.n_rows; i++)
        if (strcmp(report->prof.rows[i].name, name) == 0)
            return &report->prof.rows[i];
    return NULL;
}

static struct named *find_name(struct timeline *t, weir_text_id name)
{
    for (int i = 0; i < t->n_names; i++)
        if (t->names[i].name == name)
            return &t->names[i];
    return NULL;
}

/* Returns whether the event is a stage's work or wait on a thread, without other stages inside. */
static bool is_stage(const struct timeline *t, const struct weir_event *event)
{
    const struct weir_report_row *row = find_row(t->report, weir_trace_text(t->trace, event->name));
    return event->kind == WEIR_EVENT_RANGE && !t->trace->tracks[event->track].device && event->duration_ns >= 0 &&
           row && (row->kind == WEIR_KIND_WORK || row->kind == WEIR_KIND_WAIT);
}

/* Returns the class of an event, or -1 if it is not drawn. */
static int class_of(struct timeline *t, const struct weir_event *event)
{
    if (event->kind == WEIR_EVENT_RANGE && event->duration_ns >= 0 && t->trace->tracks[event->track].device)
        return event->cat == WEIR_CAT_KERNEL                                            ? KERNELS
               : event->cat == WEIR_CAT_GPU_MEMCPY || event->cat == WEIR_CAT_GPU_MEMSET ? COPIES
                                                                                        : -1;
    const struct named *named = is_stage(t, event) ? find_name(t, event->name) : NULL;
    return named ? named->class : -1;
}

static int by_total(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    return left->total_s < right->total_s ? 1 : left->total_s > right->total_s ? -1 : 0;
}

static void collect_names(struct timeline *t)
{
    for (size_t i = 0; i < t->trace->n_events; i++) {
        const struct weir_event *event = &t->trace->events[i];
        if (!is_stage(t, event))
            continue;
        struct named *named = find_name(t, event->name);
        if (!named && t->n_names < WEIR_REPORT_ROWS) {
            named = &t->names[t->n_names++];
            *named = (struct named){.name = event->name};
        }
        if (named)
            named->total_s += (double)event->duration_ns / 1e9;
    }
    qsort(t->names, (size_t)t->n_names, sizeof t->names[0], by_total);
    int next = 0;
    for (int i = 0; i < t->n_names; i++) {
        bool waits = find_row(t->report, weir_trace_text(t->trace, t->names[i].name))->kind == WEIR_KIND_WAIT;
        t->names[i].class = waits ? WAITS : next < STAGES_MAX ? next++ : OTHER;
    }
}

/* The window is shown up to the last range that fits. */
static void find_window(struct timeline *t)
{
    double begin = INFINITY, end = -INFINITY;
    int n = 0;
    for (size_t i = 0; i < t->trace->n_events && !t->cut; i++) {
        const struct weir_event *event = &t->trace->events[i];
        if (class_of(t, event) < 0)
            continue;
        double start = (double)event->start_ns, last = start + (double)event->duration_ns;
        t->cut = n++ == RANGES_MAX;
        begin = fmin(begin, start);
        end = t->cut ? start : fmax(end, last);
    }
    t->from_ns = begin;
    t->to_ns = end;
}

static int find_track(const struct timeline *t, uint32_t track)
{
    for (int i = 0; i < t->n_rows; i++)
        if (t->rows[i] == track)
            return i;
    return -1;
}

/* Threads first, in the order in which they were created, then the streams of GPUs. */
static int by_place(const void *a, const void *b, void *tracks)
{
    const struct weir_trace_row *left = (struct weir_trace_row *)tracks + *(const uint32_t *)a;
    const struct weir_trace_row *right = (struct weir_trace_row *)tracks + *(const uint32_t *)b;
    if (left->device != right->device)
        return left->device ? 1 : -1;
    if (left->pid != right->pid)
        return left->pid < right->pid ? -1 : 1;
    return left->tid < right->tid ? -1 : left->tid > right->tid;
}

static void collect_rows(struct timeline *t)
{
    for (size_t i = 0; i < t->trace->n_events && t->n_rows < ROWS_MAX; i++) {
        const struct weir_event *event = &t->trace->events[i];
        if ((double)event->start_ns >= t->to_ns)
            break;
        if (class_of(t, event) >= 0 && find_track(t, event->track) < 0)
            t->rows[t->n_rows++] = event->track;
    }
    qsort_r(t->rows, (size_t)t->n_rows, sizeof t->rows[0], by_place, t->trace->tracks);
}

static void collect_ranges(struct timeline *t)
{
    double length_ns = t->to_ns - t->from_ns;
    for (size_t i = 0; i < t->trace->n_events && t->n_ranges < RANGES_MAX; i++) {
        const struct weir_event *event = &t->trace->events[i];
        if ((double)event->start_ns >= t->to_ns)
            break;
        int class = class_of(t, event), row = find_track(t, event->track);
        if (class < 0 || row < 0)
            continue;
        double from = ((double)event->start_ns - t->from_ns) / length_ns;
        double width = fmin((double)event->duration_ns / length_ns, 1 - from);
        t->has_class[class] = true;
        t->total_s[row][class] += width * length_ns / 1e9;
        t->ranges[t->n_ranges++] = (struct range){(uint32_t)row, class, WIDTH * from, WIDTH * width};
    }
}

/* ---- writing ---- */

static void put_class_name(struct weir_page_out *page, const struct timeline *t, int class)
{
    static const enum weir_word words[CLASSES] = {[OTHER] = WEIR_WORD_OTHER,
                                                  [WAITS] = WEIR_WORD_WAIT,
                                                  [KERNELS] = WEIR_WORD_KERNELS,
                                                  [COPIES] = WEIR_WORD_COPIES};
    if (class >= OTHER) {
        fputs(weir_word(words[class], page->lang), page->out);
        return;
    }
    for (int i = 0; i < t->n_names; i++)
        if (t->names[i].class == class)
            weir_page_text(page->out, weir_trace_text(t->trace, t->names[i].name));
}

/* Traces name threads as "thread 77 (weir-w0)". Rows of GPUs are streams. */
static void put_row_name(FILE *out, const struct timeline *t, int row)
{
    const struct weir_trace_row *track = &t->trace->tracks[t->rows[row]];
    const char *name = weir_trace_text(t->trace, track->name), *inside = strchr(name, '(');
    if (track->device) {
        fprintf(out, "GPU %lld, %lld", (long long)track->pid, (long long)track->tid);
        return;
    }
    name = inside ? inside + 1 : name;
    size_t length = strcspn(name, ")");
    if (length > 0)
        weir_page_text_n(out, name, length < NAME_BYTES ? length : NAME_BYTES);
    else
        fprintf(out, "%lld", (long long)track->tid);
}

static void put_legend(struct weir_page_out *page, const struct timeline *t)
{
    fputs("<ul class=\"legend\">", page->out);
    for (int class = 0; class < CLASSES; class ++) {
        if (!t->has_class[class])
            continue;
        fprintf(page->out,
                "<li><svg width=\"18\" height=\"14\" aria-hidden=\"true\"><rect class=\"s%d\" y=\"%d\" width=\"18\" "
                "height=\"%d\"/></svg> ",
                class, 13 - heights[class], heights[class]);
        put_class_name(page, t, class);
        fputs("</li>", page->out);
    }
    fputs("</ul>\n", page->out);
}

static void put_ranges(FILE *out, const struct timeline *t, int row, int class)
{
    int bottom = ROW_HEIGHT * (row + 1) - 2, n = 0;
    for (int i = 0; i < t->n_ranges; i++) {
        const struct range *range = &t->ranges[i];
        if ((int)range->track != row || range->class != class)
            continue;
        if (n++ == 0)
            fprintf(out, "<path class=\"s%d\" d=\"", class);
        double width = fmax(range->width, 1);
        fprintf(out, "M%.0f %dh%.0fv-%dh-%.0fz", range->x, bottom, width, heights[class], width);
    }
    if (n > 0)
        fputs("\"/>", out);
}

static void put_table(struct weir_page_out *page, const struct timeline *t)
{
    FILE *out = page->out;
    char text[WEIR_PAGE_FIGURE];
    fprintf(out,
            "<details><summary>%s</summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"%s\">"
            "<table class=\"data\"><thead><tr><th scope=\"col\">%s</th>",
            weir_word(WEIR_WORD_TABLE, page->lang), weir_word(WEIR_WORD_TIMELINE, page->lang),
            weir_word(WEIR_WORD_THREAD, page->lang));
    for (int class = 0; class < CLASSES; class ++)
        if (t->has_class[class]) {
            fputs("<th scope=\"col\">", out);
            put_class_name(page, t, class);
            fputs("</th>", out);
        }
    fputs("</tr></thead>\n<tbody>\n", out);
    for (int row = 0; row < t->n_rows; row++) {
        fputs("<tr><th scope=\"row\">", out);
        put_row_name(out, t, row);
        fputs("</th>", out);
        for (int class = 0; class < CLASSES; class ++)
            if (t->has_class[class])
                fprintf(out, "<td>%s</td>", weir_page_time(text, t->total_s[row][class]));
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div></details>\n", out);
}

static void put_drawing(struct weir_page_out *page, const struct timeline *t)
{
    FILE *out = page->out;
    char text[WEIR_PAGE_FIGURE];
    int height = ROW_HEIGHT * t->n_rows, id = page->next_id++;
    double seconds = (t->to_ns - t->from_ns) / 1e9;
    fprintf(out, "<div class=\"frame\"><svg class=\"axis\" width=\"104\" height=\"%d\" aria-hidden=\"true\">", height);
    for (int row = 0; row < t->n_rows; row++) {
        fprintf(out, "<text x=\"96\" y=\"%d\">", ROW_HEIGHT * (row + 1) - 3);
        put_row_name(out, t, row);
        fputs("</text>", out);
    }
    fprintf(out,
            "</svg><svg class=\"plot\" role=\"img\" height=\"%d\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
            "data-seconds=\"%.9g\" aria-labelledby=\"t%d d%d\"><title id=\"t%d\">%s</title><desc id=\"d%d\">%d × %s, "
            "%s</desc>",
            height, WIDTH, height, seconds, id, id, id, weir_word(WEIR_WORD_TIMELINE, page->lang), id, t->n_rows,
            weir_word(WEIR_WORD_THREAD, page->lang), weir_page_time(text, seconds));
    for (int row = 0; row < t->n_rows; row++)
        for (int class = 0; class < CLASSES; class ++)
            put_ranges(out, t, row, class);
    fprintf(out, "</svg><div class=\"x\"><span>%s</span>", weir_page_time(text, 0));
    fprintf(out, "<span>%s</span></div></div>\n", weir_page_time(text, seconds));
}

static void put_section(struct weir_page_out *page, const struct timeline *t)
{
    FILE *out = page->out;
    fprintf(out, "<section>\n<h2>%s</h2>\n<p class=\"note\">%s%s%s</p>\n<figure class=\"timeline\">\n",
            weir_word(WEIR_WORD_TIMELINE, page->lang), weir_word(WEIR_WORD_TIMELINE_NOTE, page->lang),
            t->cut ? " " : "", t->cut ? weir_word(WEIR_WORD_TIMELINE_CUT, page->lang) : "");
    put_legend(page, t);
    put_drawing(page, t);
    put_table(page, t);
    fputs("</figure>\n</section>\n", out);
}

/* The path comes from the log, so anything but a readable trace in a regular file is left out. */
static struct weir_trace *read_trace(const char *path)
{
    struct weir_trace *trace = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    struct stat st;
    if (!*path || stat(path, &st) != 0 || !S_ISREG(st.st_mode) || !weir_trace_recognised(path) ||
        weir_trace_read(&trace, path, &err) < 0)
        return NULL;
    return trace;
}

int weir_page_timeline(struct weir_page_out *page)
{
    const struct weir_page_run *run = page->run;
    struct weir_trace *trace = run->report ? read_trace(run->trace) : NULL;
    if (!trace)
        return 0;
    struct timeline *t = calloc(1, sizeof *t);
    int rc = t ? weir_trace_sort(trace) : -ENOMEM;
    if (rc == 0) {
        t->trace = trace;
        t->report = run->report;
        collect_names(t);
        find_window(t);
        if (t->to_ns > t->from_ns) {
            collect_rows(t);
            collect_ranges(t);
        }
        if (t->n_ranges > 0)
            put_section(page, t);
    }
    free(t);
    weir_trace_free(&trace);
    return rc;
}
