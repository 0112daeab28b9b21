#include "extras/scenario/cli/scenario_cli.h"
#include "extras/scenario/mock_loader.h"
#include "pipeline/gpu/gpu.h"

#include <errno.h>
#include <string.h>

#define FIELD(field) .offset = offsetof(struct scenario_options, field)

const struct weir_opt weir_scenario_opts[SCENARIO_OPTS] = {
    {"scenario", WEIR_OPT_ENUM, FIELD(scenario), "dataloader|sync|tiny_ops|memory_churn", "dataloader",
     "bottleneck to demonstrate", .topic = "Scenario", .is_common = true},
    {"all", WEIR_OPT_FLAG, FIELD(all), NULL, NULL, "comparison of all four scenarios", .is_common = true},
    {"fix", WEIR_OPT_FLAG, FIELD(fix), NULL, NULL, "scenario with its remedy",
     .details = "With --all, each scenario runs first without and then with its remedy.", .is_common = true},
    {"device", WEIR_OPT_TEXT, FIELD(device), "cuda[:K]|cpu", "cuda", "device to train on",
     .details = "cpu is only for practice, because it has no GPU idle time.", .is_common = true},
    {"batch-size", WEIR_OPT_INT, FIELD(batch_size), "N", "64", "items per batch", 1, SCENARIO_ITEMS, .unit = "items",
     .topic = "Batches", .is_common = true},
    {"num-workers", WEIR_OPT_INT, FIELD(num_workers), "N", "2", "threads that make items; 0: the loop's thread", 0,
     WEIR_MOCK_WORKERS_MAX, .unit = "threads", .is_common = true},
    {"prefetch-factor", WEIR_OPT_INT, FIELD(prefetch_factor), "N", "2", "batches to prefetch per worker", 1, 1024,
     .unit = "batches"},
    {"persistent-workers", WEIR_OPT_FLAG, FIELD(persistent_workers), NULL, NULL, "same worker threads in all epochs",
     .details = "An epoch has 2048 items."},
    {"pin-memory", WEIR_OPT_FLAG, FIELD(pin_memory), NULL, NULL, "batches in pinned memory; ignored on the CPU"},
    {"seed", WEIR_OPT_UINT64, FIELD(seed), "N", "0", "seed for the items, their order and the network"},
    {"amp", WEIR_OPT_FLAG, FIELD(amp), NULL, NULL, "float16 with a dynamic loss scale; ignored on the CPU",
     .topic = "Step"},
    {"warmup-steps", WEIR_OPT_INT, FIELD(warmup_steps), "N", "10", "steps before the profiler's schedule", 0, 1e6,
     .unit = "steps", .topic = "Recording"},
    {"profile-steps", WEIR_OPT_INT, FIELD(profile_steps), "N", "8", "recorded steps", 1, 10000, .unit = "steps",
     .details = "The schedule is wait=1, warmup=1, active=N, repeat=1.", .is_common = true},
    {"with-stack", WEIR_OPT_FLAG, FIELD(with_stack), NULL, NULL, "C call stacks"},
    {"trace-dir", WEIR_OPT_TEXT, FIELD(trace_dir), "DIR", NULL, "folder for traces (default: none)",
     .path = WEIR_PATH_WRITE_INTO, .details = "Files are called SCENARIO.NS.pt.trace.json.gz.", .is_common = true},
    {"output-json", WEIR_OPT_TEXT, FIELD(output_json), "FILE", NULL, "file for the figures (default: none)",
     .allow_empty = true, .path = WEIR_PATH_WRITE, .details = "With --all, one file per scenario.", .is_common = true},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object", .is_common = true},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "all columns and rows of the tables, and no wrapping"},
};

const char weir_scenario_examples[] =
    "weir scenario --scenario dataloader\tSteps that wait for data: statistics, CUDA operations, and causes "
    "of GPU idle time.\n"
    "weir scenario --scenario sync --pin_memory --fix\tThe same steps with the remedy.\n"
    "weir scenario --all --fix\tAll four bottlenecks, before and after.\n"
    "weir scenario --all --fix --device cpu\tThe same on the CPU, for practice without a GPU.\n"
    "weir scenario --num_workers 8 --prefetch_factor 4 --trace_dir traces && weir report traces\tThe same trace in "
    "weir report.\n";

int weir_scenario_options_check(const struct scenario_options *options, int *gpu, struct weir_err *err)
{
    if (weir_device_parse(options->device, gpu, err) < 0) {
        weir_err_prefix(err, "--device");
        return -EINVAL;
    }
    if (options->trace_dir && strlen(options->trace_dir) > 2048)
        return weir_err_set(err, -EINVAL, "--trace-dir is too long; specify a folder of at most 2048 bytes");
    if (options->output_json && strlen(options->output_json) > 2048)
        return weir_err_set(err, -EINVAL, "--output-json is too long; specify a file name of at most 2048 bytes");
    return 0;
}
