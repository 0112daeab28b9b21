/* tune_options.h: the options of weir tune: its own, and those of weir run that say what is loaded. */
#ifndef WEIR_CLI_TUNE_TUNE_OPTIONS_H
#define WEIR_CLI_TUNE_TUNE_OPTIONS_H

#include "analyze/tune_search.h"
#include "cli/option_values.h"
#include "cli/options.h"
#include "cli/run/run_options.h"

struct tune_options {
    struct run_options run;         /* first: rows of weir run's table have their fields in it */
    uint64_t max_memory, max_cache; /* max_cache may be WEIR_OPT_BYTES_AUTO */
    int max_cpu;
    double min_seconds, max_minutes;
    const char *out, *log;
    bool json;
};

enum { TUNE_OWN_OPTS = 8, TUNE_RUN_OPTS = 35, TUNE_OPTS = TUNE_OWN_OPTS + TUNE_RUN_OPTS };
extern struct weir_opt weir_tune_opts[TUNE_OPTS];
/* Copies the rows shared with weir run into it: the complete function of the command. */
void weir_tune_options_list(void);
extern const struct weir_opt_topic weir_tune_topics[];

/* Options of weir run with their values, as they are typed: what was typed for weir tune, and a setting. */
struct tune_pair {
    const char *name, *value; /* value NULL: a flag */
    char buffer[WEIR_OPTION_TEXT];
};
struct tune_pairs {
    int n;
    struct tune_pair pairs[TUNE_RUN_OPTS + 8];
};
void tune_pairs_make(struct tune_pairs *pairs, const struct tune_options *options, const struct weir_tune_space *space,
                     const struct weir_tune_setting *setting);

#endif
