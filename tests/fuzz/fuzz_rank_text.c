/* Fuzz target: the text that a rank has sent to rank 0, read, compared with a sound rank and printed. */
#include "analyze/ranks/rank_record.h"
#include "analyze/ranks/rank_verdict.h"
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    static struct weir_rank_status status, again;
    static char written[65536];
    const struct weir_rank_record sound = {.steps = 10, .step_s = 0.05, .data_s = 0.01, .own_s = 0.02, .cores = 4};
    char *text = malloc(size + 1);
    nowhere = nowhere ? nowhere : fopen("/dev/null", "w");
    if (!text || !nowhere)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    if (weir_rank_status_read(&status, text) == 0) {
        assert(status.n_records >= 0 && status.n_records <= WEIR_RANK_RECORDS);
        weir_rank_status_write(&status, written, sizeof written);
        assert(weir_rank_status_read(&again, written) == 0 && again.n_records <= status.n_records);
        for (int r = 0; r < status.n_records; r++) {
            struct weir_rank ranks[2] = {{.record = &sound},
                                         {.rank = 1, .pid = status.pid, .record = &status.records[r]}};
            struct weir_rank_verdict verdict;
            memcpy(ranks[1].host, status.host, sizeof status.host);
            weir_rank_verdict_make(&verdict, ranks, 2, NULL);
            weir_rank_table_print(nowhere, &verdict, ranks, 2);
        }
    }
    free(text);
    return 0;
}
