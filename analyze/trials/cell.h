/* cell.h: a cell of a grid: one command line of `weir run`, the turns that were measured with it, and what they say. */
#ifndef WEIR_ANALYZE_TRIALS_CELL_H
#define WEIR_ANALYZE_TRIALS_CELL_H

#include "analyze/trials/interval.h"
#include "analyze/trials/turn.h"

#include <stdbool.h>
#include <stddef.h>

/* The values of the grid's options in a cell, as they are typed; "auto" where the program chooses. */
struct weir_cell_settings {
    char num_workers[12], prefetch[12], batch_size[12], io[16], decoder[32], device[16];
};

struct weir_cell {
    int format;        /* of the grid */
    bool cold;         /* every turn begins without the files in the page cache */
    bool limit;        /* bytes come from memory: what other cells are compared with, and none of the results */
    int limit_cell;    /* number of that cell in the grid; -1 = there is none */
    bool default_cell; /* of its format and cache: the first of the grid's settings */
    struct weir_cell_settings settings;
    char **argv;             /* owned; ends with NULL; argv[0] is "weir" */
    struct weir_turn *turns; /* owned; in the order of rounds */
    int n_turns;
    char why[1024]; /* not empty: a turn failed, and there are no more */
};

/* Copies the turn. 0 or -ENOMEM. */
int weir_cell_add(struct weir_cell *cell, const struct weir_turn *turn);
void weir_cell_free(struct weir_cell *cell);

/* A figure of a turn. */
typedef double weir_turn_figure(const struct weir_turn *turn);
weir_turn_figure weir_turn_samples_per_s, weir_turn_images_per_s, weir_turn_cpu_s_per_1000_images,
    weir_turn_bytes_per_image, weir_turn_wait_p99_s, weir_turn_peak_bytes, weir_turn_data_wait, weir_turn_cached,
    weir_turn_others_cores;

/* Of a figure over all turns; turns in which it is not known (negative) are left out. */
void weir_cell_interval(const struct weir_cell *cell, weir_turn_figure *figure, struct weir_interval *interval);
/* The median; -1 when it is not known. */
double weir_cell_median(const struct weir_cell *cell, weir_turn_figure *figure);
/* images/s of cell over those of other, round by round: only rounds in which both had a turn count, so that what slows
 * the machine down for a while slows down both. */
void weir_cell_ratio(const struct weir_cell *cell, const struct weir_cell *other, struct weir_interval *ratio);

/* What two cells are to each other, by the interval of their ratio. */
enum weir_relation {
    WEIR_SLOWER,
    WEIR_SAME,   /* all of the interval is within 3 % of 1; or its median is, 1 is in it, and it ends within 10 % */
    WEIR_UNSURE, /* 1 is in the interval, which is wider, or whose median is further away: noise */
    WEIR_FASTER,
    WEIR_UNKNOWN, /* no round has both */
};
enum weir_relation weir_relation_of(const struct weir_interval *ratio);
/* SAME or UNSURE: what tables call a tie. */
bool weir_relation_is_tie(enum weir_relation relation);
/* What a tie is, and an interval that is narrow enough. */
#define WEIR_CLOSE 0.03

/* The turn whose images/s are nearest to the median; NULL without turns. Its stages are those that are shown. */
const struct weir_turn *weir_cell_typical(const struct weir_cell *cell);

#endif
