/* scenario_options.h: the options of weir scenario. */
#ifndef WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_OPTIONS_H
#define WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_OPTIONS_H

#include "cli/options.h"

struct scenario_options {
    int scenario; /* enum weir_scenario_kind */
    int batch_size, num_workers, prefetch_factor, warmup_steps, profile_steps;
    bool pin_memory, amp, with_stack, persistent_workers, all, fix;
    uint64_t seed;
    const char *device, *trace_dir, *output_json;
};

enum { SCENARIO_OPTS = 16, SCENARIO_ITEMS = 2048 }; /* items: of an epoch */
extern const struct weir_opt weir_scenario_opts[SCENARIO_OPTS];
extern const char weir_scenario_examples[];

/* 0 and the GPU's number, -1 for the CPU; or -EINVAL. */
int weir_scenario_options_check(const struct scenario_options *options, int *gpu, struct weir_err *err);

#endif
