/* whatif_priv.h: state that the files of the whatif experiment share: the base run, its probes, and the changes. */
#ifndef WEIR_ANALYZE_TRIALS_WHATIF_PRIV_H
#define WEIR_ANALYZE_TRIALS_WHATIF_PRIV_H

#include "analyze/prediction/model.h"
#include "analyze/trials/trial.h"
#include "analyze/trials/whatif_run.h"
#include "analyze/verdict/verdict.h"

#include <stdint.h>

/* A short run and its figures. */
struct whatif_probe {
    bool known;
    struct weir_demands demands;
    struct weir_model model;
    struct weir_report_setup setup;
    int cpus;     /* of the run; 0 = all */
    double cpu_s; /* CPU time of the workers per image */
    double data_wait;
    double others;  /* cores that other processes used; -1 = not known */
    double start_s; /* of the process, outside the measured time */
    char why[WEIR_WHATIF_WHY];
};

/* One command line of weir run, and its CPUs. */
struct whatif_plan {
    struct weir_run_options run;
    const char *data;
    int cpus;       /* number of CPUs of the affinity; 0 = all */
    bool can_check; /* this machine can make the change */
};

enum { WHATIF_COPIES = 4 };

struct whatif {
    const struct weir_whatif_config *config;
    struct weir_whatif *found;
    const char *program;
    uint64_t begin_ns, end_ns; /* weir_clock_monotonic_ns */
    struct whatif_plan base;
    struct whatif_probe now;  /* of base */
    struct whatif_probe full; /* of base without a step */
    bool slow_start;          /* processes start so slowly that only the most telling changes are measured */
    struct weir_model_facts facts;
    struct weir_model model;     /* of now, with the facts */
    double frame_bytes;          /* of a decoded frame in a batch */
    char *folder;                /* of copies, owned, removed at the end; NULL = none */
    char *copies[WHATIF_COPIES]; /* owned */
    int n_copies;
    struct whatif_plan plans[WEIR_WHATIF_CHANGES]; /* of found->changes */
};

/* Measures the base run, and the same with other numbers of workers. 0, -EINTR, or negative. */
int whatif_measure_now(struct whatif *w, struct weir_err *err);

/* Default measured time of a probe. */
double whatif_probe_seconds(const struct whatif *w);
/* Measures the plan for so many seconds. A failed run sets probe->why. -EINTR, or 0. */
int whatif_probe(struct whatif *w, struct whatif_probe *probe, const struct whatif_plan *plan, double seconds);
/* Predicted images/s of the probe with the step of the base run and so many slots (0: the probe's); limit may be NULL.
 */
double whatif_probe_rate(const struct whatif *w, const struct whatif_probe *probe, int slots,
                         enum weir_resource *limit);

/* A plan that caches a part (0..1) of the decoded frames, with few enough batches to be measured soon. bytes: the cache
 * size for that part of all frames. False, with why: not possible. */
bool whatif_cache_plan(const struct whatif *w, double part, struct whatif_plan *plan, double *bytes, char *why,
                       size_t size);

/* Measures what changes cost and predicts their gains. 0, -EINTR or -ENOMEM. */
int whatif_predict(struct whatif *w);

/* Restricts this process and its future children to so many of its CPUs, one of each core first; 0: restores the
 * affinity. */
void whatif_set_cpus(int cpus);
/* Writes these CPUs as a list for taskset -c. */
void whatif_cpu_list(int cpus, char *text, size_t size);

/* Makes a copy of a sample of DATA, its name ending in suffix. *path is borrowed until whatif_remove_copies; NULL, with
 * why: there is no copy. -EINTR or 0. */
int whatif_copy(struct whatif *w, const struct weir_copy_spec *spec, const char *suffix, const char **path, char *why,
                size_t size);
void whatif_remove_copies(struct whatif *w);

/* Time since the beginning, and left. */
double whatif_seconds(const struct whatif *w);
double whatif_seconds_left(const struct whatif *w);
void whatif_progress(const struct whatif *w, const char *what);

/* An error line of a child process without the name of its command; points into line. */
const char *whatif_error_of(const char *line);

#endif
