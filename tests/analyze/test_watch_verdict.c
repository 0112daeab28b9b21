/* The verdict of a watched loader: bad figures, and the words of causes and advice. tests/golden has a situation for
 * each cause. */
#include "analyze/watch/watch_text.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Figures of a log that somebody edited. */
Test(watch_verdict, nonsense_is_survived)
{
    struct weir_dataloader_figures *figures = calloc(1, sizeof *figures);
    struct weir_loader_report *report = calloc(1, sizeof *report);
    struct weir_job_verdict verdict;
    report->wall_s = 20;
    report->prof.machine.used = true;
    report->prof.workers = calloc(1, sizeof *report->prof.workers);
    figures->known = true;
    static const double values[] = {0, -1, 1e15, -1e15, 1e-300};
    uint32_t seed = 1;
    for (int round = 0; round < 300; round++) {
        double *numbers = (double *)&figures->settings.num_workers;
        for (size_t i = 0; i < 14; i++)
            numbers[i] = values[(seed = seed * 1664525u + 1013904223u) >> 16 & 3];
        numbers = &figures->requests;
        for (size_t i = 0; i < 30; i++)
            numbers[i] = values[(seed = seed * 1664525u + 1013904223u) >> 16 & 3];
        figures->n_workers = (int)(seed >> 20 & 127);
        for (int w = 0; w < figures->n_workers; w++) {
            numbers = &figures->workers[w].id;
            for (size_t i = 0; i < sizeof figures->workers[w] / sizeof *numbers; i++)
                numbers[i] = values[(seed = seed * 1664525u + 1013904223u) >> 16 & 3];
        }
        figures->slowest.n_files = 1;
        report->prof.machine.cores = (int)(seed >> 8 & 1023) - 8;
        weir_dataloader_add_report(figures, report);
        weir_job_judge(&verdict, figures);
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        weir_watch_verdict_print(out, &verdict, figures);
        fclose(out);
        cr_assert_gt(size, 10);
        free(text);
    }
    free(report->prof.workers);
    free(report);
    free(figures);
}

Test(watch_verdict, every_cause_and_advice_has_words)
{
    for (int i = 0; i < WEIR_CAUSES; i++) {
        const char *loader = weir_cause_name(WEIR_SUBJECT_LOADER, (enum weir_cause)i);
        const char *job = weir_cause_name(WEIR_SUBJECT_JOB, (enum weir_cause)i);
        const char *sentence = weir_cause_sentence((enum weir_cause)i);
        cr_assert(loader || job || weir_cause_name(WEIR_SUBJECT_RANK, (enum weir_cause)i), "cause %d", i);
        cr_expect(!job || (sentence[0] >= 'a' && sentence[0] <= 'z'), "%s", job);
        cr_expect_eq(job != NULL, sentence != NULL, "cause %d", i);
        for (int k = 0; k < i; k++) {
            const char *other = weir_cause_name(WEIR_SUBJECT_JOB, (enum weir_cause)k);
            cr_expect(!job || !other || strcmp(job, other) != 0, "%s twice", job);
        }
    }
    for (int i = 0; i < WEIR_ADVICES; i++) {
        const struct weir_advice_words *loader = weir_advice_words(WEIR_SUBJECT_LOADER, (enum weir_advice_kind)i);
        const struct weir_advice_words *job = weir_advice_words(WEIR_SUBJECT_JOB, (enum weir_advice_kind)i);
        cr_assert(loader->name || job->name, "advice %d", i);
        cr_expect(!job->name || job->what, "%s", job->name);
    }
}
