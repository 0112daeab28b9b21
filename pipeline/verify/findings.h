/* findings.h: findings about the frames of one camera in one episode, collected in any order and reported in frame
 * order. */
#ifndef WEIR_PIPELINE_VERIFY_FINDINGS_H
#define WEIR_PIPELINE_VERIFY_FINDINGS_H

#include "pipeline/verify/verify.h"

/* Consecutive frames with the same fault. */
struct weir_finding_run {
    int t, frames;
    enum weir_finding_kind kind;
    char *why; /* owned */
};

struct weir_findings {
    struct weir_finding_run *runs;
    int n, capacity;
};

/* Adds a finding, or extends the last one if it ends before t and has the same text. Returns 0 or -ENOMEM. */
int weir_findings_add(struct weir_findings *list, int t, enum weir_finding_kind kind, const char *why);
/* Moves all of `from` to the end of list. Returns 0, or -ENOMEM and moves nothing. */
int weir_findings_move(struct weir_findings *list, struct weir_findings *from);
void weir_findings_free(struct weir_findings *list);

/* Adds repeated images, by the hashes of all steps (0 for a bad frame). Returns 0 or -ENOMEM. */
int weir_findings_repeats(struct weir_findings *list, const uint64_t *hashes, int steps, int repeat_steps);

/* Adds frames whose chunks were never written. Returns 0 or -ENOMEM. */
int weir_findings_fill(struct weir_findings *list, const struct weir_dataset *dataset, int episode, int camera);

/* Sorts the list by t, merges adjacent runs, and reports it. */
void weir_findings_report(struct weir_findings *list, const struct weir_dataset *dataset, int episode, int camera,
                          const struct weir_verify_config *config, struct weir_verify_totals *totals);

/* Builds the text "FILE: DATASET[t]: why" of one finding and reports it. */
void weir_finding_report(struct weir_finding *finding, const struct weir_verify_config *config,
                         struct weir_verify_totals *totals);

/* Reports a finding about a file, or one dataset in it (NULL: the file as a whole). */
void weir_finding_of_file(enum weir_finding_kind kind, const char *file, const char *dataset, const char *why,
                          const struct weir_verify_config *config, struct weir_verify_totals *totals);

/* Checks every file of a dataset with weir_dataset_check_file, several at a time, and reports damage in file order.
 * Returns 0 regardless of findings; negative on a resource shortage (check_files.c). */
int weir_check_files(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                     struct weir_verify_totals *totals, struct weir_err *err);

/* Reports dimensions with only one value. Returns 0 or -ENOMEM. */
int weir_findings_dimensions(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                             struct weir_verify_totals *totals);
/* Reports state and action values far from all others of their dimension: one line per episode and dimension
 * (outliers.c). Returns 0 or -ENOMEM. */
int weir_findings_outliers(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                           struct weir_verify_totals *totals);

#endif
