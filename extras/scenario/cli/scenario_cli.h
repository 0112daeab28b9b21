/* scenario_cli.h: the parts of weir scenario: options, one run, its texts, its table and its JSON file. */
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
    bool pin_memory, amp, with_stack, persistent_workers, all, fix;
    uint64_t seed;
    const char *device, *trace_dir, *output_json;
};

enum { SCENARIO_OPTS = 16, SCENARIO_ITEMS = 2048 }; /* ITEMS: per epoch */
extern const struct weir_opt weir_scenario_opts[SCENARIO_OPTS];
extern const char weir_scenario_examples[];

/* Sets gpu to the GPU's number, or -1 for the CPU. 0 or -EINVAL. */
int weir_scenario_options_check(const struct scenario_options *options, int *gpu, struct weir_err *err);

/* ---- scenario_text.c: what each scenario shows ---- */

struct scenario_text {
    const char *name;           /* value of --scenario */
    enum weir_idle_cause cause; /* the cause of GPU idle time that it shows */
    const char *shows;          /* what its steps do */
    const char *rule;           /* how to recognise it in a table and in a trace */
    const char *remedy;         /* a sentence */
    const char *cpu_range;      /* prefix of the ranges that show it on the CPU */
    const char *cpu_rule;       /* how to recognise it there, and what differs */
    const char *fix;            /* what --fix does, in a few words */
};
extern const struct scenario_text weir_scenario_texts[WEIR_SCENARIOS];

/* ---- scenario_run.c ---- */

/* One run. All pointers are borrowed. */
struct scenario_run {
    const struct scenario_options *options;
    enum weir_scenario_kind kind;
    bool fix;
    int workers, prefetch;      /* set by weir_scenario_plan */
    struct weir_device *device; /* NULL: the CPU */
};

/* Sets workers and prefetch from the options, or to the remedy's numbers. */
void weir_scenario_plan(struct scenario_run *run);

/* Figures cover the recorded steps. */
struct scenario_result {
    int steps;
    int first_step;          /* in the profiler's numbering */
    double iteration_s;      /* mean, from the request for a batch to the end of the measurement */
    double step_s, wait_s;   /* the iteration's parts: the step, and the data wait before it */
    double loss, loss_scale; /* after the last step */
    size_t parameters;
    char engine[256];         /* the network's backend */
    char trace_path[4096];    /* "": no trace was written */
    struct weir_trace *trace; /* owned; NULL: out of memory */
    struct weir_gpu_idle idle;
    uint64_t shown_calls; /* ranges named cpu_range... */
    double shown_s;       /* their total time */
};

/* 0, 1 (interrupted: no figures) or -errno. Clear the result in every case. */
int weir_scenario_run(const struct scenario_run *run, struct scenario_result *result, struct weir_err *err);
void weir_scenario_result_clear(struct scenario_result *result);

/* The idle time of the run's device; NULL: the trace has none. */
const struct weir_idle_device *weir_scenario_idle(const struct scenario_result *result,
                                                  const struct weir_device *device);

/* ---- scenario_print.c ---- */

/* Before all runs: warns of options that make the figures unreliable. */
void weir_scenario_print_warning(FILE *out, const struct scenario_options *options);
/* Before a run: the configuration, and options without effect. */
void weir_scenario_print_head(FILE *out, const struct scenario_run *run);
/* After a single run: statistics, CUDA operations, GPU idle time, how to read it. */
void weir_scenario_print(FILE *out, const struct scenario_run *run, struct scenario_result *result);
/* For --all: one line per run, then a table and how to read each scenario. */
void weir_scenario_print_line(FILE *out, const struct scenario_run *run, const struct scenario_result *result);
void weir_scenario_print_table(FILE *out, const struct scenario_run *runs, const struct scenario_result *results,
                               int n);

/* ---- scenario_json.c: the file of --output-json, with the members of the original script ---- */

enum { SCENARIO_PATH = 4096 };

/* The file of this run: --output-json itself, or with one_of_several NAME_SCENARIO.json and NAME_SCENARIO_fix.json. */
void weir_scenario_json_path(const struct scenario_run *run, bool one_of_several, char path[SCENARIO_PATH]);
/* Makes the folders of the traces and of the JSON file, and checks that they are writable. 0 or -errno. */
int weir_scenario_check_outputs(const struct scenario_options *options, struct weir_err *err);
/* Writes atomically. 0 or -errno. */
int weir_scenario_json_write(const char *path, const struct scenario_run *run, const struct scenario_result *result,
                             struct weir_err *err);

#endif
