/* findings.h: what was found of the frames of one camera in one episode, collected in any order and reported in that of
 * the frames. */
#ifndef WEIR_PIPELINE_VERIFY_FINDINGS_H
#define WEIR_PIPELINE_VERIFY_FINDINGS_H

#include "pipeline/verify/verify.h"

/* Frames in a row with the same fault. */
struct weir_found_run {
    int t, frames;
    enum weir_finding_kind kind;
    char *why; /* owned */
};

struct weir_found_list {
    struct weir_found_run *runs;
    int n, capacity;
};

/* Joins it to the last one where that ends before t and says the same. 0 or -ENOMEM. */
int weir_found_add(struct weir_found_list *list, int t, enum weir_finding_kind kind, const char *why);
/* Moves all of from to the end of list. 0, or -ENOMEM and nothing is moved. */
int weir_found_move(struct weir_found_list *list, struct weir_found_list *from);
void weir_found_free(struct weir_found_list *list);

/* Adds pictures that repeat, by the hashes of steps frames, 0 where a frame is bad. 0 or -ENOMEM. */
int weir_found_repeats(struct weir_found_list *list, const uint64_t *hashes, int steps, int repeat_steps);

/* Adds frames of which chunks were never written. 0 or -ENOMEM. */
int weir_found_fill(struct weir_found_list *list, const struct weir_dataset *dataset, int episode, int camera);

/* Orders the list by t, joins what came apart, and reports it. */
void weir_found_report(struct weir_found_list *list, const struct weir_dataset *dataset, int episode, int camera,
                       const struct weir_verify_config *config, struct weir_verify_totals *totals);

/* Reports one, whose text is made here: "FILE: DATASET[t]: why". */
void weir_finding_report(struct weir_finding *finding, const struct weir_verify_config *config,
                         struct weir_verify_totals *totals);

/* Reports dimensions with one value only. 0 or -ENOMEM. */
int weir_found_dimensions(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                          struct weir_verify_totals *totals);
/* Reports values of state and actions that are far from all others of their dimension: a line per episode and dimension
 * (outliers.c). 0 or -ENOMEM. */
int weir_found_outliers(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                        struct weir_verify_totals *totals);

#endif
