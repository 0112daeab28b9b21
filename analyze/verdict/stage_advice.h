/* stage_advice.h: what helps if a stage takes much of a training loop's time: one table for the verdicts of Weir's own
 * reports and of plain logs. Depends only on measured times. */
#ifndef WEIR_ANALYZE_VERDICT_STAGE_ADVICE_H
#define WEIR_ANALYZE_VERDICT_STAGE_ADVICE_H

#include "analyze/verdict/verdict.h"

/* Whose options the advice names. */
enum weir_stage_owner { WEIR_OWNER_SCRIPT, WEIR_OWNER_WEIR, WEIR_STAGE_OWNERS };

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
    enum weir_stage_owner step, loader;
};

/* Print one line for each stage that takes much of the time, with what helps, the largest first, and write them as the
 * array "stage_advice" of the open object. If decoding was timed, the first line is that of the 40 % rule. */
void weir_stage_advice_print(FILE *out, const struct weir_stage_times *times);
void weir_stage_advice_json(struct weir_json *json, const struct weir_stage_times *times);

/* Returns what helps with a stage that the table names alone, such as "21_backward", or NULL. */
const char *weir_stage_advice_of(const char *stage, enum weir_stage_owner owner);

/* Fills in the times of a report's training steps. Without a real training step, or if the verdict cannot tell, there
 * is no advice for the step. Loading has only the rule: for the rest, verdicts have advice with predictions. */
void weir_stage_times_of(struct weir_stage_times *times, const struct weir_verdict *verdict,
                         const struct weir_loader_report *report);

#endif
