/* whatif_run.h: the experiments of weir whatif. They measure a run of the loader, predict the effects of changes, and
 * optionally make the changes and measure them. Each run is a child process.
 *
 *     const struct weir_whatif_config config = {.run = {.loader = loader}, .data = "episodes/", ...};
 *     int rc = weir_whatif_run(&found, &config, &err); */
#ifndef WEIR_ANALYZE_TRIALS_WHATIF_RUN_H
#define WEIR_ANALYZE_TRIALS_WHATIF_RUN_H

#include "analyze/prediction/whatif.h"
#include "analyze/trials/child.h"
#include "analyze/trials/copies.h"
#include "weir/base.h"
#include "weir/loader.h"

#include <signal.h>
#include <stdbool.h>

/* The options of weir run that affect its costs. Zero or NULL means the default. Strings are borrowed. */
struct weir_run_options {
    struct weir_loader_config loader; /* rank, world_size and num_workers can be WEIR_OPT_AUTO */
    const char *mean, *std;           /* values of --mean and --std */
    double step_ms;                   /* duration of the simulated training step */
    bool step_spin, sync_steps;
};

struct weir_whatif_config {
    struct weir_run_options run;
    const char *data;
    const char *program;                /* path of weir, or NULL if this program is weir */
    struct weir_copy_source source;     /* from weir_copy_source_of for DATA */
    const struct weir_path_list *files; /* from weir_copy_source_files for DATA; borrowed */
    double max_minutes;
    bool check; /* also make the changes and measure their effects */
    /* Returns the format other than `except` whose copies are read fastest, and sets its suffix. Use
     * weir_convert_fastest. */
    const char *(*fastest_format)(const char *codec, const char *except, const char **suffix);
    void (*progress)(double elapsed_s, const char *what); /* called before each part; can be NULL */
    void (*trial)(const char *what);                      /* called after each trial of that part; can be NULL */
    const volatile sig_atomic_t *interrupted;             /* if not 0, the experiment ends with its results so far */
};

/* Adds the command line "weir run DATA", with the options that differ from their defaults. */
void weir_run_words(struct weir_words *words, const struct weir_run_options *run, const char *data);

/* Fills *found, which is large. Returns 0, even if interrupted after the first measurement, -EINTR, -ENODATA if the
 * base run cannot be measured, or -ENOMEM. Temporarily changes the calling thread's CPU affinity for children, so only
 * one call at a time is allowed in a process. */
int weir_whatif_run(struct weir_whatif *found, const struct weir_whatif_config *config, struct weir_err *err);

#endif
