/* lerobot_review_priv.h: shared by the files that review a LeRobot dataset. */
#ifndef WEIR_DATASETS_LEROBOT_LEROBOT_REVIEW_PRIV_H
#define WEIR_DATASETS_LEROBOT_LEROBOT_REVIEW_PRIV_H

#include "datasets/lerobot/lerobot_priv.h"

/* ---- lerobot_stats.c ---- */

/* Statistics of one dimension of a column. */
struct weir_lerobot_moments {
    double min, max, mean, squares; /* squares: sum of the squared distances from the mean */
    uint64_t n;
};
/* Statistics of the rows of a column so far. */
struct weir_lerobot_stats {
    enum weir_number_type type;
    int64_t rows, longest;             /* longest: rows of the longest episode */
    bool is_unknown;                   /* some rows are missing or not finite */
    struct weir_lerobot_moments *dims; /* one per number of a row; owned; NULL before the first rows */
};
/* Adds the rows of an episode. Returns 0 or -ENOMEM. *bad: index of the first number that is not finite, or -1. */
int weir_lerobot_stats_add(struct weir_lerobot_stats *stats, const struct weir_lerobot_feature *feature,
                           enum weir_number_type type, const void *values, int64_t rows, int64_t *bad);
void weir_lerobot_stats_close(struct weir_lerobot_stats *stats);

/* ---- lerobot_review.c ---- */

/* The pictures of an episode in a video. */
struct weir_lerobot_span {
    uint32_t part, first, last;
    int64_t episode;
    const struct weir_lerobot_feature *feature;
};

struct weir_lerobot_review {
    struct weir_lerobot *lerobot;
    weir_review_fn *found;
    void *user;
    struct weir_err *err;
    bool is_whole;      /* all episodes of the dataset are wanted */
    bool is_complete;   /* all of them could be opened so far */
    bool is_rate_wrong; /* the rows of an episode do not have the dataset's rate */
    struct weir_tasks tasks;
    struct weir_lerobot_stats *stats; /* per feature; in version 2.1, for each episode */
    size_t n_stats;
    bool *is_reported; /* per feature: its column cannot be read */
    bool *has_line;    /* per episode: it has statistics (version 2.1) */
    int stopped;       /* what the callback returned, if it ended the reading of a file */
    struct weir_lerobot_span *spans;
    size_t n_spans;
    int64_t rows;       /* of the episodes before this one */
    int64_t *part_rows; /* per Parquet file: rows of all its episodes; 0 once they have been compared */
};

/* A column of an episode, as messages name it. */
struct weir_lerobot_place {
    char text[WEIR_LEROBOT_KEY_MAX + 40];
};
struct weir_lerobot_place weir_lerobot_place_of(int64_t episode, const char *key);

/* Calls the callback and returns its result. */
__attribute__((format(printf, 5, 6))) int weir_lerobot_report(const struct weir_lerobot_review *r,
                                                              enum weir_review_kind kind, const char *part, int64_t t,
                                                              const char *format, ...);

/* Reviews the times of an episode's rows, and adds its pictures to the spans. */
int weir_lerobot_review_times(struct weir_lerobot_review *r, const struct weir_lerobot_view *view);
/* Reviews whether the episodes follow each other in their videos. */
int weir_lerobot_review_spans(const struct weir_lerobot_review *r);
/* Compares the recorded statistics with the data. */
int weir_lerobot_review_stats(struct weir_lerobot_review *r);

#endif
