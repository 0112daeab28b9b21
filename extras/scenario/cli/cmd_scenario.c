#include "analyze/trials/child.h"
#include "base/terminal.h"
#include "cli/commands.h"
#include "extras/scenario/cli/scenario_cli.h"
#include "pipeline/gpu/gpu.h"

enum { RUNS_MAX = 2 * WEIR_SCENARIOS };

/* Lists the runs that the options select, in order: each scenario without its remedy, then with its remedy. */
static int list_runs(const struct scenario_options *options, struct weir_device *device,
                     struct scenario_run runs[RUNS_MAX])
{
    int n = 0;
    for (int kind = 0; kind < WEIR_SCENARIOS; kind++)
        for (int fix = 0; fix < 2; fix++) {
            bool wanted = options->all ? !fix || options->fix : kind == options->scenario && fix == options->fix;
            if (!wanted)
                continue;
            runs[n] = (struct scenario_run){
                .options = options, .kind = (enum weir_scenario_kind)kind, .fix = fix, .device = device};
            weir_scenario_plan(&runs[n++]);
        }
    return n;
}

static int run_one(const struct scenario_run *run, struct scenario_result *result, struct weir_err *err)
{
    const struct scenario_options *options = run->options;
    char path[SCENARIO_PATH];
    weir_scenario_print_head(stderr, run);
    int rc = weir_scenario_run(run, result, err);
    if (rc != 0)
        return rc;
    if (options->all)
        weir_scenario_print_line(options->json ? stderr : stdout, run, result);
    else if (!options->json)
        weir_scenario_print(stdout, run, result);
    if (!options->output_json || !*options->output_json)
        return 0;
    weir_scenario_json_path(run, options->all, path);
    rc = weir_scenario_json_write(path, run, result, err);
    if (rc == 0 && !options->all && !options->json)
        printf("figures: %s\n", path);
    return rc;
}

static int run_all(struct scenario_options *options, struct weir_device *device, struct weir_err *err)
{
    struct scenario_run runs[RUNS_MAX];
    struct scenario_result results[RUNS_MAX] = {0};
    int n = list_runs(options, device, runs), done = 0, rc = 0;
    weir_scenario_print_warning(stderr, options, !device);
    options->amp &= device != NULL;
    options->pin_memory &= device != NULL;
    while (done < n && rc == 0) {
        rc = run_one(&runs[done], &results[done], err);
        done++;
    }
    if (rc == 0 && options->json)
        weir_scenario_json_print(stdout, runs, results, n);
    else if (rc == 0 && options->all)
        weir_scenario_print_table(stdout, runs, results, n);
    if (rc == 0 && !options->json)
        weir_scenario_print_not_written(stdout, options);
    for (int i = 0; i < done; i++)
        weir_scenario_result_clear(&results[i]);
    return rc;
}

static int open_gpu(struct weir_device **device, int gpu, struct weir_err *err)
{
    struct weir_err cause = WEIR_ERR_NONE;
    int rc = weir_device_open(device, gpu, &cause);
    return rc < 0 ? weir_err_set(err, rc, "%s; --device cpu runs the scenarios without a GPU", cause.text) : 0;
}

static int run_scenario(const struct weir_command *command, int argc, char **argv)
{
    struct scenario_options options;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_device *device = NULL;
    int gpu, n;
    enum weir_parse parse = weir_options_parse(command, &options, sizeof options, argc, argv, NULL, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    if (weir_scenario_options_check(&options, &gpu, &err) < 0) {
        weir_cli_fail(command, &err);
        return WEIR_EXIT_USAGE;
    }
    weir_terminal_set_wide(options.wide);
    int rc = gpu < 0 ? 0 : open_gpu(&device, gpu, &err);
    if (rc == 0)
        rc = weir_scenario_check_outputs(&options, &err);
    weir_catch_interrupts();
    if (rc == 0)
        rc = run_all(&options, device, &err);
    weir_device_close(&device);
    if (rc > 0)
        fputs("weir scenario: interrupted; no figures for the current run\n", stderr);
    return rc < 0 ? weir_cli_fail(command, &err) : rc > 0 ? weir_exit_by_signal(weir_interrupted) : 0;
}

const struct weir_command weir_cmd_scenario = {
    .name = "scenario",
    .summary = "run steps with a known bottleneck and show how to recognise it",
    .group = WEIR_GROUP_EXTRAS,
    .opts = weir_scenario_opts,
    .n_opts = SCENARIO_OPTS,
    .examples = weir_scenario_examples,
    .notes = "dataloader: items take 2 ms of simulated I/O and 0.2 ms of CPU work. sync: the loss is read "
             "back in the middle of each step. tiny_ops: each step launches many small kernels. memory_churn: "
             "each step allocates device memory many times. A small CNN is trained on random images; with "
             "--device cpu it is narrower.",
    .run = run_scenario,
};
