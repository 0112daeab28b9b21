/* verdict_priv.h: shared by the files that make a verdict. verdict.c applies the rules (verdict_rules.c,
 * verdict_storage.c), predicts gains (verdict_gain.c), sorts the causes and collects advice (verdict_advice.c).
 * verdict_text.c, verdict_print.c and verdict_json.c only write the result. */
#ifndef WEIR_ANALYZE_VERDICT_VERDICT_PRIV_H
#define WEIR_ANALYZE_VERDICT_VERDICT_PRIV_H

#include "analyze/verdict/verdict.h"

/* ---- rules ---- */

#define WEIR_CAUSE_BIT(cause) (UINT64_C(1) << WEIR_CAUSE_##cause)
/* Causes that leave the run fewer cores. */
#define WEIR_CAUSES_TAKERS                                                                                             \
    (WEIR_CAUSE_BIT(QUOTA) | WEIR_CAUSE_BIT(HOST) | WEIR_CAUSE_BIT(NEIGHBOURS) | WEIR_CAUSE_BIT(TOO_MANY_WORKERS))
/* Causes that name the work of the cores. */
#define WEIR_CAUSES_COMPUTE                                                                                            \
    (WEIR_CAUSE_BIT(DECODE) | WEIR_CAUSE_BIT(INFLATE) | WEIR_CAUSE_BIT(CONVERT) | WEIR_CAUSE_BIT(READ_CPU) |           \
     WEIR_CAUSE_BIT(OTHER_CPU))
/* Causes that make the workers the limit, with and without idle cores. */
#define WEIR_CAUSES_WORKERS (WEIR_CAUSE_BIT(TOO_FEW_WORKERS) | WEIR_CAUSE_BIT(BUSY_WORKERS))
#define WEIR_CAUSES_SERIAL  (WEIR_CAUSE_BIT(LIBRARY) | WEIR_CAUSE_BIT(GPU_DECODER) | WEIR_CAUSE_BIT(BUS))
#define WEIR_CAUSES_STORAGE                                                                                            \
    (WEIR_CAUSE_BIT(STORAGE) | WEIR_CAUSE_BIT(STORAGE_BANDWIDTH) | WEIR_CAUSE_BIT(STORAGE_LATENCY) |                   \
     WEIR_CAUSE_BIT(STORAGE_TAIL) | WEIR_CAUSE_BIT(SLOW_CAMERA) | WEIR_CAUSE_BIT(SLOW_FILE) | WEIR_CAUSES_SERVER)
#define WEIR_CAUSES_SERVER                                                                                             \
    (WEIR_CAUSE_BIT(FEW_IN_FLIGHT) | WEIR_CAUSE_BIT(SERVER_LATENCY) | WEIR_CAUSE_BIT(SERVER_BANDWIDTH) |               \
     WEIR_CAUSE_BIT(SERVER_LIMIT))

/* Input of the rules. */
struct weir_verdict_case {
    const struct weir_loader_report *report;
    const struct weir_demands *demands;
    const struct weir_verdict_facts *facts;
    double wait;    /* fraction of training time spent waiting for data */
    uint64_t found; /* WEIR_CAUSE_BIT of the causes found so far */
};

struct weir_verdict_rule {
    enum weir_cause cause;
    uint64_t excluded_by; /* WEIR_CAUSE_BIT of causes that make this rule unnecessary */
    /* Returns whether the rule applies. Fills in share and evidence, and can replace the cause by a more specific one.
     */
    bool (*applies)(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
};

/* Returns rule i in the order of evaluation, or NULL after the last one. */
const struct weir_verdict_rule *weir_verdict_rule_at(int i);

bool weir_rule_cold(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
bool weir_rule_server(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
bool weir_rule_slow_camera(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
bool weir_rule_slow_file(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
bool weir_rule_tail(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
bool weir_rule_storage(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
/* Applies if one camera's images take far longer to decode than those of the other cameras. */
bool weir_rule_slow_decoding(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);

/* Whether a run with more workers was measured and gained nothing. */
bool weir_verdict_workers_refuted(const struct weir_verdict_facts *facts);
/* Whether the workers sleep in reads, or whether reads take most of the time of the few tasks for which batches wait.
 */
bool weir_verdict_waits_for_reads(const struct weir_verdict_case *c);
/* Returns whether a few slow reads take most of the reading time. */
bool weir_verdict_is_tail(const struct weir_loader_report *report);
/* Returns the index of a camera whose images are far slower to decode than others and take much of the decoding time,
 * or -1. Sets *share to its part of the decoding time, and *others_s to the median of the other cameras. */
int weir_verdict_heavy_camera(const struct weir_report_sources *sources, double *share, double *others_s);

/* Describes a consumer whose GPU is not busy, using the trace of its steps. Returns false if there is no trace or it
 * shows no reason. */
bool weir_verdict_idle(struct weir_verdict_cause *cause, const struct weir_loader_report *report);
void weir_verdict_say_idle(FILE *out, const struct weir_loader_report *report);
/* Prints "the training step is the limit", with the name of the step: validation, or a simulated step. */
void weir_verdict_say_step(FILE *out, const struct weir_loader_report *report);

/* ---- gains ---- */

/* Returns the predicted images/s after the change over the current images/s. Sets *limit, unless NULL, to the resource
 * that is then the limit. */
double weir_verdict_predict(const struct weir_verdict *verdict, const struct weir_change *change,
                            enum weir_resource *limit);
/* Returns the predicted images/s without the cause over the current images/s; 0 = no prediction. */
double weir_verdict_gain(const struct weir_verdict *verdict, const struct weir_verdict_cause *cause,
                         const struct weir_loader_report *report);

/* These functions describe changes. This one reduces an image's CPU time and the time that a worker sleeps for it. */
struct weir_change weir_change_cheaper(const struct weir_demands *d, double cpu_saved_s, double asleep_saved_s);
struct weir_change weir_change_more_workers(const struct weir_demands *d);
/* All usable cores, with a worker on each. If there are as many workers already, one more of both. */
struct weir_change weir_change_free_cores(const struct weir_demands *d);
/* Gives the process all usable cores. For a quota: doubles it. For the host: removes the stolen part of the CPU time.
 */
struct weir_change weir_change_no_taker(const struct weir_demands *d, const struct weir_verdict_cause *cause,
                                        const struct weir_loader_report *report);
/* Makes the slow camera or file as fast as the others. */
/* Workers that no longer wait for requests to a server. */
struct weir_change weir_change_no_server(const struct weir_demands *d, const struct weir_loader_report *report);
/* Returns the number of requests in flight that gives this ratio of images/s to those now. Lowers the ratio to what the
 * largest number gives. */
int weir_verdict_in_flight(const struct weir_verdict *verdict, const struct weir_loader_report *report, double *ratio);
struct weir_change weir_change_no_slow_source(const struct weir_demands *d, const struct weir_verdict_cause *cause);
/* Return the seconds per image that workers spend computing, and those that they spend asleep or waiting for the HDF5
 * helper process. */
double weir_demands_worker_cpu_s(const struct weir_demands *d);
double weir_demands_asleep_s(const struct weir_demands *d);

/* ---- advice ---- */

/* Fills in the advice: first for the causes, in their order, then for unused capabilities of the machine, by gain. */
void weir_verdict_advise(struct weir_verdict *verdict, const struct weir_loader_report *report);

/* ---- sentences ---- */

/* Writes one sentence about a cause, without the full stop. */
void weir_verdict_sentence(char *text, size_t size, const struct weir_verdict *verdict,
                           const struct weir_verdict_cause *cause, const struct weir_loader_report *report);

#endif
