/* scenario_run.h: one run of a scenario: the feed, the steps, the recorded window and what it says. */
#ifndef WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_RUN_H
#define WEIR_EXTRAS_SCENARIO_CLI_SCENARIO_RUN_H

#include "analyze/gpu_idle/gpu_idle.h"
#include "extras/scenario/cli/scenario_options.h"
#include "extras/scenario/scenario.h"
#include "weir/trace.h"

struct weir_device;

/* What is run; all borrowed. */
struct scenario_run {
    const struct scenario_options *options;
    enum weir_scenario_kind kind;
    bool fix;
    int workers, prefetch;      /* of weir_scenario_plan */
    struct weir_device *device; /* NULL: the CPU */
};

/* workers and prefetch: those of the options, or what the remedy makes of them. */
void weir_scenario_plan(struct scenario_run *run);

struct scenario_result {
    int steps;               /* recorded: the figures are theirs */
    int first_step;          /* of the profiler's */
    double iteration_s;      /* means: from the request for a batch to the end of the measurement; in it */
    double step_s, wait_s;   /* the step alone, which begins when the batch has arrived, and the data wait */
    double loss, loss_scale; /* at the end */
    size_t parameters;
    char engine[256];         /* of the network */
    char trace_path[4096];    /* "": none was written */
    struct weir_trace *trace; /* owned; NULL: out of memory */
    struct weir_gpu_idle idle;
    uint64_t shown_calls; /* ranges that show the scenario on the CPU (scenario_text.h), in all recorded steps */
    double shown_s;       /* their sum */
};

/* 0; 1: interrupted, there are no figures; or -errno. Clear the result in any case. */
int weir_scenario_run(const struct scenario_run *run, struct scenario_result *result, struct weir_err *err);
void weir_scenario_result_clear(struct scenario_result *result);

/* The device at hand in a result; NULL: the trace has none. */
const struct weir_idle_device *weir_scenario_idle(const struct scenario_result *result,
                                                  const struct weir_device *device);

#endif
