#include "cli/report/report_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int weir_report_ranks_read(struct weir_report_ranks *ranks, const char *const *paths, int n, struct weir_err *err)
{
    *ranks = (struct weir_report_ranks){.n = n};
    if (n < 2)
        return 0;
    ranks->logs = calloc((size_t)n, sizeof *ranks->logs);
    int rc = ranks->logs ? 0 : -ENOMEM;
    for (int i = 0; i < n && rc == 0; i++)
        if (strcmp(paths[i], "-") == 0) /* can be read only once */
            ranks->logs[i] = (struct weir_rank_log){.path = paths[i], .rank = -1};
        else
            rc = weir_rank_log_read(&ranks->logs[i], paths[i]);
    if (rc == 0)
        rc = weir_rank_logs_compare(&ranks->ranks, ranks->logs, n, ranks->why, sizeof ranks->why);
    return rc < 0 ? weir_err_set(err, rc, "out of memory") : 0;
}

void weir_report_ranks_free(struct weir_report_ranks *ranks)
{
    weir_rank_logs_free(&ranks->ranks);
    free(ranks->logs);
    ranks->logs = NULL;
}

bool weir_report_ranks_skips(const struct weir_report_ranks *ranks, int i)
{
    return ranks->ranks.n > 0 && ranks->logs[i].rank >= 0 && !ranks->logs[i].readable && ranks->logs[i].cut;
}

void weir_report_ranks_describe(struct weir_document *document, const struct weir_report_ranks *ranks)
{
    FILE *out = weir_document_stream(document);
    const struct weir_rank_logs *found = &ranks->ranks;
    if (out && ranks->why[0])
        fprintf(stderr, "weir report: no table over ranks: %s\n", ranks->why);
    if (found->n == 0) {
        weir_document_fact(document, "ranks", (const char *)NULL);
        return;
    }
    weir_document_begin(document, "ranks", '{');
    if (out) {
        putc('\n', out);
        weir_rank_table_print(out, &found->verdict, found->ranks, found->n);
    } else {
        weir_rank_table_json(document->json, &found->verdict, found->ranks, found->n);
    }
    weir_document_end(document, '}');
}
