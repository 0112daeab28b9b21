#include "extras/scenario/cli/scenario_options.h"
#include "extras/scenario/item_feed.h"
#include "pipeline/gpu/gpu.h"

#include <errno.h>
#include <string.h>

#define FIELD(field) .offset = offsetof(struct scenario_options, field)

const struct weir_opt weir_scenario_opts[SCENARIO_OPTS] = {
    {"scenario", WEIR_OPT_ENUM, FIELD(scenario), "dataloader|sync|tiny_ops|memory_churn", "dataloader",
     "the bottleneck that the steps have"},
    {"all", WEIR_OPT_FLAG, FIELD(all), NULL, NULL, "run the four, and print them side by side"},
    {"fix", WEIR_OPT_FLAG, FIELD(fix), NULL, NULL, "apply the remedy; with --all run each without it and with it"},
    {"batch-size", WEIR_OPT_INT, FIELD(batch_size), "N", "64", "items in a batch", 1, SCENARIO_ITEMS},
    {"num-workers", WEIR_OPT_INT, FIELD(num_workers), "N", "2", "threads that make items; 0: the loop's thread does", 0,
     WEIR_FEED_WORKERS_MAX},
    {"prefetch-factor", WEIR_OPT_INT, FIELD(prefetch_factor), "N", "2",
     "batches per worker that are begun before they are asked for", 1, 1024},
    {"persistent-workers", WEIR_OPT_FLAG, FIELD(persistent_workers), NULL, NULL,
     "workers stay from epoch to epoch (an epoch has 2048 items)"},
    {"pin-memory", WEIR_OPT_FLAG, FIELD(pin_memory), NULL, NULL, "batches lie in pinned memory; else it is pageable"},
    {"amp", WEIR_OPT_FLAG, FIELD(amp), NULL, NULL, "compute in float16, with a dynamic loss scale"},
    {"seed", WEIR_OPT_UINT64, FIELD(seed), "N", "0", "of the items, their order and the network"},
    {"device", WEIR_OPT_TEXT, FIELD(device), "cuda[:K]|cpu", "cuda",
     "the GPU; cpu: for practice, without GPU idle time"},
    {"warmup-steps", WEIR_OPT_INT, FIELD(warmup_steps), "N", "10", "steps before the profiler's schedule begins", 0,
     1e6},
    {"profile-steps", WEIR_OPT_INT, FIELD(profile_steps), "N", "8",
     "steps that are recorded, behind two more: wait=1, warmup=1, active=N, repeat=1", 1, 10000},
    {"with-stack", WEIR_OPT_FLAG, FIELD(with_stack), NULL, NULL, "record C call stacks, too"},
    {"trace-dir", WEIR_OPT_TEXT, FIELD(trace_dir), "DIR", "results/traces/profiler_demo",
     "where traces are written, SCENARIO.NS.pt.trace.json.gz", .path = WEIR_PATH_WRITE_INTO},
    {"output-json", WEIR_OPT_TEXT, FIELD(output_json), "FILE", "results/metrics_demo.json",
     "where the figures are written; with --all a file for each scenario; empty: nowhere", .allow_empty = true,
     .path = WEIR_PATH_WRITE},
};

/* Every option but --help is in one of them. */
const struct weir_opt_topic weir_scenario_topics[] = {
    {"What is run", "scenario all fix device"},
    {"Batches", "batch-size num-workers prefetch-factor persistent-workers pin-memory seed"},
    {"The step", "amp"},
    {"Recording", "warmup-steps profile-steps with-stack trace-dir output-json"},
    {NULL, NULL},
};

const char weir_scenario_examples[] =
    "weir scenario --scenario dataloader\tSteps that wait for data: quick statistics, CUDA operations, and what the "
    "GPU waited for.\n"
    "weir scenario --scenario sync --pin_memory --fix\tThe same steps with the remedy.\n"
    "weir scenario --all --fix\tThe four bottlenecks side by side, before and after.\n"
    "weir scenario --all --fix --device cpu\tFor practice without a GPU.\n"
    "weir scenario --num_workers 8 --prefetch_factor 4 && weir report results/traces/profiler_demo\tThe trace once "
    "more, as any trace.\n";

int weir_scenario_options_check(const struct scenario_options *options, int *gpu, struct weir_err *err)
{
    if (weir_device_parse(options->device, gpu, err) < 0) {
        weir_err_prefix(err, "--device");
        return -EINVAL;
    }
    if (*gpu < 0 && (options->amp || options->pin_memory))
        return weir_err_set(err, -EINVAL, "--%s is for a GPU: --device is cpu; leave one of them out",
                            options->amp ? "amp" : "pin-memory");
    if (!*options->trace_dir || strlen(options->trace_dir) > 2048)
        return weir_err_set(err, -EINVAL, "--trace-dir is %s; give a folder",
                            *options->trace_dir ? "too long" : "empty");
    if (strlen(options->output_json) > 2048)
        return weir_err_set(err, -EINVAL, "--output-json is too long; give a file");
    return 0;
}
