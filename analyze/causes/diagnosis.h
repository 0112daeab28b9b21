/* diagnosis.h: the result of a verdict, whoever judged: how long training waits for data, the causes that rules found
 * with the evidence as text, and what would help. Rules fill it in, and the two writers print it.
 *
 *     struct weir_diagnosis found = {.subject = WEIR_SUBJECT_JOB, .wait = -1};
 *     struct weir_diagnosis_cause *cause =
 *         weir_diagnosis_add(&found, WEIR_CAUSE_LOCK, share, gain, "%.0f %% of their time", 100 * share);
 *     weir_diagnosis_advise(&found, cause->advice, cause->gain);
 *     weir_diagnosis_print(stdout, &found, NULL, NULL);
 */
#ifndef WEIR_ANALYZE_CAUSES_DIAGNOSIS_H
#define WEIR_ANALYZE_CAUSES_DIAGNOSIS_H

#include "analyze/causes/causes.h"
#include "weir/base.h"

#include <stdint.h>
#include <stdio.h>

enum weir_data_bound {
    WEIR_BOUND_UNKNOWN,
    WEIR_BOUND_NO,
    WEIR_BOUND_PARTLY,
    WEIR_BOUND_STRONGLY,
    WEIR_BOUND_NO_STEP, /* nothing but the loader runs, so the verdict is about its top speed */
};

enum weir_certainty { WEIR_CERTAINTY_UNSURE, WEIR_CERTAINTY_LIKELY, WEIR_CERTAINTY_SURE };

enum { WEIR_DIAGNOSIS_CAUSES = 12, WEIR_DIAGNOSIS_ADVICES = 10, WEIR_DIAGNOSIS_WHO = 256, WEIR_DIAGNOSIS_TEXT = 640 };

struct weir_diagnosis_cause {
    enum weir_cause cause;
    enum weir_certainty certainty;
    double share;                 /* main evidence, a fraction whose meaning depends on the cause; -1 = none */
    double gain;                  /* predicted rate without this cause over the current one; 0 = no prediction */
    enum weir_advice_kind advice; /* to a job, the usual one; a rule can replace it */
    double workers;               /* number of workers that the advice suggests; 0 = none */
    char who[WEIR_DIAGNOSIS_WHO]; /* the file, camera, worker or stage; can be empty */
    /* The evidence, which follows the cause's sentence; for Weir's loader a whole sentence without a full stop. */
    char text[WEIR_DIAGNOSIS_TEXT];
};

struct weir_advice {
    enum weir_advice_kind kind;
    double ratio;         /* predicted rate over the current one; 0 = no prediction */
    bool measured;        /* the job itself shows the ratio, so it is not a prediction */
    bool at_most;         /* the ratio is an upper limit */
    bool if_latency;      /* the prediction holds only if latency, not bandwidth, makes reads slow */
    double value, now;    /* suggested and current number of a setting; value 0 = the setting is not a number */
    char setting[64];     /* "num_workers=8", or an option of the command line; can be empty */
    const char *resource; /* in JSON: the resource that limits after the change; NULL = unknown */
    char what[160];       /* what to do or what it does, with figures; empty: the words of the table */
    char after[160];      /* follows the ratio; can be empty */
};

struct weir_diagnosis {
    enum weir_subject subject;
    bool sampled;               /* by a source that only samples, so the certainty is printed */
    enum weir_data_bound bound; /* unknown: the text begins with the first cause */
    double wait;                /* fraction of training time spent waiting for data; -1 = unknown */
    bool at_most;               /* `wait` is only an upper limit */
    bool validation;            /* the loop validates */
    const char *part;           /* what `wait` is a fraction of; NULL = "time" */
    char remark[320];           /* a sentence in the place of the main cause; can be empty */
    int n_causes;
    /* The main one first; the last element takes what does not fit. */
    struct weir_diagnosis_cause causes[WEIR_DIAGNOSIS_CAUSES + 1];
    int n_advices;
    struct weir_advice advices[WEIR_DIAGNOSIS_ADVICES];
};

/* ---- for rules ---- */

/* Appends a cause. Its text is formatted. It is sure, unless it is WEIR_CAUSE_CANNOT_TELL. If there is no room,
 * replaces one with less gain. The result is never NULL. */
struct weir_diagnosis_cause *weir_diagnosis_add(struct weir_diagnosis *diagnosis, enum weir_cause cause, double share,
                                                double gain, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Appends to the text. */
void weir_diagnosis_say(struct weir_diagnosis_cause *cause, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool weir_diagnosis_has(const struct weir_diagnosis *diagnosis, enum weir_cause cause);
/* Sorts the causes by decreasing rank, stably, and keeps the first `most`. */
void weir_diagnosis_sort(struct weir_diagnosis *diagnosis, int most,
                         double (*rank)(const void *user, const struct weir_diagnosis_cause *cause), const void *user);
/* Appends advice, with a ratio if it is worth printing. Returns NULL if there is no room, if it is there already, or
 * for WEIR_ADVICE_NONE. */
struct weir_advice *weir_diagnosis_advise(struct weir_diagnosis *diagnosis, enum weir_advice_kind kind, double ratio);
/* Returns whether a predicted ratio is worth printing. */
bool weir_ratio_is_worth(double ratio);
/* Sets a setting that is a number, such as num_workers. advice can be NULL. */
void weir_advice_set(struct weir_advice *advice, const char *name, double now, double value);

enum weir_data_bound weir_data_bound(double wait);
/* Returns "no", "partly", "strongly" or "no-step", or NULL if it is unknown. */
const char *weir_data_bound_name(enum weir_data_bound bound);
/* Returns whether these training batches are enough for a verdict. slots: maximum number of ready batches. */
bool weir_verdict_suffices(uint64_t train_batches, double train_s, int slots);

/* ---- writers ---- */

const char *weir_certainty_name(enum weir_certainty certainty);

/* Prints the lines that follow the advice, each indented by two spaces. */
typedef void weir_diagnosis_more_fn(FILE *out, const void *user);

/* Prints "verdict: ", how long training waits, the causes and the advice, wrapped at the width of the output. They are
 * in English even if the table is in another language. more can be NULL. */
void weir_diagnosis_print(FILE *out, const struct weir_diagnosis *diagnosis, weir_diagnosis_more_fn *more,
                          const void *user);
/* Writes the same text with one line per cause, advice and so on, however long, and without colour. */
void weir_diagnosis_lines(FILE *out, const struct weir_diagnosis *diagnosis, weir_diagnosis_more_fn *more,
                          const void *user);
/* Writes "1.16", "3.4" or "41"; "over 50" for larger ratios, because what is left of the time is then too small to be
 * known accurately. */
void weir_ratio_print(FILE *out, double ratio);
/* Adds the members "data_bound", "data_wait_fraction", "causes" and "advice" to the open JSON object. */
void weir_diagnosis_json(struct weir_json *json, const struct weir_diagnosis *diagnosis);

#endif
