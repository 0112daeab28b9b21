/* tune_trials.h: the experiment of weir tune: a search (tune_search.h) whose trials are child processes.
 *
 *     struct weir_tune_trials trials;
 *     int rc = weir_tune_trials_open(&trials, &config, &err);
 *     if (rc == 0)
 *         rc = weir_tune_run(&trials.tune, &err);
 *     if (trials.tune.chosen >= 0) ...
 *     weir_tune_trials_close(&trials);
 */
#ifndef WEIR_ANALYZE_TUNING_TUNE_TRIALS_H
#define WEIR_ANALYZE_TUNING_TUNE_TRIALS_H

#include "analyze/trials/words.h"
#include "analyze/tuning/tune_search.h"
#include "weir/loader.h"

#include <signal.h>
#include <stdint.h>

struct weir_tune_config {
    const char *data, *program;              /* program: the file of weir; NULL: this program is weir */
    const struct weir_loader_config *loader; /* the options that the search leaves alone */
    const struct weir_words *options;        /* the same, with others of weir run, as typed */
    uint64_t max_memory;                     /* bytes; 0 = no limit */
    uint64_t max_cache;                      /* bytes of the decode cache; 0: none; WEIR_OPT_BYTES_AUTO */
    int max_cpu;                             /* cores; 0 = no limit */
    double min_seconds;                      /* measured per trial */
    uint64_t end_ns;                         /* weir_clock_monotonic_ns: no trial begins after it */
    const volatile sig_atomic_t *interrupted;

    /* Each may be NULL; texts are borrowed during the call. */
    weir_tune_say *step;                        /* a line per step of the search */
    void (*note)(void *user, const char *line); /* anything else */
    void (*trial)(void *user, const struct weir_tune_setting *setting, const struct weir_trial *trial, const char *why);
    void *user;
};

struct weir_tune_trials {
    const struct weir_tune_config *config;
    double seconds; /* measured per trial: longer where batches are few */
    int cores;      /* usable ones, of this process's part */
    struct weir_tune tune;
};

/* Lists what may be tried; the caller sets tune.space.file_bytes. -EINVAL: the device or the ranks; err names the
 * option. Borrows config until weir_tune_trials_close. */
int weir_tune_trials_open(struct weir_tune_trials *trials, const struct weir_tune_config *config, struct weir_err *err);
void weir_tune_trials_close(struct weir_tune_trials *trials);

/* Calls put for each option of weir run that the setting decides, with its value as typed. */
typedef void weir_tune_put(void *user, const char *name, const char *value);
void weir_tune_setting_options(const struct weir_tune_space *space, const struct weir_tune_setting *setting,
                               weir_tune_put *put, void *user);

#endif
