/* The figures of running loaders as metrics, and as a page. */
#include "analyze/live/live_priv.h"
#include "analyze/page/page.h"
#include "analyze/verdict/verdict.h"
#include "base/resources.h"

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

static void write_log(FILE *out, const struct weir_live_source *source, struct weir_metrics *metrics)
{
    const struct weir_live_history *history = source->history_;
    struct weir_added_verdict added;
    struct weir_json json;
    weir_add_verdict(&added, NULL);
    weir_verdict_judge_validation(&metrics->report.steps);
    uint64_t n = history ? history->n : 0;
    for (uint64_t i = n > WEIR_LIVE_EPOCHS ? n - WEIR_LIVE_EPOCHS : 0; i < n; i++)
        weir_epoch_log(out, &history->lines[i % WEIR_LIVE_EPOCHS]);
    added.addition.begin(added.addition.user, &metrics->report);
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "stages");
    weir_loader_report_json(&json, &metrics->report);
    added.addition.json(added.addition.user, &json, &metrics->report);
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static int add_log(struct weir_page *page, const struct weir_live_source *source, struct weir_metrics *metrics)
{
    struct weir_err err = WEIR_ERR_NONE;
    char *lines = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&lines, &size), *in = NULL;
    if (!out)
        return -ENOMEM;
    if (source->write_run)
        source->write_run(source->user, out);
    if (source->write_log)
        source->write_log(source->user, out);
    else
        write_log(out, source, metrics);
    int rc = fclose(out) == 0 && (in = fmemopen(lines, size + 1, "r")) ? 0 : -ENOMEM;
    if (rc == 0)
        rc = weir_page_add_log(page, metrics->loader, in, &err);
    if (in)
        fclose(in);
    free(lines);
    return rc == -ENODATA ? 0 : rc; /* the loader has delivered no batch yet */
}

static int write_page(FILE *out, const struct weir_live_source *const *shown, struct weir_metrics *metrics, int n)
{
    struct weir_page *page;
    int rc = weir_page_open(&page, WEIR_LANG_EN);
    for (int i = 0; i < n && rc == 0; i++)
        rc = add_log(page, shown[i], &metrics[i]);
    if (rc == 0)
        rc = weir_page_write(out, page);
    weir_page_close(&page);
    return rc;
}

/* ---- collecting ---- */

/* Numbers a label that an earlier loader has, because the samples of a metric must differ in their labels. */
static void number_label(struct weir_metrics *metrics, int n)
{
    char name[sizeof metrics->loader];
    memcpy(name, metrics[n].loader, sizeof name);
    for (int number = 2, i = 0; i < n; i++) {
        if (strcmp(metrics[i].loader, metrics[n].loader) != 0)
            continue;
        snprintf(metrics[n].loader, sizeof metrics[n].loader, "%.50s #%d", name, number++);
        i = -1; /* the new name can be taken too */
    }
}

static int collect(struct weir_metrics *metrics, const struct weir_live_source **shown,
                   const struct weir_live_source *sources, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        memset(&metrics[found], 0, sizeof metrics[found]);
        metrics[found].epochs = -1;
        if (sources[i].collect(sources[i].user, &metrics[found]) < 0)
            continue;
        number_label(metrics, found);
        shown[found++] = &sources[i];
    }
    return found;
}

int weir_live_write(char **text, size_t *size, enum weir_live_form form, const struct weir_live_source *sources, int n,
                    const struct weir_metrics_process *process)
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
        rc = write_page(out, shown, metrics, found);
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

int weir_live_text(char **text, const struct weir_live_source *sources, int n,
                   const struct weir_metrics_process *process)
{
    size_t size;
    return weir_live_write(text, &size, WEIR_LIVE_CLASSIC, sources, n < WEIR_LIVE_SOURCES ? n : WEIR_LIVE_SOURCES,
                           process);
}
