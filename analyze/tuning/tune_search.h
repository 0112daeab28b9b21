/* tune_search.h: finds the settings of a loader for a machine, with few measurements.
 *
 * What measures a setting is handed in, so the search itself has no clock, no files and no processes:
 *
 *     struct weir_tune tune = {.space = ..., .measure = measure, .user = &machine};
 *     int rc = weir_tune_run(&tune, &err);
 *     if (tune.chosen >= 0) ... tune.candidates[tune.chosen].setting ...
 *     weir_tune_free(&tune);
 *
 * The bounds of the first measurement (demands.h) decide what need not be tried; what is left is measured one by one,
 * and the finalists in rounds (tune_priv.h). docs/tune.md has the rules. One thread. */
#ifndef WEIR_ANALYZE_TUNING_TUNE_SEARCH_H
#define WEIR_ANALYZE_TUNING_TUNE_SEARCH_H

#include "analyze/prediction/demands.h"
#include "analyze/trials/candidate.h"
#include "weir/base.h"

#include <stdbool.h>

enum { WEIR_TUNE_NAMES = 8, WEIR_TUNE_CANDIDATES = 96, WEIR_TUNE_AUTO = -1 };

struct weir_tune_setting {
    int workers;
    int prefetch;        /* 0 = as the program chooses */
    int engine, decoder; /* numbers in the space; WEIR_TUNE_AUTO = as the program chooses */
    int depth;           /* of an engine that has one; 0 = as the program chooses */
    double cache_bytes;
};

/* What may be tried. */
struct weir_tune_space {
    int cores;       /* that may be used; the first measurement has so many workers */
    int workers_max; /* at least cores, unless they are limited */
    int prefetch_max;
    int n_engines, n_decoders; /* the simplest engine first */
    const char *engines[WEIR_TUNE_NAMES], *decoders[WEIR_TUNE_NAMES];
    bool maps[WEIR_TUNE_NAMES]; /* of engines: what they read of files counts as the process's memory */
    bool deep[WEIR_TUNE_NAMES]; /* and these have a depth */
    double file_bytes;          /* of the dataset */
    double cache_max;           /* bytes that the decode cache may take; 0 = there is none */
    double memory_max;          /* bytes, of the process; 0 = no limit */
    double cpu_max;             /* cores, of the process and its helpers; 0 = no limit */
};

/* Of one measurement. */
struct weir_tune_figures {
    struct weir_trial trial; /* seconds, images_per_s, cpu_s, peak_bytes, workers, prefetch */
    struct weir_demands demands;
    int engine, decoder; /* what was used */
    double slot_bytes;   /* of a batch in memory */
    double worker_bytes; /* what one more worker takes, about */
    double frames_bytes; /* a decode cache that keeps all frames */
    double epoch_images; /* frames that fill it; 0 = not known */
};

/* 0; -EINTR and -ETIME end the search with what is known so far, -ENOMEM too; else the setting has failed with err. */
typedef int weir_tune_measure(void *user, const struct weir_tune_setting *setting, struct weir_tune_figures *figures,
                              struct weir_err *err);
/* A line about what was done, and why; lent until it returns. */
typedef void weir_tune_say(void *user, const char *line);

struct weir_tune_candidate {
    struct weir_tune_setting setting;
    struct weir_candidate measured; /* its turns, and why there are no more: it failed, or passed a limit */
    struct weir_demands demands;    /* of its last turn */
    bool finalist;
};

enum weir_tune_end { WEIR_TUNE_DONE, WEIR_TUNE_TIME, WEIR_TUNE_INTERRUPTED, WEIR_TUNE_FAILED };

struct weir_tune {
    struct weir_tune_space space;
    weir_tune_measure *measure;
    weir_tune_say *say; /* may be NULL */
    void *user;

    struct weir_tune_candidate candidates[WEIR_TUNE_CANDIDATES];
    int n;
    int base;            /* number of the candidate that the search goes on from */
    int chosen, fastest; /* numbers of candidates; -1 = none was measured */
    bool disturbed;      /* other processes used cores during a turn */
    int trials, rounds;  /* measured; of them rounds of finalists */
    double one_rate;     /* images/s with one worker; 0 = not measured */
    double limit_rate;   /* images/s that no setting can pass: the step, the HDF5 library, the bus; 0 = not known */
    double noise;        /* of the fastest: least to most of its turns in rounds, over the median; 0 = not known */
    struct weir_interval ratio;    /* of the chosen one to the fastest; n 0 = it is the fastest */
    struct weir_tune_figures look; /* of the first measurement */
    enum weir_tune_end end;
};

/* 0 with a choice; -ENODATA when nothing could be measured within the limits (err: why), -EINTR, -ETIME or -ENOMEM when
 * it ended before. tune->chosen is the best so far all the same. */
int weir_tune_run(struct weir_tune *tune, struct weir_err *err);
void weir_tune_free(struct weir_tune *tune);

/* Below 0: a is cheaper than b: fewer workers, then less prefetch, a smaller cache, an earlier engine, decoder, depth.
 */
int weir_tune_compare(const struct weir_tune_setting *a, const struct weir_tune_setting *b);
/* "workers 4, prefetch 2, mmap, turbo" */
void weir_tune_describe(const struct weir_tune_space *space, const struct weir_tune_setting *setting, char *text,
                        size_t size);
/* images/s that this many workers can give at most; INFINITY = not known. */
double weir_tune_ceiling(const struct weir_tune *tune, int workers);

#endif
