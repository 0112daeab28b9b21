/* review.h: faults of a dataset that loading its frames does not show: tables that disagree, rows and pictures of
 * videos that do not match, statistics that are not those of the data. */
#ifndef WEIR_DATASETS_REVIEW_H
#define WEIR_DATASETS_REVIEW_H

#include "weir/dataset.h"

enum weir_review_kind {
    WEIR_REVIEW_TABLES,  /* tables that disagree */
    WEIR_REVIEW_VIDEO,   /* a video whose pictures do not match the rows */
    WEIR_REVIEW_NUMBERS, /* a number that is not finite, in a column that loading does not check */
    WEIR_REVIEW_STATS,   /* statistics that do not fit the data */
    WEIR_REVIEW_MISSING, /* something that other programs need; not a fault */
    WEIR_REVIEW_KINDS
};

/* Valid only during the call. */
struct weir_reviewed {
    enum weir_review_kind kind;
    const char *part; /* "episode 3/observation.images.top" or "meta/stats.json"; NULL = the dataset */
    int64_t t;        /* row of the episode; -1 = none */
    const char *why;
};

/* Returns 0, or a negative code, which ends the review. */
typedef int weir_review_fn(void *user, const struct weir_reviewed *reviewed);

/* Reviews a file of the dataset, which is reopened. Episodes that cannot be opened are left out, because opening the
 * dataset reports them. episodes: as in weir_dataset_config. Only LeRobot datasets are reviewed; others always pass.
 * Returns 0 whatever is found; the callback's negative result; or a negative code with err (without the path) if the
 * review is not possible. Thread-safe. */
int weir_dataset_review(const struct weir_dataset *dataset, int file, const char *episodes, weir_review_fn *found,
                        void *user, struct weir_err *err);

/* Returns whether the dataset describes the size of a camera's encoded images. Videos are reviewed above. */
bool weir_dataset_described_size(const struct weir_dataset *dataset, int camera, int *width, int *height);

#endif
