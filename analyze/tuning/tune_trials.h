/* tune_trials.h: the measurements of weir tune: a search (tune_search.h) whose trials run in child processes.
 *
 *     struct weir_tune_trials trials;
 *     int rc = weir_tune_trials_open(&trials, &config, &err);
 *     if (rc == 0)
 *         rc = weir_tune_run(&trials.tune, &err);
 *     if (trials.tune.chosen >= 0) ...
 *     weir_tune_trials_close(&trials); */
#ifndef WEIR_ANALYZE_TUNING_TUNE_TRIALS_H
#define WEIR_ANALYZE_TUNING_TUNE_TRIALS_H

#include "analyze/trials/child.h"
#include "analyze/tuning/tune_search.h"
#include "weir/loader.h"

#include <signal.h>
#include <stdint.h>

struct weir_tune_config {
    const char *data, *program;              /* program: path of weir, or NULL if this program is weir */
    const struct weir_loader_config *loader; /* options that the search does not change */
    const struct weir_words *options; /* the same options and other options of weir run, as command-line arguments */
    uint64_t max_memory;              /* bytes; 0 = no limit */
    uint64_t max_cache;               /* max bytes of the decode cache; 0 = none; can be WEIR_OPT_BYTES_AUTO */
    int max_cpu;                      /* cores; 0 = no limit */
    double min_seconds;               /* min duration of the measurement in a trial */
    uint64_t end_ns;                  /* time on weir_clock_monotonic_ns after which no trial begins */
    const volatile sig_atomic_t *interrupted;

    /* These callbacks can be NULL. Strings are valid during the call. */
    weir_tune_say *step;                        /* receives one line per step of the search */
    void (*note)(void *user, const char *line); /* receives other messages */
    void (*trial)(void *user, const struct weir_tune_setting *setting, const struct weir_trial *trial, const char *why);
    void *user;
};

struct weir_tune_trials {
    const struct weir_tune_config *config;
    double seconds; /* duration of the measurement in a trial; longer if batches are few */
    int cores;      /* usable cores in this process's share */
    struct weir_tune tune;
    struct weir_log_record record; /* table of the current trial; too large for the stack */
};

/* Sets the search space, except tune.space.file_bytes, which the caller sets. Returns -EINVAL if the device or the
 * ranks are invalid; err names the option. Borrows config until weir_tune_trials_close. */
int weir_tune_trials_open(struct weir_tune_trials *trials, const struct weir_tune_config *config, struct weir_err *err);
void weir_tune_trials_close(struct weir_tune_trials *trials);

/* Calls `put` for each option of weir run that the setting determines, with its value as a command-line argument. */
typedef void weir_tune_put(void *user, const char *name, const char *value);
void weir_tune_setting_options(const struct weir_tune_space *space, const struct weir_tune_setting *setting,
                               weir_tune_put *put, void *user);

#endif
