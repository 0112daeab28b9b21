/* whatif_priv.h: state that the files of the whatif experiment share: the base run, its probes, and the changes. */
#ifndef WEIR_ANALYZE_TRIALS_WHATIF_PRIV_H
#define WEIR_ANALYZE_TRIALS_WHATIF_PRIV_H

#include "analyze/prediction/model.h"
#include "analyze/trials/trial.h"
#include "analyze/trials/whatif_run.h"
#include "analyze/verdict/verdict.h"

#include <stdint.h>

/* A short run and its results. */
struct whatif_probe {
    bool known;
    struct weir_demands demands;
    struct weir_model model;
    struct weir_report_setup setup;
    int cpus;     /* number of CPUs that the run could use; 0 = all */
    double cpu_s; /* workers' CPU time per image */
    double data_wait;
    double others;  /* cores used by other processes; -1 = unknown */
    double start_s; /* time that the process takes to start, before the measurement */
    char why[WEIR_WHATIF_WHY];
};

/* A command line of weir run, and the CPUs that it can use. */
struct whatif_plan {
    struct weir_run_options run;
    const char *data;
    int cpus;       /* number of CPUs in the affinity mask; 0 = all */
    bool can_check; /* the change can be made on this machine */
};

enum { WHATIF_COPIES = 4 };

struct whatif {
    const struct weir_whatif_config *config;
    struct weir_whatif *found;
    uint64_t begin_ns, end_ns; /* times on weir_clock_monotonic_ns */
    struct whatif_plan base;
    struct whatif_probe now;       /* result of the base run */
    struct weir_log_record first;  /* table of the first base run, which the verdict judges */
    struct weir_log_record record; /* table of the current probe */
    struct whatif_probe full;      /* result of the base run without a step */
    bool slow_start;               /* processes start so slowly that only the most important changes are measured */
    struct weir_model_facts facts;
    struct weir_model model;     /* made from `now` and `facts` */
    double frame_bytes;          /* size of a decoded frame in a batch */
    char *folder;                /* folder of the copies, owned, removed at the end; NULL = none */
    char *copies[WHATIF_COPIES]; /* paths; owned */
    int n_copies;
    char part[64];                                 /* text of the last whatif_progress */
    struct whatif_plan plans[WEIR_WHATIF_CHANGES]; /* plans of found->changes */
};

/* Measures the base run, and then the base run with other numbers of workers. Returns 0, -EINTR or another error. */
int whatif_measure_now(struct whatif *w, struct weir_err *err);
/* Fills in the base run's verdict. Other runs show how CPU time grows with the workers, and what more workers give. */
void whatif_judge(struct whatif *w);

/* Returns the default duration of a probe's measurement. */
double whatif_probe_seconds(const struct whatif *w);
/* Measures the plan for this many seconds. If the run fails, sets probe->why. Returns 0 or -EINTR. */
int whatif_probe(struct whatif *w, struct whatif_probe *probe, const struct whatif_plan *plan, double seconds);
/* Predicts images/s of the probe with the base run's step and this number of slots (0 = the probe's own). limit can be
 * NULL. */
double whatif_probe_rate(const struct whatif *w, const struct whatif_probe *probe, int slots,
                         enum weir_resource *limit);

/* Makes a plan that caches a part (0..1) of the decoded frames. If an epoch takes too long for a measurement, a plan
 * for all frames repeats a few batches, and a plan for fewer cannot be checked, with the reason in why. Sets *bytes to
 * the size of a cache for this part of all frames. Returns false, with the reason in why, if there is no such cache. */
bool whatif_cache_plan(const struct whatif *w, double part, struct whatif_plan *plan, double *bytes, char *why,
                       size_t size);

/* Measures the costs of changes and predicts their gains. Returns 0, -EINTR or -ENOMEM. */
int whatif_predict(struct whatif *w);

/* Restricts this process and its future children to this number of its CPUs, starting with one CPU of each core. 0
 * restores the affinity. */
void whatif_set_cpus(int cpus);
/* Writes the CPUs that whatif_set_cpus would choose, as a list for taskset -c. */
void whatif_cpu_list(int cpus, char *text, size_t size);

/* Makes a copy of a sample of DATA, with a name that ends in suffix. *path is borrowed until whatif_remove_copies. If
 * there is no copy, sets *path to NULL and writes the reason to why. Returns 0 or -EINTR. */
int whatif_copy(struct whatif *w, const struct weir_copy_spec *spec, const char *suffix, const char **path, char *why,
                size_t size);
void whatif_remove_copies(struct whatif *w);

/* Return the time since the experiment began, and the time that is left. */
double whatif_seconds(const struct whatif *w);
double whatif_seconds_left(const struct whatif *w);
/* Report the start of a part of the experiment, and the end of one of its trials. */
void whatif_progress(struct whatif *w, const char *what);
void whatif_count_trial(const struct whatif *w);

/* Skips the command's name at the start of a child's error line. The result points into line. */
const char *whatif_error_of(const char *line);

#endif
