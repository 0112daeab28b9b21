#include "analyze/verdict/verdict.h"

/* Makes the verdict once per report, because a report can be written twice: as a table and as a line of the log. Runs
 * on the training thread. */
static void begin(void *user, struct weir_loader_report *report)
{
    struct weir_added_verdict *added = user;
    struct weir_verdict *verdict = &added->verdict_;
    weir_verdict_make(verdict, report, NULL);
    if (!added->loader_ || !report->final)
        return;
    bool is_storage = weir_diagnosis_has(&verdict->found, WEIR_CAUSE_STORAGE) ||
                      weir_diagnosis_has(&verdict->found, WEIR_CAUSE_STORAGE_TAIL);
    bool is_video = report->video.counts.groups > 0 && weir_diagnosis_has(&verdict->found, WEIR_CAUSE_DECODE);
    if (is_storage)
        weir_loader_probe_storage(added->loader_, &report->storage);
    if (is_video)
        weir_loader_probe_jpeg(added->loader_, &report->video.jpeg_s);
    if (is_storage || is_video)
        weir_verdict_make(verdict, report, NULL);
}

static void print(void *user, FILE *out, const struct weir_loader_report *report, enum weir_lang lang)
{
    const struct weir_added_verdict *added = user;
    (void)report, (void)lang;
    weir_verdict_print(out, &added->verdict_);
}

static void json(void *user, struct weir_json *to, const struct weir_loader_report *report)
{
    const struct weir_added_verdict *added = user;
    (void)report;
    weir_verdict_json(to, &added->verdict_);
}

void weir_add_verdict(struct weir_added_verdict *added, struct weir_loader *loader)
{
    added->addition = (struct weir_report_addition){.begin = begin, .print = print, .json = json, .user = added};
    added->loader_ = loader;
}

double weir_added_verdict_wait(const struct weir_added_verdict *added)
{
    return added->verdict_.found.wait;
}

bool weir_added_verdict_tells(const struct weir_added_verdict *added)
{
    return added->verdict_.found.bound != WEIR_BOUND_UNKNOWN;
}

void weir_verdict_of_log(FILE *out, const struct weir_loader_report *report)
{
    struct weir_verdict verdict;
    weir_verdict_make(&verdict, report, NULL);
    weir_verdict_print(out, &verdict);
}

void weir_verdict_of_log_json(struct weir_json *to, const struct weir_loader_report *report)
{
    struct weir_verdict verdict;
    weir_verdict_make(&verdict, report, NULL);
    weir_verdict_json(to, &verdict);
}

void weir_verdict_judge_validation(struct weir_report_steps *steps)
{
    if (steps->train_batches > 0 || steps->val_batches == 0)
        return;
    steps->validation = true;
    steps->train_batches = steps->val_batches;
    steps->train_s = steps->val_s;
    steps->train_wait_s = steps->val_wait_s;
    steps->val_batches = 0;
    steps->val_s = steps->val_wait_s = 0;
}
