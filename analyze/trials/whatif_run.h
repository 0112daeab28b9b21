/* whatif_run.h: the experiments of weir whatif: measures a run of the loader, predicts what changes of it would give,
 * and makes and measures them. Each run is a child process.
 *
 *     const struct weir_whatif_config config = {.run = {.loader = loader}, .data = "episodes/", ...};
 *     int rc = weir_whatif_run(&found, &config, &err);
 */
#ifndef WEIR_ANALYZE_TRIALS_WHATIF_RUN_H
#define WEIR_ANALYZE_TRIALS_WHATIF_RUN_H

#include "analyze/prediction/whatif.h"
#include "analyze/trials/copies.h"
#include "analyze/trials/words.h"
#include "weir/base.h"
#include "weir/loader.h"

#include <signal.h>
#include <stdbool.h>

/* The options of weir run that decide its costs; zero or NULL: the default. Texts are borrowed. */
struct weir_run_options {
    struct weir_loader_config loader; /* rank, world_size and num_workers may be WEIR_OPT_AUTO */
    const char *mean, *std;           /* --mean, --std */
    double step_ms;                   /* of the simulated training step */
    bool step_spin, sync_steps;
};

struct weir_whatif_config {
    struct weir_run_options run;
    const char *data;
    const char *program;                /* the file of weir; NULL: this program is weir */
    struct weir_copy_source source;     /* of DATA: weir_copy_source_of */
    const struct weir_path_list *files; /* of DATA: weir_copy_source_files; borrowed */
    double max_minutes;
    bool check; /* also make the changes and measure them */
    /* The format of copies that are read fastest, other than except, and its suffix: weir_convert_fastest. */
    const char *(*fastest_format)(const char *codec, const char *except, const char **suffix);
    void (*progress)(double elapsed_s, const char *what); /* NULL: none */
    const volatile sig_atomic_t *interrupted;             /* not 0: end with the findings so far */
};

/* Adds the command line of weir run: "weir", "run", data, and the options that differ from their defaults. */
void weir_run_words(struct weir_words *words, const struct weir_run_options *run, const char *data);

/* Fills *found, which is large. 0, also when interrupted after the first measurement; -EINTR, -ENODATA when the run as
 * it is cannot be measured, -ENOMEM. Changes the CPU affinity of the calling thread for children, and restores it: one
 * call at a time in a process. */
int weir_whatif_run(struct weir_whatif *found, const struct weir_whatif_config *config, struct weir_err *err);

#endif
