/* whatif_options.h: the options of weir whatif: those of weir run that decide what a run costs, as they are there, and
 * its own. */
#ifndef WEIR_CLI_WHATIF_WHATIF_OPTIONS_H
#define WEIR_CLI_WHATIF_WHATIF_OPTIONS_H

#include "cli/run/run_options.h"

struct whatif_options {
    struct run_options run; /* first: its table's offsets hold */
    bool check, json;
    double max_minutes;
    const char *log;
};

/* Rows of weir run's table that are left out: files it writes, and what it prints. */
enum {
    WEIR_WHATIF_NOT_OPTS = 24,
    WEIR_WHATIF_OWN_OPTS = 4,
    WEIR_WHATIF_OPTS = WEIR_RUN_OPTS - WEIR_WHATIF_NOT_OPTS + WEIR_WHATIF_OWN_OPTS
};
extern struct weir_opt weir_whatif_opts[WEIR_WHATIF_OPTS];
/* Fills the table. Once, before any option is looked at. */
void weir_whatif_options_list(void);

/* 0, or -EINVAL: what weir run would refuse as usage. */
int weir_whatif_options_check(const struct whatif_options *options, struct weir_err *err);

/* The command line of weir run for these options: "weir", "run", data, and every option that is not at its default.
 * Ends with NULL; room more pointers lie behind. Owned: weir_whatif_args_free. NULL = out of memory. */
char **weir_whatif_args(const struct run_options *options, const char *data, int room);
void weir_whatif_args_free(char **argv);

#endif
