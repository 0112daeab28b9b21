/* The figures of running loaders as metrics, and as a page of tables. */
#include "analyze/live/live_priv.h"
#include "analyze/verdict/verdict.h"

#include <errno.h>
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

static const char PAGE_HEAD[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>weir</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\"><meta http-equiv=\"refresh\" content=\"5\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<style>body{font:16px/1.4 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em}"
    "pre{font-size:14px;overflow-x:auto}</style></head>\n<body><main>\n<h1>weir</h1>\n";
static const char PAGE_END[] = "<p><a href=\"/metrics\">metrics</a> (this page is reloaded every 5 s)</p>\n"
                               "</main></body></html>\n";

static void escape(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
    }
}

static void print_report(FILE *out, const struct weir_metrics *metrics)
{
    struct weir_verdict verdict;
    weir_verdict_make(&verdict, &metrics->report, NULL);
    weir_verdict_print(out, &verdict, &metrics->report);
    fputc('\n', out);
    weir_loader_report_print(out, &metrics->report, WEIR_LANG_EN);
}

static void write_section(FILE *out, const struct weir_live_source *source, const struct weir_metrics *metrics)
{
    char *text = NULL;
    size_t size = 0;
    FILE *plain = open_memstream(&text, &size);
    if (!plain)
        return;
    if (source->print)
        source->print(source->user, plain, metrics);
    else
        print_report(plain, metrics);
    bool complete = fclose(plain) == 0;
    fputs("<section>\n<h2>", out);
    escape(out, metrics->loader);
    fputs("</h2>\n<pre tabindex=\"0\">", out);
    escape(out, complete ? text : "out of memory");
    fputs("</pre>\n</section>\n", out);
    free(text);
}

static void write_page(FILE *out, const struct weir_live_source *const *shown, const struct weir_metrics *metrics,
                       int n)
{
    fputs(PAGE_HEAD, out);
    for (int i = 0; i < n; i++)
        write_section(out, shown[i], &metrics[i]);
    if (n == 0)
        fputs("<p>No loader is open.</p>\n", out);
    fputs(PAGE_END, out);
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
    if (form == WEIR_LIVE_PAGE)
        write_page(out, shown, metrics, found);
    else
        weir_metrics_write(out, metrics, found, process, (enum weir_metrics_format)form);
    for (int i = 0; i < found; i++)
        weir_loader_report_clear(&metrics[i].report);
    free(metrics);
    if (fclose(out) == 0)
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
