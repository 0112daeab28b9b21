/* run_options.h: the options of weir run: the loader's (pipeline/loader_options.h), and its own. */
#ifndef WEIR_CLI_RUN_RUN_OPTIONS_H
#define WEIR_CLI_RUN_RUN_OPTIONS_H

#include "analyze/trials/whatif_run.h"
#include "cli/options.h"

struct run_options {
    struct weir_loader_config loader; /* as typed: rank and world_size may be WEIR_OPT_AUTO */
    const char *mean, *std;
    double step_ms, seconds;
    bool step_spin, sync_steps;
    int every, lang;
    const char *log, *checksums, *state;
    bool json;
    const char *profile, *schedule, *sort_by;
    bool record_shapes, profile_memory, with_stack, worker_ops, nvtx;
    int row_limit;
};

/* Rows apart from the loader's. Offsets are into struct run_options. A row without a name ends the table. */
extern const struct weir_opt weir_run_opts[];
extern const char weir_run_examples[];

/* Copies the options that decide what a run costs; texts stay borrowed. */
void weir_run_options_copy(struct weir_run_options *to, const struct run_options *from);

/* Opens DATA with the loader's options to check the command's outputs against it, and lists its files, owned by the
 * caller: weir_path_list_free. values: of the command. source and bytes may be NULL. */
int weir_run_source(const struct weir_command *command, const void *values, const struct weir_loader_config *loader,
                    const char *data, struct weir_copy_source *source, struct weir_path_list *files, uint64_t *bytes,
                    struct weir_err *err);

/* Sets of both tables, for a command whose struct has a struct run_options at this offset. */
#define WEIR_RUN_SETS(at, users)                                                                                       \
    {                                                                                                                  \
        {weir_loader_opts, (at) + offsetof(struct run_options, loader), users}, {weir_run_opts, at, users},            \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

#endif
