/* tune_options.h: the options of weir tune: its own, and those of weir run that say what is loaded. */
#ifndef WEIR_CLI_TUNE_TUNE_OPTIONS_H
#define WEIR_CLI_TUNE_TUNE_OPTIONS_H

#include "analyze/tuning/tune_search.h"
#include "cli/options.h"
#include "cli/run/run_options.h"

struct tune_options {
    struct run_options run;         /* first: weir_tune_sets */
    uint64_t max_memory, max_cache; /* max_cache may be WEIR_OPT_BYTES_AUTO */
    int max_cpu;
    double min_seconds, max_minutes;
    const char *out, *log;
    bool json;
};

enum { TUNE_OPTS = 8 };
extern const struct weir_opt weir_tune_opts[TUNE_OPTS];
extern const struct weir_opt_set weir_tune_sets[]; /* those of weir run that say what is loaded */

/* Options of weir run with their values, as they are typed: what was typed for weir tune, and a setting. */
struct tune_pair {
    const char *name, *value; /* value NULL: a flag */
    char buffer[WEIR_OPTION_TEXT];
};
enum { TUNE_PAIRS = 64 };
struct tune_pairs {
    int n;
    struct tune_pair pairs[TUNE_PAIRS];
};
void tune_pairs_make(struct tune_pairs *pairs, const struct tune_options *options, const struct weir_tune_space *space,
                     const struct weir_tune_setting *setting);

#endif
