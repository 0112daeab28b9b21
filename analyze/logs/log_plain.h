/* log_plain.h: reads plain training logs: the classic Chinese stage tables and epoch lines, or the lines of well-known
 * training programs, between other output, progress bars, colours and logger prefixes. */
#ifndef WEIR_ANALYZE_LOGS_LOG_PLAIN_H
#define WEIR_ANALYZE_LOGS_LOG_PLAIN_H

#include "analyze/logs/log_lines.h"
#include "analyze/logs/log_totals.h"
#include "analyze/logs/trainer.h"
#include "weir/stages.h"

#include <stddef.h>
#include <stdint.h>

enum { WEIR_PLAIN_EPOCHS_MAX = 1 << 17 };

struct weir_plain_epoch {
    int epoch, epoch_count;         /* as printed (0-based or 1-based); epoch_count 0 = not printed */
    double total_s, train_s, val_s; /* -1 = not printed */
    uint64_t line;
};

struct weir_plain_log {
    struct weir_totals totals; /* contains one table per stage table in the log */
    size_t n_epochs;
    struct weir_plain_epoch *epochs;
    uint64_t epochs_dropped;       /* epochs beyond WEIR_PLAIN_EPOCHS_MAX */
    uint64_t rows_cut;             /* incomplete rows */
    uint64_t times_left;           /* times that could not be assigned to an epoch */
    uint64_t not_utf8;             /* lines that are not UTF-8 */
    uint64_t first_not_utf8;       /* number of the first line that is not UTF-8 */
    uint64_t empty_title;          /* line number of the last title, if it has no rows; otherwise 0 */
    bool periodic;                 /* the tables name the epochs that they cover: Weir's loader */
    bool of_script;                /* as above, printed by a Python program with weir.Loader */
    struct weir_trainers trainers; /* contains the lines of well-known training programs */
    struct weir_plain_state_ *state_;
};

int weir_plain_open(struct weir_plain_log *log);
void weir_plain_close(struct weir_plain_log *log);
/* Processes the next line or a part of it. number starts at 1 and must not decrease. Returns 0 or -ENOMEM. */
int weir_plain_line(struct weir_plain_log *log, const char *text, size_t length, uint64_t number);
/* Completes the result. Call this after the last line. Returns 0 or -ENOMEM. */
int weir_plain_finish(struct weir_plain_log *log);
/* Processes all lines and completes the result. Returns 0, -ENOMEM or the error of reading. */
int weir_plain_read(struct weir_plain_log *log, struct weir_lines *lines);
/* Returns whether the log has a table, an epoch, or a line of a well-known training program. */
bool weir_plain_found(const struct weir_plain_log *log);

/* Print the result, as tables and as members of the open JSON object. lang: language of the table of a training
 * program's stages. */
void weir_plain_print(FILE *out, const struct weir_plain_log *log, enum weir_lang lang);
void weir_plain_json(struct weir_json *json, const struct weir_plain_log *log);

/* Returns whether the tables continue each other's counts; false if they name the epochs that they cover. */
bool weir_plain_cumulative(const struct weir_plain_log *log);

/* ---- what all tables show together ---- */

/* Print the data wait, the stages with advice, and what such a log does not contain, wrapped or with one line for each;
 * and write them as the member "verdict" of the open object. */
void weir_plain_verdict_print(FILE *out, const struct weir_plain_log *log);
void weir_plain_verdict_lines(FILE *out, const struct weir_plain_log *log);
void weir_plain_verdict_json(struct weir_json *json, const struct weir_plain_log *log);
/* Returns the data wait as a fraction of the loop's time; -1 = unknown. */
double weir_plain_wait(const struct weir_plain_log *log);

/* The parts of a sample's time, of the loop's time, or of all timed stages. */
struct weir_plain_share {
    const char *name;
    double total_s, share;
    const char *example; /* the share in a published table, such as "40-50 %"; NULL = none */
};
struct weir_plain_shares {
    char title[192];
    int n;
    struct weir_plain_share rows[WEIR_LOADER_STAGES + 1];
};
enum { WEIR_PLAIN_SHARES = 3 };

/* Fills in the tables for which the log has stages, and returns their number. */
int weir_plain_shares(const struct weir_plain_log *log, struct weir_plain_shares tables[WEIR_PLAIN_SHARES]);
void weir_plain_shares_print(FILE *out, const struct weir_plain_log *log);

#endif
