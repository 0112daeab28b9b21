/* rank_verdict.h: which rank of a distributed run is slow, and why. Pure functions of the ranks' records. */
#ifndef WEIR_ANALYZE_RANKS_RANK_VERDICT_H
#define WEIR_ANALYZE_RANKS_RANK_VERDICT_H

#include "analyze/causes/diagnosis.h"
#include "analyze/causes/thresholds.h"
#include "analyze/ranks/rank_record.h"

#include <stdbool.h>
#include <stdio.h>

enum weir_rank_presence {
    WEIR_RANK_REPORTED,
    WEIR_RANK_BEHIND, /* alive, but its last record is older than this table */
    WEIR_RANK_ENDED,  /* it has reported its end, before this table */
    WEIR_RANK_DIED,   /* its process does not exist any more */
    WEIR_RANK_SILENT, /* it has stopped reporting */
    WEIR_RANK_NEVER,  /* it has never reported */
    WEIR_RANK_LOG,    /* its log cannot be used; the rank's `why` is the reason */
};

struct weir_rank {
    int rank, pid;
    char host[WEIR_RANK_HOST];
    enum weir_rank_presence presence;
    double quiet_s;                        /* time without a report, for SILENT and NEVER */
    char why[200];                         /* for LOG */
    int epoch;                             /* last epoch that it has reported; 0 = none */
    const struct weir_rank_record *record; /* to compare; NULL = none, or too old */
};

/* The slow ranks of earlier tables, to tell a slow rank from loading that is too slow on all ranks. */
enum { WEIR_RANK_TABLES = 16 };
struct weir_rank_history {
    int n;
    int slow[WEIR_RANK_TABLES];         /* the slow rank; -1 = none */
    double data_wait[WEIR_RANK_TABLES]; /* the ranks' median data wait, as a fraction of the step */
};
void weir_rank_history_add(struct weir_rank_history *history, int slow, double data_wait);

enum weir_rank_finding {
    WEIR_RANKS_FEW,      /* fewer than two ranks have reported */
    WEIR_RANKS_EVEN,     /* no rank is slow */
    WEIR_RANKS_SLOW,     /* one rank is slow */
    WEIR_RANKS_CHANGING, /* another rank is slow each time: loading is too slow on all ranks */
};

struct weir_rank_verdict {
    enum weir_rank_finding finding;
    const struct weir_rank *slow;      /* for SLOW and CHANGING */
    struct weir_diagnosis_cause cause; /* of the slow rank; who: its stage with the largest excess */
    bool synchronous;                  /* all ranks' steps take about equally long: one rank can hold the others up */
    bool blind;                        /* EVEN: a rank's slow step would not be visible */
    int reported, changing;            /* ranks with a record; different slow ranks in the latest tables */
    double step_s, step_skew;          /* median step, and the longest one divided by it */
    double excess_s;                   /* time per step that the slow rank needs more than the others' median */
    double data_s, others_data_s; /* data wait per step of the slow rank, and the others' median; EVEN: median twice */
    double own_s, others_own_s;   /* own time in the step likewise; -1 = unknown */
    double data_wait;             /* median data wait as a fraction of the step */
    enum weir_data_bound bound;   /* by data_wait */
};

/* Borrows ranks. history may be NULL; the caller adds the result to it. */
void weir_rank_verdict_make(struct weir_rank_verdict *verdict, const struct weir_rank *ranks, int n,
                            const struct weir_rank_history *history);

/* Prints the verdict, the ranks without a report and the table: median, worst and skew of each stage, and the worst
 * rank and its host. The columns fit the width of the output. */
void weir_rank_table_print(FILE *out, const struct weir_rank_verdict *verdict, const struct weir_rank *ranks, int n);
/* Writes the verdict and the ranks without a report, one line each, however long. */
void weir_rank_verdict_lines(FILE *out, const struct weir_rank_verdict *verdict, const struct weir_rank *ranks, int n);
/* Writes the same figures into the open object. */
void weir_rank_table_json(struct weir_json *json, const struct weir_rank_verdict *verdict,
                          const struct weir_rank *ranks, int n);
/* Writes a sentence about a rank that has not reported, such as "rank 3 on node2 (PID 77) has not reported since epoch
 * 4 (30 s)". Returns false for a rank that has. */
bool weir_rank_missing_text(const struct weir_rank *rank, char *text, size_t size);

#endif
