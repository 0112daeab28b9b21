/* whatif_parts.h: what the parts of weir whatif share: the run as it is, what is known of it, and the changes. */
#ifndef WEIR_CLI_WHATIF_WHATIF_PARTS_H
#define WEIR_CLI_WHATIF_WHATIF_PARTS_H

#include "analyze/prediction/model.h"
#include "analyze/prediction/whatif.h"
#include "analyze/trials/copies.h"
#include "analyze/trials/measured_run.h"
#include "analyze/verdict/verdict.h"
#include "cli/whatif/whatif_options.h"
#include "weir/base.h"

#include <signal.h>
#include <stdint.h>

/* A short run, and what was learned from it. */
struct whatif_probe {
    bool known;
    struct weir_demands demands;
    struct weir_model model;
    struct weir_report_setup setup;
    int cpus;     /* that it had; 0 = all */
    double cpu_s; /* CPU time of the workers for an image */
    double data_wait;
    double others;  /* cores that other processes had meanwhile; -1 = not known */
    double start_s; /* that the process took beside what was measured */
    char why[WEIR_WHATIF_WHY];
};

/* One command line of weir run, and where it runs. */
struct whatif_plan {
    struct run_options run;
    const char *data;
    int cpus;       /* so many CPUs of the affinity; 0 = all */
    bool can_check; /* this machine can make the change */
};

enum { WHATIF_COPIES = 4 };

struct whatif {
    const struct whatif_options *options;
    const char *data;
    const volatile sig_atomic_t *interrupted;
    uint64_t begin_ns, end_ns; /* weir_clock_monotonic_ns */
    struct whatif_plan base;
    struct weir_copy_source source;
    struct weir_path_list files; /* of DATA */
    struct whatif_probe now;     /* the run as it is */
    struct whatif_probe full;    /* the same without a step */
    bool slow_start;             /* a process takes so long to begin that only what tells most is measured */
    struct weir_model_facts facts;
    struct weir_model model;     /* of now, with the facts */
    double frame_bytes;          /* of a decoded frame in a batch */
    char *folder;                /* of copies, owned, removed at the end; NULL = none */
    char *copies[WHATIF_COPIES]; /* owned */
    int n_copies;
    struct weir_whatif found;
    struct whatif_plan plans[WEIR_WHATIF_CHANGES]; /* of found.changes */
};

/* What DATA is: its files, how its frames are stored. */
int whatif_open(struct whatif *w, const struct weir_command *command, struct weir_err *err);
/* Measures the run as it is and with other numbers of workers. 0, -EINTR, or negative. */
int whatif_measure_now(struct whatif *w, struct weir_err *err);

/* What a short run measures. */
double whatif_probe_seconds(const struct whatif *w);
/* Runs it for so many seconds. A run that fails leaves probe->why. -EINTR, or 0. */
int whatif_probe(struct whatif *w, struct whatif_probe *probe, const struct whatif_plan *plan, double seconds);
/* So many images/s with the consumer's step of the run as it is, and so many slots (0: the probe's); limit may be NULL.
 */
double whatif_probe_rate(const struct whatif *w, const struct whatif_probe *probe, int slots,
                         enum weir_resource *limit);

/* Options under which a part of the frames (0..1) is kept decoded, of few enough batches to be measured soon. False and
 * why: it cannot be had. bytes: of the cache for so much of all frames, which is what is typed. */
bool whatif_cache_plan(const struct whatif *w, double part, struct whatif_plan *plan, double *bytes, char *why,
                       size_t size);

int whatif_ladder(struct whatif *w);  /* -EINTR, -ENOMEM or 0 */
int whatif_predict(struct whatif *w); /* the same */
int whatif_check(struct whatif *w);   /* the same */

/* Turns of these plans, in rounds, within so much time; cells are owned by the caller (weir_cell_free each). */
struct weir_cell;
struct whatif_turns {
    int rounds;
    double seconds; /* of a turn */
    uint64_t end_ns;
};
int whatif_rotate(struct whatif *w, struct weir_cell *cells, const struct whatif_plan *const *plans, int n,
                  const struct whatif_turns *turns);

/* Restricts this process, and those that it starts, to so many of its CPUs, one of each core first; 0: gives back what
 * it had. */
void whatif_set_cpus(int cpus);
/* Which these are, as taskset -c takes them. */
void whatif_cpu_list(int cpus, char *text, size_t size);

/* Copies a sample of DATA in a format that may be faster. *path is lent until whatif_remove_copies; NULL, and why:
 * there is none. -EINTR or 0. */
int whatif_copy(struct whatif *w, const char *format, const char *codec, const char **path, char *why, size_t size);
void whatif_remove_copies(struct whatif *w);

double whatif_seconds_left(const struct whatif *w);
void whatif_say(const struct whatif *w, const char *what);

/* What a child process wrote to stderr, without the name of its command in front. Lies in line. */
const char *whatif_error_of(const char *line);

#endif
