/* stage_advice.h: what helps if a stage takes much of a training loop's time, for the verdicts of Weir's own reports
 * and of plain logs. Depends only on measured times. */
#ifndef WEIR_ANALYZE_VERDICT_STAGE_ADVICE_H
#define WEIR_ANALYZE_VERDICT_STAGE_ADVICE_H

#include "analyze/causes/diagnosis.h"

/* Seconds in which each stage counts once; 0 = not timed. */
struct weir_stage_times {
    double whole_s;    /* the time that the parts below share; 0 = unknown */
    const char *whole; /* its name in sentences, such as "the loop's time" */
    double data_s;     /* part of it that loading takes */
    const char *data;  /* the stages that data_s comes from */
    bool data_at_most; /* data_s is an upper limit */
    double forward_s, backward_s;
    double other_s;            /* largest other part */
    double sample_s, decode_s; /* loading in all workers together, and its part spent decoding; -1 = not timed */
    enum weir_data_bound bound;
    enum weir_subject step, loader; /* whose options the advice names */
};

/* Print one line for each stage that takes much of the time, with what helps, the largest first, and write them as the
 * array "stage_advice" of the open object. If decoding was timed, the first line is that of the 40 % rule. */
void weir_stage_advice_print(FILE *out, const struct weir_stage_times *times);
void weir_stage_advice_json(struct weir_json *json, const struct weir_stage_times *times);

/* Returns what helps with a stage that the table names alone, such as "21_backward", or NULL. */
const char *weir_stage_advice_of(const char *stage, enum weir_subject owner);

#endif
