/* log_read.h: reads the records of a --log file (JSON lines, docs/log-format.md) back into what was printed. */
#ifndef WEIR_ANALYZE_LOGS_LOG_READ_H
#define WEIR_ANALYZE_LOGS_LOG_READ_H

#include "analyze/logs/log_lines.h"
#include "analyze/prediction/whatif.h"
#include "weir/base.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_log_type {
    WEIR_LOG_RUN,
    WEIR_LOG_START,
    WEIR_LOG_EPOCH,
    WEIR_LOG_STAGES,
    WEIR_LOG_MEASURED,
    WEIR_LOG_WHATIF
};

/* Choices of the loader, from a "run" record. */
struct weir_log_used {
    bool known;
    char io[16], decoder[32];
    int workers, prefetch;
};

struct weir_log_record {
    enum weir_log_type type;
    uint64_t line;
    struct weir_log_used used;          /* of WEIR_LOG_RUN */
    struct weir_start_line start;       /* of WEIR_LOG_START */
    struct weir_epoch_line epoch;       /* of WEIR_LOG_EPOCH */
    struct weir_loader_report report;   /* of WEIR_LOG_STAGES */
    struct weir_measured_line measured; /* of WEIR_LOG_MEASURED */
    struct weir_whatif *whatif;         /* of WEIR_LOG_WHATIF, owned */
    void *parsed_;
};

enum { WEIR_LOG_END = 0, WEIR_LOG_RECORD = 1, WEIR_LOG_CUT = 2 };

/* The line begins a log that `weir run --log` wrote, whole or cut off. */
bool weir_log_recognised(const char *line, size_t length);

/* Reads up to the next run, start, epoch, stages, measured or whatif record; lines of other types and empty ones are
 * passed over. record is zeroed before the first call; each call frees what the one before put there. WEIR_LOG_RECORD,
 * WEIR_LOG_END, WEIR_LOG_CUT when the last line was not written to its end (a run that was killed), or -errno. */
int weir_log_next(struct weir_lines *lines, struct weir_log_record *record, struct weir_err *err);
void weir_log_record_clear(struct weir_log_record *record);

/* The run record in a few lines of "key value" pairs, and as it was as a JSON member. */
void weir_log_run_print(FILE *out, const struct weir_log_record *record);
void weir_log_run_json(struct weir_json *json, const char *key, const struct weir_log_record *record);

#endif
