/* log_plain.h: reads stage tables and epoch lines of the Chinese shape out of plain training logs: other programs'
 * text, progress bars, colours and logger prefixes may stand around them. */
#ifndef WEIR_ANALYZE_LOGS_LOG_PLAIN_H
#define WEIR_ANALYZE_LOGS_LOG_PLAIN_H

#include "analyze/logs/log_totals.h"

#include <stddef.h>
#include <stdint.h>

enum { WEIR_PLAIN_EPOCHS_MAX = 1 << 17 };

struct weir_plain_epoch {
    int epoch, epoch_count;         /* as written (0- or 1-based); epoch_count 0 = not written */
    double total_s, train_s, val_s; /* -1 = not written */
    uint64_t line;
};

struct weir_plain_log {
    struct weir_totals totals; /* one table each */
    size_t n_epochs, epochs_capacity;
    struct weir_plain_epoch *epochs;
    uint64_t epochs_dropped; /* beyond WEIR_PLAIN_EPOCHS_MAX */
    uint64_t rows_cut;       /* rows that end too early */
    uint64_t times_left;     /* times that belong to no epoch */
    uint64_t not_utf8;       /* lines with bytes that are not */
    uint64_t first_not_utf8; /* the first of them */
    uint64_t empty_title;    /* line of the latest title without rows, 0 = none */
    bool periodic;           /* the tables say which epochs they cover */
    struct weir_plain_state_ *state_;
};

int weir_plain_open(struct weir_plain_log *log);
void weir_plain_close(struct weir_plain_log *log);
/* Takes the next line (or piece of one); number counts from 1 and does not fall. 0 or -ENOMEM. */
int weir_plain_line(struct weir_plain_log *log, const char *text, size_t length, uint64_t number);
/* After the last line. */
void weir_plain_finish(struct weir_plain_log *log);

/* What was found, for people and for programs (members of the object that is open in json). */
void weir_plain_print(FILE *out, const struct weir_plain_log *log);
void weir_plain_json(struct weir_json *json, const struct weir_plain_log *log);

/* What the tables show together: the stages' shares of a sample and of the loop, the data wait, the 40 % rule, and what
 * such a log cannot show. cumulative: weir_totals_cumulative. The latter is the member "verdict" of the open object. */
void weir_plain_verdict_print(FILE *out, const struct weir_plain_log *log, bool cumulative);
void weir_plain_verdict_json(struct weir_json *json, const struct weir_plain_log *log, bool cumulative);

#endif
