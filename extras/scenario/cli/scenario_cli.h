/* scenario_cli.h: the parts of the command weir scenario: options, a run, descriptions, table and JSON file. */
#ifndef WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_CLI_H
#define WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_CLI_H

#include "analyze/gpu_idle/gpu_idle.h"
#include "cli/options.h"
#include "extras/scenario/scenario.h"
#include "weir/trace.h"

#include <stdio.h>

struct weir_device;

/* ---- scenario_options.c ---- */

struct scenario_options {
    int scenario; /* enum weir_scenario_kind */
    int batch_size, num_workers, prefetch_factor, warmup_steps, profile_steps;
    bool pin_memory, amp, with_stack, persistent_workers, all, fix, json, wide;
    uint64_t seed;
    const char *device;
    const char *trace_dir, *output_json; /* NULL: not written; the second is also "" */
};

enum { SCENARIO_OPTS = 18, SCENARIO_ITEMS = 2048 }; /* SCENARIO_ITEMS: items per epoch */
extern const struct weir_opt weir_scenario_opts[SCENARIO_OPTS];
extern const char weir_scenario_examples[];

/* Sets *gpu to the GPU's number, or to -1 for the CPU. 0 or -EINVAL. */
int weir_scenario_options_check(const struct scenario_options *options, int *gpu, struct weir_err *err);

/* ---- scenario_text.c: descriptions of the scenarios ---- */

struct scenario_text {
    const char *name;           /* value of --scenario */
    enum weir_idle_cause cause; /* the cause of GPU idle time that this scenario demonstrates */
    const char *shows;          /* what its steps do wrong */
    const char *rule;           /* how to recognise the cause in a table and in a trace */
    const char *remedy;         /* how to fix it in a training script, as a full sentence */
    const char *cpu_range;      /* name prefix of the ranges that show the cause on the CPU */
    const char *cpu_rule;       /* how to recognise the cause on the CPU, and how it differs there */
    const char *fix;            /* what --fix does, in a few words */
};
extern const struct scenario_text weir_scenario_texts[WEIR_SCENARIOS];

/* ---- scenario_run.c ---- */

/* One run of a scenario. All pointers are borrowed. */
struct scenario_run {
    const struct scenario_options *options;
    enum weir_scenario_kind kind;
    bool fix;
    int workers, prefetch;      /* set by weir_scenario_plan */
    struct weir_device *device; /* NULL: the CPU */
};

/* Sets workers and prefetch from the options. For dataloader with --fix, raises them to the remedy's numbers. */
void weir_scenario_plan(struct scenario_run *run);

/* The results of a run. Times cover the recorded steps only. */
struct scenario_result {
    int steps;
    int first_step;          /* number of the first recorded step, in the profiler's numbering */
    double iteration_s;      /* mean time from the request for a batch to the end of the measurement */
    double step_s, wait_s;   /* mean time of the step, and of the data wait before it */
    double loss, loss_scale; /* after the last step */
    size_t parameters;
    char engine[256];         /* the network's backend */
    char trace_path[4096];    /* empty: no trace was written */
    struct weir_trace *trace; /* owned; NULL: memory was exhausted */
    struct weir_gpu_idle idle;
    uint64_t shown_calls; /* number of ranges whose name starts with cpu_range */
    double shown_s;       /* total time of these ranges */
};

/* Returns 0, 1 (interrupted, so the result is empty) or -errno. The caller must clear the result in every case. */
int weir_scenario_run(const struct scenario_run *run, struct scenario_result *result, struct weir_err *err);
void weir_scenario_result_clear(struct scenario_result *result);

/* Returns the idle time of the run's device; NULL if the trace does not contain it. */
const struct weir_idle_device *weir_scenario_idle(const struct scenario_result *result,
                                                  const struct weir_device *device);

/* ---- scenario_print.c ---- */

/* Before all runs: warns about options that make the figures unreliable, and about those that --device cpu ignores. */
void weir_scenario_print_warning(FILE *out, const struct scenario_options *options, bool cpu);
/* Before each run: prints the configuration and names options that have no effect. */
void weir_scenario_print_head(FILE *out, const struct scenario_run *run);
/* After a single run: prints statistics, operations, GPU idle time, and how to interpret them. */
void weir_scenario_print(FILE *out, const struct scenario_run *run, struct scenario_result *result);
/* With --all: print one line per run, and at the end a table and how to interpret each scenario. */
void weir_scenario_print_line(FILE *out, const struct scenario_run *run, const struct scenario_result *result);
void weir_scenario_print_table(FILE *out, const struct scenario_run *runs, const struct scenario_result *results,
                               int n);
/* After all runs: prints the options for the files that were not written, if any. */
void weir_scenario_print_not_written(FILE *out, const struct scenario_options *options);

/* ---- scenario_json.c: the file for --output-json, with the same members as the original script ---- */

enum { SCENARIO_PATH = 4096 };

/* Sets path to the JSON file of this run: --output-json itself, or with one_of_several NAME_SCENARIO.json or
 * NAME_SCENARIO_fix.json. */
void weir_scenario_json_path(const struct scenario_run *run, bool one_of_several, char path[SCENARIO_PATH]);
/* Creates the folders of the traces and of the JSON file, if there are any, and checks that they are writable. 0 or
 * -errno. */
int weir_scenario_check_outputs(const struct scenario_options *options, struct weir_err *err);
/* Prints the object of --json: the members of the files, one element of "runs" per run. */
void weir_scenario_json_print(FILE *out, const struct scenario_run *runs, const struct scenario_result *results, int n);
/* Writes the file atomically. 0 or -errno. */
int weir_scenario_json_write(const char *path, const struct scenario_run *run, const struct scenario_result *result,
                             struct weir_err *err);

#endif
