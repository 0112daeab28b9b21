/* tune_search.h: finds the best loader settings for a machine with few measurements.
 *
 * The caller provides the measuring function, so the search itself uses no clock, files or processes:
 *
 *     struct weir_tune tune = {.space = ..., .measure = measure, .user = &machine};
 *     int rc = weir_tune_run(&tune, &err);
 *     if (tune.chosen >= 0) ... tune.candidates[tune.chosen].setting ...
 *     weir_tune_free(&tune);
 *
 * The bounds from the first measurement (demands.h) exclude settings that cannot help. The other settings are measured
 * one by one. The finalists are then measured in rounds. docs/internals/trials.md explains the rules. Not thread-safe.
 */
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
    int engine, decoder; /* indexes into the space's lists, or WEIR_TUNE_AUTO */
    int depth;           /* number of reads in flight, for an engine that has this option; 0 = automatic */
    double cache_bytes;
};

/* The search space. */
struct weir_tune_space {
    int cores;       /* usable cores, and number of workers in the first measurement */
    int workers_max; /* at least `cores`, unless --max-cpu limits the cores */
    int prefetch_max;
    int n_engines, n_decoders; /* the simplest engine is the first */
    const char *engines[WEIR_TUNE_NAMES], *decoders[WEIR_TUNE_NAMES];
    bool maps[WEIR_TUNE_NAMES];   /* the engine's reads count as resident memory */
    bool deep[WEIR_TUNE_NAMES];   /* the engine has a depth */
    bool remote[WEIR_TUNE_NAMES]; /* the engine reads from a server */
    double file_bytes;            /* size of the dataset */
    double cache_max;             /* max bytes of the decode cache; 0 = no cache */
    double memory_max;            /* max bytes of the process; 0 = no limit */
    double cpu_max;               /* max cores used by the process and its helpers; 0 = no limit */
};

/* Results of one measurement. */
struct weir_tune_figures {
    struct weir_trial trial; /* the search sets its round */
    struct weir_demands demands;
    int engine, decoder; /* the ones that were used; indexes as in the setting */
    double slot_bytes;   /* size of a batch in memory */
    double worker_bytes; /* approximate memory of an additional worker */
    double frames_bytes; /* size of a decode cache for all frames */
    double epoch_images; /* number of frames that fill this cache; 0 = unknown */
};

/* Measures a setting. Returns 0 or an error. -EINTR, -ETIME and -ENOMEM end the search with its result so far. After
 * other errors the candidate drops out, with the reason in err. */
typedef int weir_tune_measure(void *user, const struct weir_tune_setting *setting, struct weir_tune_figures *figures,
                              struct weir_err *err);
/* Receives a line about a step of the search and its reason. The line is valid during the call. */
typedef void weir_tune_say(void *user, const char *line);

struct weir_tune_candidate {
    struct weir_tune_setting setting;
    struct weir_candidate measured; /* its trials; why: reason for dropping out */
    struct weir_demands demands;    /* demands in its last trial */
    bool finalist;
};

enum weir_tune_end { WEIR_TUNE_DONE, WEIR_TUNE_TIME, WEIR_TUNE_INTERRUPTED, WEIR_TUNE_FAILED };

struct weir_tune {
    struct weir_tune_space space;
    weir_tune_measure *measure;
    weir_tune_say *say; /* can be NULL */
    void *user;

    struct weir_tune_candidate candidates[WEIR_TUNE_CANDIDATES];
    int n;
    int base;            /* index of the candidate from which further settings are derived */
    int chosen, fastest; /* indexes of candidates; -1 if no candidate was measured */
    bool disturbed;      /* other processes used cores during a trial */
    int trials, rounds;  /* rounds: only those of the finalists */
    double one_rate;     /* images/s with one worker; 0 = not measured */
    double limit_rate;   /* images/s that no setting exceeds (the step, the HDF5 library, the bus); 0 = unknown */
    double noise; /* (max - min) / median of the trials in rounds of the fastest or chosen candidate, whichever is
                     larger; 0 = unknown */
    struct weir_interval ratio;    /* rate of the chosen candidate over the fastest; n is 0 if both are the same */
    struct weir_tune_figures look; /* results of the first measurement */
    enum weir_tune_end end;
};

/* Runs the search. Returns 0 with a choice, or -ENODATA if nothing could be measured within the limits, with the reason
 * in err. If the search ends early, returns -EINTR, -ETIME or -ENOMEM, and tune->chosen is the best candidate so far.
 */
int weir_tune_run(struct weir_tune *tune, struct weir_err *err);
void weir_tune_free(struct weir_tune *tune);

/* Returns whether identical trials differ so much that "within 3 %" cannot be claimed. */
bool weir_tune_is_noisy(const struct weir_tune *tune);
/* Computes images/s from the candidate's trials in rounds, or from all of its trials if it took part in none: the load
 * of other processes before the rounds can differ. */
void weir_tune_interval(const struct weir_tune *tune, int candidate, struct weir_interval *rate);

/* Compares the cost of two settings: the number of workers, then prefetch, cache size, engine, decoder and depth.
 * Returns a negative number if a is cheaper. */
int weir_tune_compare(const struct weir_tune_setting *a, const struct weir_tune_setting *b);
/* Writes a description such as "workers 4, prefetch 2, mmap, turbo". */
void weir_tune_describe(const struct weir_tune_space *space, const struct weir_tune_setting *setting, char *text,
                        size_t size);
/* Returns the max images/s with this many workers, or INFINITY if it is unknown. */
double weir_tune_ceiling(const struct weir_tune *tune, int workers);

#endif
