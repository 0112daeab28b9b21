/* run_options.h: the options of weir run, which are the loader's (pipeline/loader_options.h) and its own. */
#ifndef WEIR_CLI_RUN_RUN_OPTIONS_H
#define WEIR_CLI_RUN_RUN_OPTIONS_H

#include "analyze/trials/whatif_run.h"
#include "cli/options.h"

struct run_options {
    struct weir_loader_config loader; /* as typed, so rank and world_size can be WEIR_OPT_AUTO */
    const char *mean, *std;
    double step_ms, seconds, max_wait;
    bool step_spin, sync_steps;
    int every, lang;
    const char *log, *html, *checksums, *state;
    const char *serve, *prometheus;
    bool json, wide;
    const char *profile, *schedule, *sort_by;
    bool record_shapes, profile_memory, with_stack, worker_ops, nvtx;
    int row_limit;
};

/* The options of weir run except the loader's. Offsets refer to struct run_options. The table ends with a row that has
 * no name. */
extern const struct weir_opt weir_run_opts[];
extern const char weir_run_examples[];

/* Copies the options that affect the speed of a run. Strings are borrowed. */
void weir_run_options_copy(struct weir_run_options *to, const struct run_options *from);

/* Opens DATA with the loader's options, checks the command's outputs against the dataset, and lists the dataset's
 * files. The caller frees the list with weir_path_list_free. values are the command's option values. source and bytes
 * can be NULL. */
int weir_run_source(const struct weir_command *command, const void *values, const struct weir_loader_config *loader,
                    const char *data, struct weir_copy_source *source, struct weir_path_list *files, uint64_t *bytes,
                    struct weir_err *err);

/* Option sets of weir_loader_opts and weir_run_opts. at is the offset of a struct run_options in the command's struct.
 */
#define WEIR_RUN_SETS(at, users)                                                                                       \
    {                                                                                                                  \
        {weir_loader_opts, (at) + offsetof(struct run_options, loader), users}, {weir_run_opts, at, users},            \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }

#endif
