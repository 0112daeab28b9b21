/* verdict_priv.h: the parts of a verdict. */
#ifndef WEIR_ANALYZE_VERDICT_VERDICT_PRIV_H
#define WEIR_ANALYZE_VERDICT_VERDICT_PRIV_H

#include "analyze/verdict/verdict.h"

/* Adds a cause behind those that are there, once; no more than there is room for: then what is returned is written in
 * vain. */
struct weir_found *weir_verdict_add(struct weir_verdict *verdict, enum weir_cause cause, double share);

/* Adds what storage does to the run: which of its causes, when the workers sleep in reads. False: they do not. */
bool weir_verdict_storage(struct weir_verdict *verdict, const struct weir_loader_report *report);
/* Few slow reads take most of the time of all. */
bool weir_verdict_is_tail(const struct weir_loader_report *report);
/* Adds the camera whose images take far longer to decode than the others' and most of all decoding. False: there is
 * none. */
bool weir_verdict_slow_decoding(struct weir_verdict *verdict, const struct weir_loader_report *report);
/* That camera's number, or -1; share: its part of all decoding, others_s: the median image of the others. */
int weir_verdict_heavy_camera(const struct weir_report_sources *sources, double *share, double *others_s);
/* The first epoch was read from storage, and those after it are faster. */
bool weir_verdict_cold(struct weir_verdict *verdict, const struct weir_loader_report *report);

/* The consumer of a GPU that is not busy, by the trace of its steps. False: there is none, or it shows no cause. */
bool weir_verdict_idle(struct weir_found *found, const struct weir_loader_report *report);
void weir_verdict_say_idle(FILE *out, const struct weir_loader_report *report, bool zh);

/* Fills the advices, best first, from the causes. */
void weir_verdict_advise(struct weir_verdict *verdict, const struct weir_loader_report *report);

/* One sentence of a cause, and what an advice is called. */
void weir_verdict_sentence(char *text, size_t size, const struct weir_verdict *verdict, const struct weir_found *found,
                           const struct weir_loader_report *report, enum weir_lang lang);
void weir_verdict_advice_text(char *text, size_t size, const struct weir_advice *advice, enum weir_lang lang);

#endif
