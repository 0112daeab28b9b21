/* The figures of running loaders as metrics, and as a page. */
#include "analyze/live/live_priv.h"
#include "base/resources.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- which form ---- */

/* Returns the quality that an Accept header gives a media type, 0..1; -1 = the header does not name it. */
static double quality(const char *accept, const char *type)
{
    size_t n = strlen(type);
    for (const char *at = accept; *at; at += strcspn(at, ","), at += *at == ',') {
        at += strspn(at, " \t");
        size_t name = strcspn(at, ";, \t"), length = strcspn(at, ",");
        if (name != n || strncasecmp(at, type, n) != 0)
            continue;
        for (size_t i = name; i + 2 < length; i++)
            if ((at[i] == ';' || at[i] == ' ') && at[i + 1] == 'q' && at[i + 2] == '=')
                return strtod(at + i + 3, NULL);
        return 1;
    }
    return -1;
}

enum weir_live_form weir_live_accepted(const char *accept)
{
    double open = quality(accept, "application/openmetrics-text"), plain = quality(accept, "text/plain");
    return open > 0 && open >= plain ? WEIR_LIVE_OPENMETRICS : WEIR_LIVE_CLASSIC;
}

/* ---- the page ---- */

void weir_live_note_epoch(struct weir_live_history *history, const struct weir_metrics *metrics)
{
    const struct weir_loader_report *report = &metrics->report;
    const struct weir_report_steps *steps = &report->steps;
    double step_s = steps->train_s + steps->val_s, wait_s = steps->train_wait_s + steps->val_wait_s;
    double s = report->wall_s - history->wall_s, images = (double)steps->images - history->images;
    if (metrics->epochs <= history->epochs || s <= 0)
        return;
    int per_sample = report->setup.images_per_sample > 0 ? report->setup.images_per_sample : 1;
    double waited = step_s > history->step_s ? (wait_s - history->wait_s) / (step_s - history->step_s) : 0;
    history->lines[history->n++ % WEIR_LIVE_EPOCHS] =
        (struct weir_epoch_line){.epoch = (int)metrics->epochs,
                                 .epoch_count = (int)metrics->epochs,
                                 .total_s = s,
                                 .train_s = step_s - history->step_s,
                                 .data_wait_fraction = fmin(fmax(waited, 0), 1),
                                 .samples_per_s = images / s / per_sample,
                                 .images_per_s = images / s,
                                 .peak_rss_bytes = weir_peak_rss_bytes(),
                                 .cached_fraction = -1};
    history->epochs = metrics->epochs;
    history->wall_s = report->wall_s;
    history->step_s = step_s;
    history->wait_s = wait_s;
    history->images = (double)steps->images;
}

/* Without a page: the tables as text. */
static const char HEAD[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Weir</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<style>body{font:16px/1.4 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em}"
    "pre{font-size:14px;overflow-x:auto}</style></head>\n<body><main>\n<h1>Weir</h1>\n";
static const char END[] = "</main></body></html>\n";

static void escape(FILE *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        if (entity)
            fputs(entity, out);
        else
            fputc(*text, out);
    }
}

static void write_plain(FILE *out, const char *const *names, const char *const *texts, int n)
{
    fputs(HEAD, out);
    for (int i = 0; i < n; i++) {
        fputs("<section>\n<h2>", out);
        escape(out, names[i]);
        fputs("</h2>\n<pre tabindex=\"0\">", out);
        escape(out, texts[i]);
        fputs("</pre>\n</section>\n", out);
    }
    fputs(END, out);
}

/* Returns the log of a loader, or its tables. The caller frees it; NULL = out of memory. */
static char *text_of(const struct weir_live_source *source, struct weir_metrics *metrics, bool log)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    if (log) {
        source->write_run(source->user, out);
        source->write_log(source->user, out, metrics, source->history_);
    } else if (source->print) {
        source->print(source->user, out);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static int write_page(FILE *out, weir_live_page_fn *page, const struct weir_live_source *const *shown,
                      struct weir_metrics *metrics, int n)
{
    const char *names[WEIR_LIVE_SOURCES], *texts[WEIR_LIVE_SOURCES];
    int made = 0, rc = 0;
    for (; made < n && (texts[made] = text_of(shown[made], &metrics[made], page)); made++)
        names[made] = metrics[made].loader;
    if (made < n)
        rc = -ENOMEM;
    else if (page)
        rc = page(out, names, texts, n);
    else
        write_plain(out, names, texts, n);
    while (made > 0)
        free((char *)texts[--made]);
    return rc;
}

/* ---- collecting ---- */

static bool is_label_taken(const struct weir_live_source *sources, int n, const char *label)
{
    for (int i = 0; i < n; i++)
        if (strcmp(sources[i].label_, label) == 0)
            return true;
    return false;
}

/* Gives a source a label that no other one has, because the samples of a metric must differ in their labels. It keeps
 * the label, so that counters do not move to another series when loaders come and go. */
static void give_label(struct weir_live_source *source, const struct weir_live_source *sources, int n, const char *name)
{
    char label[sizeof source->label_];
    snprintf(label, sizeof label, "%s", name);
    for (int number = 2; is_label_taken(sources, n, label); number++) {
        snprintf(label, sizeof label, "%.50s #%d", name, number);
        weir_text_printable(label); /* a character may be cut */
    }
    memcpy(source->label_, label, sizeof label);
}

static int collect(struct weir_metrics *metrics, const struct weir_live_source **shown,
                   struct weir_live_source *sources, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        memset(&metrics[found], 0, sizeof metrics[found]);
        metrics[found].epochs = -1;
        if (sources[i].collect(sources[i].user, &metrics[found]) < 0)
            continue;
        if (!sources[i].label_[0])
            give_label(&sources[i], sources, n, metrics[found].loader);
        memcpy(metrics[found].loader, sources[i].label_, sizeof metrics[found].loader);
        shown[found++] = &sources[i];
    }
    return found;
}

int weir_live_write(char **text, size_t *size, enum weir_live_form form, struct weir_live_source *sources, int n,
                    const struct weir_metrics_process *process, weir_live_page_fn *page)
{
    struct weir_metrics *metrics = calloc((size_t)n + 1, sizeof *metrics);
    const struct weir_live_source *shown[WEIR_LIVE_SOURCES];
    *text = NULL;
    FILE *out = metrics ? open_memstream(text, size) : NULL;
    if (!out) {
        free(metrics);
        return -ENOMEM;
    }
    int found = collect(metrics, shown, sources, n);
    int rc = 0;
    if (form == WEIR_LIVE_PAGE)
        rc = write_page(out, page, shown, metrics, found);
    else
        weir_metrics_write(out, metrics, found, process, (enum weir_metrics_format)form);
    for (int i = 0; i < found; i++)
        weir_loader_report_clear(&metrics[i].report);
    free(metrics);
    if (fclose(out) == 0 && rc == 0)
        return 0;
    free(*text);
    *text = NULL;
    return -ENOMEM;
}

int weir_live_text(char **text, struct weir_live_source *sources, int n, const struct weir_metrics_process *process)
{
    size_t size;
    return weir_live_write(text, &size, WEIR_LIVE_CLASSIC, sources, n < WEIR_LIVE_SOURCES ? n : WEIR_LIVE_SOURCES,
                           process, NULL);
}
