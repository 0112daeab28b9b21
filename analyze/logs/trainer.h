/* trainer.h: reads the logs of training programs that print no stage tables. Each format is one row of the table in
 * trainers.c: a name, a recogniser, a parser, and what its figures mean. Lines must be clean (log_clean.h). */
#ifndef WEIR_ANALYZE_LOGS_TRAINER_H
#define WEIR_ANALYZE_LOGS_TRAINER_H

#include "weir/base.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WEIR_TRAINER_COLUMNS = 6, WEIR_TRAINER_LABEL = 64, WEIR_TRAINER_ROWS_MAX = 1 << 16, WEIR_TRAINERS_MAX = 20 };

/* What a column contributes to a step. */
enum weir_trainer_role {
    WEIR_TRAINER_OTHER, /* nothing */
    WEIR_TRAINER_WAIT,  /* the wait for data */
    WEIR_TRAINER_WORK,  /* another part of the step */
    WEIR_TRAINER_STEP   /* the whole step, including the wait */
};

enum weir_trainer_unit { WEIR_TRAINER_SECONDS, WEIR_TRAINER_CLOCK, WEIR_TRAINER_COUNT, WEIR_TRAINER_NUMBER };

struct weir_trainer_column {
    const char *name;    /* in JSON */
    const char *heading; /* NULL = name */
    enum weir_trainer_role role;
    enum weir_trainer_unit unit;
    /* Of lines of fields: */
    const char *key; /* in the log, or several with | between them; NULL = name */
    double scale;    /* of the log's unit, whose figures are not rounded; 0 = seconds */
    bool bracketed;  /* the figure is the mean in brackets behind the value, as in "Time 0.355 ( 1.322)" */
};

struct weir_trainer_row {
    uint64_t line;
    double step; /* number of the row's step; NAN = unknown */
    char label[WEIR_TRAINER_LABEL];
    double values[WEIR_TRAINER_COLUMNS]; /* NAN = not printed */
};

/* What was read of one format. */
struct weir_trainer_log {
    const struct weir_trainer *trainer;
    size_t n_rows;
    struct weir_trainer_row *rows;
    uint64_t rows_dropped; /* rows beyond WEIR_TRAINER_ROWS_MAX */
    int ranks;             /* 0 = unknown */
    double steps_per_row;  /* 0 = unknown */
    double rounding_s;     /* maximum error of a printed time, at least that of the format */
    int state_;            /* the parser's */
    double memo_;
    char *document_; /* a JSON document so far */
    size_t document_bytes_;
};

/* The wait for data, per step and as a fraction of the step. */
struct weir_trainer_wait {
    bool recorded;
    double wait_s, step_s;        /* means; step_s is the sum of the parts if the log has no whole step */
    double fraction, least, most; /* the limits follow from rounding, and from what the log combines */
    size_t first, n_rows;         /* the rows that count */
};

struct weir_trainer {
    const char *name;  /* in JSON */
    const char *title; /* in a heading */
    const char *label; /* heading of the rows' labels */
    struct weir_trainer_column columns[WEIR_TRAINER_COLUMNS];
    bool series;           /* rows follow each other in time, so several can be averaged */
    bool mean_since_start; /* the whole step is a mean since the start, so its rows are no separate measurements */
    double rounding_s;     /* maximum error of a printed time */
    const char *each;      /* what the wait is a mean over; NULL = step */
    /* Of lines of fields: texts of which the first line of a row has all, and none; the field that labels the row
     * (NULL: the progress in brackets, as in [1][10/50]); and, if a row has several lines, a text of the line after
     * them. */
    const char *has[4], *lacks[4], *labelled, *ends;
    /* Returns whether parse needs the line. */
    bool (*recognise)(const struct weir_trainer_log *log, const char *line);
    /* Returns 0 or -ENOMEM. */
    int (*parse)(struct weir_trainer_log *log, const char *line, uint64_t number);
    int (*finish)(struct weir_trainer_log *log); /* after the last line; can be NULL */
    /* Computes the wait if it is not the column with that role over the step; can be NULL. */
    void (*wait)(const struct weir_trainer_log *log, struct weir_trainer_wait *wait);
    /* Returns whether a row is a stage, and its figures. NULL: each column that is a part of the step is a stage with
     * steps_per_row calls. */
    bool (*stage)(const struct weir_trainer_row *row, double *total_s, double *calls);
    /* Prints lines about this log, indented by two spaces; can be NULL. */
    void (*remark)(FILE *out, const struct weir_trainer_log *log);
    const char *means; /* what the wait includes, or what the log shows in its place */
    const char *watch; /* command that shows more */
};

struct weir_trainers {
    int n;
    struct weir_trainer_log logs[WEIR_TRAINERS_MAX]; /* in the order of the table of formats */
};

void weir_trainers_open(struct weir_trainers *trainers);
void weir_trainers_close(struct weir_trainers *trainers);
/* Processes the next line. Returns 0 or -ENOMEM. */
int weir_trainers_line(struct weir_trainers *trainers, const char *line, uint64_t number);
int weir_trainers_finish(struct weir_trainers *trainers);
/* Returns the log with rows whose format comes first in the table, or NULL. Formats that record the wait come first. */
const struct weir_trainer_log *weir_trainers_found(const struct weir_trainers *trainers);

/* Returns the sum of the row's columns with this role, or NAN if it has none. */
double weir_trainer_sum(const struct weir_trainer *trainer, const struct weir_trainer_row *row,
                        enum weir_trainer_role role);

/* ---- for the formats ---- */

/* Appends a row without values, and sets *row to it, or to NULL beyond the limit. Returns 0 or -ENOMEM. */
int weir_trainer_add(struct weir_trainer_log *log, uint64_t number, struct weir_trainer_row **row);
/* Raises rounding_s to half of the last digit of a printed time. */
void weir_trainer_rounding(struct weir_trainer_log *log, const char *time);
/* Learns steps_per_row from the numbers of the steps in two successive rows. */
void weir_trainer_step(struct weir_trainer_log *log, double step);
/* Copies a label of `length` bytes, shortened to fit. */
void weir_trainer_label(struct weir_trainer_row *row, const char *text, size_t length);
/* Returns the number that follows the last `name` that is a whole word, as in name: 1, name=1, "name": 1, 'name': '1'
 * and name 1, or NULL. */
const char *weir_trainer_field(const char *line, const char *name);
/* Returns that number, or NAN. */
double weir_trainer_number(const char *line, const char *name);
/* The recogniser and the parser of rows that are lines of fields. */
bool weir_trainer_is_fields(const struct weir_trainer_log *log, const char *line);
int weir_trainer_parse_fields(struct weir_trainer_log *log, const char *line, uint64_t number);
/* Computes the wait from columns that are means since the first step of an epoch. */
void weir_trainer_wait_of_means(const struct weir_trainer_log *log, struct weir_trainer_wait *wait);
/* Reads a plausible duration or count with sign and exponent. Returns its bytes, or 0 (also for nan and inf). */
size_t weir_trainer_decimal(const char *text, double *value);

/* Formats whose rows are lines of fields, and the others. */
extern const struct weir_trainer *const weir_trainer_steps[];
extern const int weir_trainer_n_steps;
extern const struct weir_trainer weir_trainer_lightning, weir_trainer_traceml, weir_trainer_keys,
    weir_trainer_transformers, weir_trainer_act, weir_trainer_tqdm;

/* ---- what the log shows ---- */

void weir_trainer_wait_find(const struct weir_trainer_log *log, struct weir_trainer_wait *wait);
/* Prints the verdict, and what such a log does not show. */
void weir_trainer_verdict_print(FILE *out, const struct weir_trainer_log *log);
/* Prints a heading, the verdict and the rows. If there are many rows, prints means of several. In Chinese, prints the
 * classic table of stages in place of the rows, if the log has stages with the number of their calls. */
void weir_trainer_print(FILE *out, const struct weir_trainer_log *log, enum weir_lang lang);
/* Prints the classic table of stages. Returns whether it has rows. */
bool weir_trainer_stages_zh(FILE *out, const struct weir_trainer_log *log);
/* Add the members "verdict" and "format" to the open JSON object. log can be NULL in the latter. */
void weir_trainer_verdict_json(struct weir_json *json, const struct weir_trainer_log *log);
void weir_trainer_json(struct weir_json *json, const struct weir_trainer_log *log);

#endif
