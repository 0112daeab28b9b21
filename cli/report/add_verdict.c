#include "cli/report/add_verdict.h"

#include "analyze/verdict.h"

static void begin(void *user, struct weir_loader_report *report)
{
    struct weir_loader *loader = user;
    struct weir_verdict verdict;
    if (!loader || !report->final)
        return;
    weir_verdict_make(&verdict, report, NULL);
    if (weir_verdict_has(&verdict, WEIR_CAUSE_STORAGE) || weir_verdict_has(&verdict, WEIR_CAUSE_STORAGE_TAIL))
        weir_loader_probe_storage(loader, &report->storage);
}

static void print(void *user, FILE *out, const struct weir_loader_report *report, enum weir_lang lang)
{
    (void)user;
    weir_verdict_of_log(out, report, lang);
}

static void json(void *user, struct weir_json *to, const struct weir_loader_report *report)
{
    (void)user;
    weir_verdict_of_log_json(to, report);
}

void weir_add_verdict(struct weir_report_addition *addition, struct weir_loader *loader)
{
    *addition = (struct weir_report_addition){.begin = begin, .print = print, .json = json, .user = loader};
}

void weir_verdict_of_log(FILE *out, const struct weir_loader_report *report, enum weir_lang lang)
{
    struct weir_verdict verdict;
    weir_verdict_make(&verdict, report, NULL);
    weir_verdict_print(out, &verdict, report, lang);
}

void weir_verdict_of_log_json(struct weir_json *to, const struct weir_loader_report *report)
{
    struct weir_verdict verdict;
    weir_verdict_make(&verdict, report, NULL);
    weir_verdict_json(to, &verdict, report);
}
