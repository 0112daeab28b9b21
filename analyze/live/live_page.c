/* The page of running loaders, from lines of logs in memory. */
#include "analyze/live/live_priv.h"
#include "analyze/page/page.h"
#include "analyze/verdict/verdict.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void weir_live_log(void *user, FILE *out, struct weir_metrics *metrics, const struct weir_live_history *history)
{
    (void)user;
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

static int add_log(struct weir_page *page, const char *name, const char *log)
{
    struct weir_err err = WEIR_ERR_NONE;
    FILE *in = fmemopen((char *)log, strlen(log) + 1, "r");
    if (!in)
        return -ENOMEM;
    int rc = weir_page_add_log(page, name, in, &err);
    fclose(in);
    return rc == -ENODATA ? 0 : rc; /* the loader has delivered no batch yet */
}

int weir_live_page(FILE *out, const char *const *names, const char *const *logs, int n)
{
    struct weir_page *page;
    int rc = weir_page_open(&page, WEIR_LANG_EN);
    for (int i = 0; i < n && rc == 0; i++)
        rc = add_log(page, names[i], logs[i]);
    if (rc == 0)
        rc = weir_page_write(out, page);
    weir_page_close(&page);
    return rc;
}
