/* verdict_priv.h: the parts of a verdict. Calls go one way: verdict.c applies the rules (verdict_rules.c,
 * verdict_storage.c), predicts gains (verdict_gain.c), sorts the causes and asks for advice (verdict_advice.c);
 * verdict_text.c, verdict_print.c and verdict_json.c only write. */
#ifndef WEIR_ANALYZE_VERDICT_VERDICT_PRIV_H
#define WEIR_ANALYZE_VERDICT_VERDICT_PRIV_H

#include "analyze/verdict/verdict.h"

/* ---- rules ---- */

#define WEIR_CAUSE_BIT(cause) (1u << WEIR_CAUSE_##cause)
/* Causes that leave fewer cores to the run. */
#define WEIR_CAUSES_TAKERS                                                                                             \
    (WEIR_CAUSE_BIT(QUOTA) | WEIR_CAUSE_BIT(HOST) | WEIR_CAUSE_BIT(NEIGHBOURS) | WEIR_CAUSE_BIT(TOO_MANY_WORKERS))
/* Work of the cores. */
#define WEIR_CAUSES_COMPUTE                                                                                            \
    (WEIR_CAUSE_BIT(DECODE) | WEIR_CAUSE_BIT(INFLATE) | WEIR_CAUSE_BIT(CONVERT) | WEIR_CAUSE_BIT(READ_CPU) |           \
     WEIR_CAUSE_BIT(OTHER_CPU))
#define WEIR_CAUSES_SERIAL (WEIR_CAUSE_BIT(LIBRARY) | WEIR_CAUSE_BIT(GPU_DECODER) | WEIR_CAUSE_BIT(BUS))
#define WEIR_CAUSES_STORAGE                                                                                            \
    (WEIR_CAUSE_BIT(STORAGE) | WEIR_CAUSE_BIT(STORAGE_BANDWIDTH) | WEIR_CAUSE_BIT(STORAGE_LATENCY) |                   \
     WEIR_CAUSE_BIT(STORAGE_TAIL) | WEIR_CAUSE_BIT(SLOW_CAMERA) | WEIR_CAUSE_BIT(SLOW_FILE))

/* Input of the rules. */
struct weir_verdict_case {
    const struct weir_loader_report *report;
    const struct weir_demands *demands;
    const struct weir_verdict_facts *facts; /* may be NULL */
    double wait;                            /* of training, 0..1 */
    unsigned found;                         /* WEIR_CAUSE_BIT of the rules that applied so far */
};

struct weir_verdict_rule {
    enum weir_cause cause;
    unsigned excluded_by; /* WEIR_CAUSE_BIT of causes that make this one unnecessary */
    /* Whether the rule applies; fills in share and evidence, and may refine the cause. */
    bool (*applies)(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
};

/* Rule i, in the order of evaluation; NULL past the end. */
const struct weir_verdict_rule *weir_verdict_rule_at(int i);

bool weir_rule_cold(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
bool weir_rule_slow_camera(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
bool weir_rule_slow_file(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
bool weir_rule_tail(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
bool weir_rule_storage(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);
/* A camera whose images take far longer to decode than the others'. */
bool weir_rule_slow_decoding(const struct weir_verdict_case *c, struct weir_verdict_cause *cause);

/* Few slow reads take most of the reading time. */
bool weir_verdict_is_tail(const struct weir_loader_report *report);
/* Index of the camera that takes most of all decoding, or -1; *share: its fraction, *others_s: the others' median. */
int weir_verdict_heavy_camera(const struct weir_report_sources *sources, double *share, double *others_s);

/* The consumer of a GPU that is not busy, from the trace of its steps. False: no trace, or it shows no reason. */
bool weir_verdict_idle(struct weir_verdict_cause *cause, const struct weir_loader_report *report);
void weir_verdict_say_idle(FILE *out, const struct weir_loader_report *report);

/* ---- gains ---- */

/* Predicted images/s after the change over those now; *limit, unless NULL, gets the resource that limits it then. */
double weir_verdict_predict(const struct weir_verdict *verdict, const struct weir_change *change,
                            enum weir_resource *limit);
/* Predicted images/s without the cause over those now; 0 = no prediction. */
double weir_verdict_gain(const struct weir_verdict *verdict, const struct weir_verdict_cause *cause,
                         const struct weir_loader_report *report);

/* Changes: an image costs this much less CPU time, and a worker sleeps this much less for it. */
struct weir_change weir_change_cheaper(const struct weir_demands *d, double cpu_saved_s, double asleep_saved_s);
struct weir_change weir_change_more_workers(const struct weir_demands *d);
/* The process has all usable cores; of a quota: twice the quota; of the host: its CPU time without the stolen part. */
struct weir_change weir_change_no_taker(const struct weir_demands *d, const struct weir_verdict_cause *cause,
                                        const struct weir_loader_report *report);
/* The camera or file is as fast as the others. */
struct weir_change weir_change_no_slow_source(const struct weir_demands *d, const struct weir_verdict_cause *cause);
/* CPU seconds of an image on the workers, and seconds asleep or waiting for the HDF5 helper process. */
double weir_demands_worker_cpu_s(const struct weir_demands *d);
double weir_demands_asleep_s(const struct weir_demands *d);

/* ---- advice ---- */

/* Fills in the advice: for the causes in their order, then unused capabilities of the machine by their gain. */
void weir_verdict_advise(struct weir_verdict *verdict, const struct weir_loader_report *report);

/* ---- text ---- */

/* One sentence for a cause, without the period. */
void weir_verdict_sentence(char *text, size_t size, const struct weir_verdict *verdict,
                           const struct weir_verdict_cause *cause, const struct weir_loader_report *report);
const char *weir_advice_name(enum weir_advice_kind kind);

#endif
