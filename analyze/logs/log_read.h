/* log_read.h: parses the records of a --log file (JSON lines, docs/internals/log-format.md). */
#ifndef WEIR_ANALYZE_LOGS_LOG_READ_H
#define WEIR_ANALYZE_LOGS_LOG_READ_H

#include "analyze/jobs/dataloader.h"
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
    WEIR_LOG_WHATIF,
    WEIR_LOG_PROFILE
};

enum { WEIR_LOG_PATH = 4096 };

/* The newest window of --profile whose trace was written, from a "profile" record. */
struct weir_log_window {
    char trace[WEIR_LOG_PATH]; /* path as the run knew it; empty = none */
};

/* The loader's choices, from a "run" record. */
struct weir_log_used {
    bool known;
    char io[16], decoder[32];
    int workers, prefetch;
    int rank, world_size, pid; /* world_size 0, pid 0 = unknown */
    char host[64];             /* empty = unknown */
};

struct weir_log_record {
    enum weir_log_type type;
    uint64_t line;
    struct weir_log_used used;             /* for WEIR_LOG_RUN */
    struct weir_start_line start;          /* for WEIR_LOG_START */
    struct weir_epoch_line epoch;          /* for WEIR_LOG_EPOCH */
    struct weir_loader_report report;      /* for WEIR_LOG_STAGES */
    struct weir_dataloader_figures *watch; /* the same, if the loader was watched, otherwise NULL; owned */
    struct weir_measured_line measured;    /* for WEIR_LOG_MEASURED */
    struct weir_whatif *whatif;            /* for WEIR_LOG_WHATIF; owned */
    struct weir_log_window window;         /* for WEIR_LOG_PROFILE */
    void *parsed_;
};

enum { WEIR_LOG_END = 0, WEIR_LOG_RECORD = 1, WEIR_LOG_CUT = 2 };

/* Returns whether the line, which can be cut off, begins a log of `weir run --log`. */
bool weir_log_recognised(const char *line, size_t length);

/* Returns what the file is, such as "a log of weir tune", if its beginning is output of weir without records that
 * weir_log_next returns; otherwise NULL. Peeks at the first lines, which must not have been read; skips a line "{". */
const char *weir_log_unread(struct weir_lines *lines);

/* Reads the next record of type run, start, epoch, stages, measured, whatif or profile. Skips empty lines and records
 * of other types. Zero-initialise the record; each call frees its previous contents. Returns WEIR_LOG_RECORD,
 * WEIR_LOG_END, WEIR_LOG_CUT if the last line is incomplete because the run was killed, or -errno. */
int weir_log_next(struct weir_lines *lines, struct weir_log_record *record, struct weir_err *err);
void weir_log_record_clear(struct weir_log_record *record);

/* Print a stages record as the run did, verdict first, and write the members of its line with the verdict. */
void weir_log_report_print(FILE *out, const struct weir_log_record *record, enum weir_lang lang);
void weir_log_report_json(struct weir_json *json, const struct weir_log_record *record);

/* Calls put for each setting of a run record, and of the loader in a stages record: "config.batch_size", "machine.cpu".
 * Texts are printable; arrays are left out. Ends at the first error of put, which it returns, or returns -ENOMEM. */
typedef int weir_log_setting_fn(void *user, const char *name, const char *value);
int weir_log_settings(const struct weir_log_record *record, weir_log_setting_fn *put, void *user);

/* Print a run record, as lines of "key value" pairs (only the first of them in narrow output) and as a JSON member with
 * the same content. */
void weir_log_run_print(FILE *out, const struct weir_log_record *record);
void weir_log_run_json(struct weir_json *json, const char *key, const struct weir_log_record *record);

#endif
