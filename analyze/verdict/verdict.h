/* verdict.h: determines from a run's report what limits the run, the evidence for it, and what would help.
 *
 *     struct weir_verdict verdict;
 *     weir_verdict_make(&verdict, report, NULL);
 *     weir_verdict_print(stdout, &verdict, report);
 *
 * A verdict depends only on the report, so a report that is read back from a log gets the same verdict.
 * docs/internals/verdict.md explains the rules, the thresholds, and how similar causes are distinguished. These
 * functions read no clock and no file. They can be called on any thread. */
#ifndef WEIR_ANALYZE_VERDICT_VERDICT_H
#define WEIR_ANALYZE_VERDICT_VERDICT_H

#include "analyze/causes/diagnosis.h"
#include "analyze/causes/thresholds.h"
#include "analyze/prediction/demands.h"
#include "analyze/prediction/model.h"
#include "analyze/verdict/stage_advice.h"
#include "weir/base.h"
#include "weir/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Fractions of training time. They add up to 1. */
struct weir_step_shares {
    bool known;
    double wait, forward, backward, optimiser;
    double release; /* of the batch, by a loop of weir run; 0 with a GPU, which computes meanwhile */
    double unattributed;
    double backward_over_forward; /* usually 1 to 2; 0 = no backward pass was timed */
    bool backward_limits;         /* it is the largest part, and takes longer than usual */
};

/* Measurements from other runs, which a run's own report cannot contain. */
struct weir_verdict_facts {
    double cpu_growth;   /* CPU time per image over that with one worker; 0 = not measured */
    double more_workers; /* images/s with more workers over those of this run; 0 = not measured */
};

struct weir_verdict {
    /* Causes in order of decreasing gain: the first one limits the run most. wait: without the run's first batch. */
    struct weir_diagnosis found;
    struct weir_step_shares shares;
    struct weir_stage_times stages;
    bool decode_rule; /* decoding takes more than 40 % of a sample's time */
    struct weir_verdict_facts facts;
    struct weir_demands demands;
    struct weir_model model; /* predicts gains; can be unknown */
};

/* Makes the verdict of a report. facts can be NULL. */
void weir_verdict_make(struct weir_verdict *verdict, const struct weir_loader_report *report,
                       const struct weir_verdict_facts *facts);

/* If a loader has delivered only validation batches, treats them as training batches, so that it gets a verdict. */
void weir_verdict_judge_validation(struct weir_report_steps *steps);

/* Prints the main cause, further causes, advice, the limits, and the shares of the step, wrapped at the width of the
 * output. They are in English even if the table is in another language. */
void weir_verdict_print(FILE *out, const struct weir_verdict *verdict);
/* Writes the same text with one line per cause, advice and so on, however long, and without colour. */
void weir_verdict_lines(FILE *out, const struct weir_verdict *verdict);

/* Adds the member "verdict" (see docs/internals/log-format.md) to the open JSON object. */
void weir_verdict_json(struct weir_json *json, const struct weir_verdict *verdict);

/* Formats a size for --decode-cache, rounded up: "221M", or "11G" from 10 GiB on; in a sentence "221 MiB", "11 GiB". */
void weir_cache_bytes_text(char text[24], double bytes, bool flag);

/* ---- verdicts with tables and in logs ---- */

/* Adds a verdict to the reports of a loader. Register `addition` with weir_loader_report, and keep the structure at the
 * same address until the last report. */
struct weir_added_verdict {
    struct weir_report_addition addition;
    struct weir_loader *loader_;
    struct weir_verdict verdict_; /* verdict of the report that is being written */
};

/* loader (can be NULL) is borrowed. Its storage is probed if the last report alone does not show why reads are slow. */
void weir_add_verdict(struct weir_added_verdict *added, struct weir_loader *loader);

/* Returns whether the last report's verdict is anything but "cannot tell". Call it after the report was written. */
bool weir_added_verdict_tells(const struct weir_added_verdict *added);
/* Returns the data wait of the last report, as a fraction of the training time; -1 = unknown. */
double weir_added_verdict_wait(const struct weir_added_verdict *added);

/* Print the verdict of a report that was read from a log, and write it as JSON. */
void weir_verdict_of_log(FILE *out, const struct weir_loader_report *report);
void weir_verdict_of_log_json(struct weir_json *json, const struct weir_loader_report *report);

#endif
