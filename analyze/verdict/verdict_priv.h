/* verdict_priv.h: shared by the files that make a verdict. verdict.c applies the rules (verdict_rules.c,
 * verdict_storage.c, verdict_server.c, verdict_consumer.c), which write the sentences and predict the gains
 * (verdict_gain.c), sorts the causes and collects advice (verdict_advice.c). verdict_print.c only writes the result. */
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

/* What the rules see, and what they find. */
struct weir_verdict_case {
    const struct weir_loader_report *report;
    struct weir_verdict *verdict;
    const struct weir_demands *demands; /* the verdict's */
    uint64_t found;                     /* WEIR_CAUSE_BIT of the causes found so far */
    uint64_t explanations; /* of these, the ones that only explain others, and must therefore follow them */
    bool doubts_all;       /* WEIR_CAUSE_CANNOT_TELL is about the whole report */
    struct weir_change without[WEIR_CAUSES]; /* the run without the cause; WEIR_NO_CHANGE: unknown */
};

struct weir_verdict_rule {
    uint64_t excluded_by; /* WEIR_CAUSE_BIT of causes that make this rule unnecessary */
    void (*find)(struct weir_verdict_case *c);
};

/* Returns rule i in the order of evaluation, or NULL after the last one. */
const struct weir_verdict_rule *weir_verdict_rule_at(int i);

/* Appends a cause without text, and predicts its gain: that of the change, or none if it is NULL. A cause that was
 * found before remains as it is; the result, never NULL, is then ignored. */
struct weir_diagnosis_cause *weir_verdict_add(struct weir_verdict_case *c, enum weir_cause cause, double share,
                                              const struct weir_change *without);

void weir_rule_cold(struct weir_verdict_case *c);
void weir_rule_server(struct weir_verdict_case *c);
void weir_rule_slow_camera(struct weir_verdict_case *c);
void weir_rule_slow_file(struct weir_verdict_case *c);
void weir_rule_tail(struct weir_verdict_case *c);
void weir_rule_storage(struct weir_verdict_case *c);
/* Finds a camera whose images take far longer to decode than those of the others. */
void weir_rule_slow_decoding(struct weir_verdict_case *c);
/* Describes a consumer that does not wait for data, by a trace of its steps if there is one. */
void weir_rule_consumer(struct weir_verdict_case *c);

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
/* Returns the images/s of the epochs after the first, or 0. */
double weir_verdict_later_rate(const struct weir_loader_report *report);
/* If the use of the cores is the first cause, says that they are the limit. */
void weir_verdict_say_cores(struct weir_verdict_case *c);
/* Appends the cores that other processes use, if they matter. */
void weir_verdict_say_others(const struct weir_verdict_case *c, struct weir_diagnosis_cause *cause);

/* ---- gains ---- */

/* Returns the predicted images/s after the change over the current images/s. Sets *limit, unless NULL, to the resource
 * that is then the limit. */
double weir_verdict_predict(const struct weir_verdict *verdict, const struct weir_change *change,
                            enum weir_resource *limit);

/* These functions describe changes. This one reduces an image's CPU time and the time that a worker sleeps for it. */
struct weir_change weir_change_cheaper(const struct weir_demands *d, double cpu_saved_s, double asleep_saved_s);
struct weir_change weir_change_more_workers(const struct weir_demands *d);
/* All usable cores, with a worker on each. If there are as many workers already, one more of both. */
struct weir_change weir_change_free_cores(const struct weir_demands *d);
/* Return the seconds per image that workers spend computing, and those that they spend asleep or waiting for the HDF5
 * helper process. */
double weir_demands_worker_cpu_s(const struct weir_demands *d);
double weir_demands_asleep_s(const struct weir_demands *d);

/* ---- advice ---- */

/* Fills in the advice: first for the causes, in their order, then for unused capabilities of the machine, by gain. */
void weir_verdict_advise(struct weir_verdict_case *c);

#endif
