/* whatif_options.h: the options of weir whatif: those of weir run that decide what a run costs, as they are there, and
 * its own. */
#ifndef WEIR_CLI_WHATIF_WHATIF_OPTIONS_H
#define WEIR_CLI_WHATIF_WHATIF_OPTIONS_H

#include "cli/run/run_options.h"

struct whatif_options {
    struct run_options run; /* first: weir_whatif_sets */
    bool check, json;
    double max_minutes;
    const char *log;
};

enum { WEIR_WHATIF_OPTS = 4 };
extern const struct weir_opt weir_whatif_opts[WEIR_WHATIF_OPTS];
extern const struct weir_opt_set weir_whatif_sets[];

/* 0, or -EINVAL: what weir run would refuse as usage. */
int weir_whatif_options_check(const struct whatif_options *options, struct weir_err *err);

/* The command line of weir run for these options: "weir", "run", data, and every option that is not at its default.
 * Ends with NULL; room more pointers lie behind. Owned: weir_whatif_args_free. NULL = out of memory. */
char **weir_whatif_args(const struct run_options *options, const char *data, int room);
void weir_whatif_args_free(char **argv);

#endif
