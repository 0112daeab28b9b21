/* tune_search.h: finds the best loader settings for a machine, with few measurements.
 *
 * The caller provides the measuring function, so the search itself uses no clock, files or processes:
 *
 *     struct weir_tune tune = {.space = ..., .measure = measure, .user = &machine};
 *     int rc = weir_tune_run(&tune, &err);
 *     if (tune.chosen >= 0) ... tune.candidates[tune.chosen].setting ...
 *     weir_tune_free(&tune);
 *
 * The bounds of the first measurement (demands.h) exclude settings that cannot help. The others are measured one by
 * one, and the finalists in rounds. docs/tune.md has the rules. One thread. */
#ifndef WEIR_ANALYZE_TUNING_TUNE_SEARCH_H
#define WEIR_ANALYZE_TUNING_TUNE_SEARCH_H

#include "analyze/prediction/demands.h"
#include "analyze/trials/candidate.h"
#include "weir/base.h"

#include <stdbool.h>

enum { WEIR_TUNE_NAMES = 8, WEIR_TUNE_CANDIDATES = 96, WEIR_TUNE_AUTO = -1 };

struct weir_tune_setting {
    int workers;
    int prefetch;        /* 0 = automatic */
    int engine, decoder; /* indices into the space, or WEIR_TUNE_AUTO */
    int depth;           /* of an engine with a depth; 0 = automatic */
    double cache_bytes;
};

/* The search space. */
struct weir_tune_space {
    int cores;       /* usable; also the number of workers of the first measurement */
    int workers_max; /* at least cores, unless these are limited */
    int prefetch_max;
    int n_engines, n_decoders; /* the simplest engine first */
    const char *engines[WEIR_TUNE_NAMES], *decoders[WEIR_TUNE_NAMES];
    bool maps[WEIR_TUNE_NAMES]; /* engines whose reads count as resident memory */
    bool deep[WEIR_TUNE_NAMES]; /* engines with a depth */
    double file_bytes;          /* of the dataset */
    double cache_max;           /* bytes of the decode cache; 0 = no cache */
    double memory_max;          /* bytes, of the process; 0 = no limit */
    double cpu_max;             /* cores, of the process and its helpers; 0 = no limit */
};

/* Figures of one measurement. */
struct weir_tune_figures {
    struct weir_trial trial; /* its round is set by the search */
    struct weir_demands demands;
    int engine, decoder; /* used ones, as in the setting */
    double slot_bytes;   /* of a batch in memory */
    double worker_bytes; /* approximate memory of one more worker */
    double frames_bytes; /* of a decode cache for all frames */
    double epoch_images; /* frames that fill that cache; 0 = not known */
};

/* Measures a setting. 0; -EINTR, -ETIME and -ENOMEM end the search with its result so far; after other errors the
 * candidate drops out with err. */
typedef int weir_tune_measure(void *user, const struct weir_tune_setting *setting, struct weir_tune_figures *figures,
                              struct weir_err *err);
/* Receives a line about a step and its reason; borrowed during the call. */
typedef void weir_tune_say(void *user, const char *line);

struct weir_tune_candidate {
    struct weir_tune_setting setting;
    struct weir_candidate measured; /* its trials; why: it failed, or passed a limit */
    struct weir_demands demands;    /* of its last trial */
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
    int base;            /* index of the candidate that further settings start from */
    int chosen, fastest; /* indices of candidates; -1 = none was measured */
    bool disturbed;      /* other processes used cores during a trial */
    int trials, rounds;  /* rounds: of finalists */
    double one_rate;     /* images/s with one worker; 0 = not measured */
    double limit_rate;   /* images/s that no setting exceeds: the step, the HDF5 library, the bus; 0 = not known */
    double noise;        /* of the fastest: (max - min) / median of its trials in rounds; 0 = not known */
    struct weir_interval ratio;    /* of the chosen one to the fastest; n 0 = it is the fastest */
    struct weir_tune_figures look; /* of the first measurement */
    enum weir_tune_end end;
};

/* Runs the search. 0 with a choice; -ENODATA when nothing could be measured within the limits (err: why); -EINTR,
 * -ETIME or -ENOMEM when it ended early, and tune->chosen is the best so far. */
int weir_tune_run(struct weir_tune *tune, struct weir_err *err);
void weir_tune_free(struct weir_tune *tune);

/* Negative when a is cheaper than b: fewer workers, then less prefetch, a smaller cache, an earlier engine, decoder,
 * depth. */
int weir_tune_compare(const struct weir_tune_setting *a, const struct weir_tune_setting *b);
/* Writes "workers 4, prefetch 2, mmap, turbo". */
void weir_tune_describe(const struct weir_tune_space *space, const struct weir_tune_setting *setting, char *text,
                        size_t size);
/* Max images/s with this many workers; INFINITY = not known. */
double weir_tune_ceiling(const struct weir_tune *tune, int workers);

#endif
