/* Writes the document: head, the runs with their sections, settings. */
#include "analyze/page/page_priv.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- the head ---- */

/* The policy allows only this style sheet, this script, and images in data: URLs, for the empty icon. */
void weir_page_head(FILE *out, enum weir_lang lang, const char *title)
{
    fprintf(out, "<!doctype html>\n<html lang=\"%s\">\n<head>\n<meta charset=\"utf-8\">\n",
            lang == WEIR_LANG_ZH ? "zh" : "en");
    fputs("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-", out);
    weir_page_base64(out, weir_page_css_sha256);
    fputs("'; script-src 'sha256-", out);
    weir_page_base64(out, weir_page_js_sha256);
    fputs("'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          out);
    weir_page_text(out, title);
    fputs("</title>\n<style>", out);
    fwrite(weir_page_css, 1, weir_page_css_size, out);
    /* a hatching pattern, so that colour is not the only difference between areas */
    fputs("</style>\n</head>\n<body>\n<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>"
          "<pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate(45)\"><rect class=\"hatch\" width=\"1.6\" height=\"5\"/></pattern>"
          "</defs></svg>\n<main>\n",
          out);
}

void weir_page_foot(FILE *out)
{
    fputs("</main>\n<script>", out);
    fwrite(weir_page_js, 1, weir_page_js_size, out);
    fputs("</script>\n</body>\n</html>\n", out);
}

/* ---- a run ---- */

static const char *run_title(const struct weir_page_run *run)
{
    const char *data = weir_page_setting(run, "config.data");
    if (run->watch && run->watch->name[0])
        return run->watch->name;
    return data ? data : run->log[0] ? run->log : "Weir";
}

static void put_fact(FILE *out, const char *text, const char *unit)
{
    if (!text || !*text)
        return;
    fputs("<span>", out);
    weir_page_text(out, text);
    weir_page_text(out, unit);
    fputs("</span> ", out);
}

/* The line below the title: what ran where. */
static void put_facts(FILE *out, const struct weir_page_run *run)
{
    static const struct {
        const char *name, *unit;
    } facts[] = {{"used.num_workers", " workers"},
                 {"config.batch_size", " per batch"},
                 {"used.decoder", " decoder"},
                 {"used.io.used", " reads"},
                 {"machine.cpu_model", ""},
                 {"machine.cores_usable", " cores"},
                 {"used.gpu.name", ""},
                 {"used.host", ""}};
    const char *version = weir_page_setting(run, "weir");
    fputs("<p class=\"facts\">", out);
    if (version)
        put_fact(out, "weir ", version);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        put_fact(out, weir_page_setting(run, facts[i].name), facts[i].unit);
    fputs("</p>\n", out);
}

static int put_sections(struct weir_page_out *page)
{
    int rc = weir_page_verdict(page);
    if (rc < 0)
        return rc;
    weir_page_over_time(page);
    weir_page_stages(page);
    weir_page_shares(page);
    weir_page_latency(page);
    weir_page_threads(page);
    rc = weir_page_timeline(page);
    if (rc == 0)
        weir_page_settings(page);
    return rc;
}

/* open: of several runs, this one is unfolded. */
static int put_run(struct weir_page_out *page, bool one, bool open)
{
    FILE *out = page->out;
    const struct weir_page_run *run = page->run;
    fputs("<article>\n", out);
    if (one) {
        fputs("<header><h1>", out);
        weir_page_text(out, run_title(run));
        fputs("</h1>\n", out);
    } else {
        fprintf(out, "<details class=\"run\"%s><summary>", open ? " open" : "");
        if (run->world_size > 1)
            fprintf(out, "%s %d: ", weir_word(WEIR_WORD_RANK, page->lang), run->rank);
        weir_page_text(out, run_title(run));
        fputs("</summary>\n<header>", out);
    }
    put_facts(out, run);
    fputs("</header>\n", out);
    int rc = put_sections(page);
    fputs(one ? "</article>\n" : "</details>\n</article>\n", out);
    return rc;
}

int weir_page_write(FILE *out, const struct weir_page *page)
{
    struct weir_page_out at = {.out = out, .lang = page->lang};
    bool one = page->n_runs == 1 && page->n_ranks == 0;
    int rc = 0;
    int shown = page->n_ranks > 0 ? 0 : page->n_runs - 1; /* unfolded: the first rank, or the newest run */
    const char *title = page->n_runs > 0 ? run_title(page->runs[shown]) : "Weir";
    weir_page_head(out, page->lang, title);
    if (!one) {
        fputs("<header><h1>", out);
        weir_page_text(out, title);
        fputs("</h1></header>\n", out);
    }
    weir_page_ranks(&at, page);
    for (int i = 0; i < page->n_runs && rc == 0; i++) {
        at.run = page->runs[i];
        rc = put_run(&at, one, i == shown);
    }
    weir_page_foot(out);
    return rc;
}

/* ---- settings ---- */

void weir_page_settings(struct weir_page_out *page)
{
    FILE *out = page->out;
    const struct weir_page_run *run = page->run;
    if (run->n_settings == 0)
        return;
    fprintf(out, "<section>\n<h2>%s</h2>\n<details><summary>%s (%d)</summary>\n<table class=\"settings\"><thead><tr>",
            weir_word(WEIR_WORD_SETTINGS, page->lang), weir_word(WEIR_WORD_TABLE, page->lang), run->n_settings);
    fprintf(out, "<th scope=\"col\">%s</th><th scope=\"col\">%s</th></tr></thead>\n<tbody>\n",
            weir_word(WEIR_WORD_NAME, page->lang), weir_word(WEIR_WORD_VALUE, page->lang));
    for (int i = 0; i < run->n_settings; i++) {
        fputs("<tr><th scope=\"row\">", out);
        weir_page_text(out, run->settings[i].name);
        fputs("</th><td>", out);
        weir_page_text(out, run->settings[i].value);
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody></table></details>\n</section>\n", out);
}
