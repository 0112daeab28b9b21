/* watch_cost: measures what a watched worker's calls of weir.watch cost in C: a zone, an item with a file, and a batch,
 * which also reads the kernel's figures of its thread. */
#include "bench/series.h"
#include "prof/watch/watch.h"
#include "weir/recorder.h"

#include <stdlib.h>

struct cost_options {
    int rounds, calls;
    bool json;
};

static const struct weir_opt cost_opts[] = {
    {"rounds", WEIR_OPT_INT, .offset = offsetof(struct cost_options, rounds), "N", "101", "measurements per kind", 1,
     SERIES_MAX},
    {"calls", WEIR_OPT_INT, .offset = offsetof(struct cost_options, calls), "N", "4000", "calls per measurement", 16,
     1000000},
    {"json", WEIR_OPT_FLAG, .offset = offsetof(struct cost_options, json), .help = "JSON output"},
};

static int read_stage;

static void run_zone(int i)
{
    (void)i;
    weir_watch_begin(read_stage);
    weir_watch_end();
}

static void run_item(int i)
{
    static const char *const paths[] = {"/data/episode_0.hdf5", "/data/episode_1.hdf5", "/data/episode_2.hdf5"};
    weir_watch_item_begin(i);
    weir_watch_path(paths[i % 3]);
    weir_watch_item_end();
}

static void run_batch(int i)
{
    weir_watch_batch_begin(i);
    weir_watch_batch_end(1);
}

static const struct {
    const char *name;
    void (*run)(int i);
} kinds[] = {{"zone", run_zone}, {"item with a file", run_item}, {"batch", run_batch}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static double ns_per_call(void (*run)(int i), int calls)
{
    uint64_t start = weir_clock_monotonic_ns();
    for (int i = 0; i < calls; i++)
        run(i);
    return (double)(weir_clock_monotonic_ns() - start) / calls;
}

static int measure(const struct cost_options *options, struct series series[KINDS])
{
    char why[256];
    struct weir_watch *watch = weir_watch_create(why, sizeof why);
    if (!watch || weir_watch_loader(watch, "bench") < 0 || weir_watch_thread(watch, 0, WEIR_WATCH_WORKER, 0) < 0) {
        fprintf(stderr, "watch_cost: %s\n", watch ? "no slot" : why);
        weir_watch_close(watch);
        return -1;
    }
    read_stage = weir_watch_stage("03_read", 0);
    for (int round = 0; round < options->rounds; round++)
        for (int kind = 0; kind < KINDS; kind++)
            series_add(&series[kind], ns_per_call(kinds[kind].run, options->calls));
    weir_watch_close(watch);
    return 0;
}

static int cost_main(const struct weir_command *command, int argc, char **argv)
{
    static struct series series[KINDS];
    struct cost_options options;
    struct weir_json json;
    int n;
    enum weir_parse parse = weir_options_parse(command, &options, sizeof options, argc, argv, NULL, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    if (measure(&options, series) < 0)
        return 1;
    if (options.json) {
        bench_json_begin(&json, command, &options);
        for (int kind = 0; kind < KINDS; kind++)
            series_json(&json, kinds[kind].name, &series[kind]);
        weir_json_end(&json, '}');
        weir_json_close(&json);
        return 0;
    }
    bench_print_machine();
    printf("%-20s %10s %10s %10s\n", "ns per call", "min", "median", "p99");
    for (int kind = 0; kind < KINDS; kind++)
        printf("%-20s %10.1f %10.1f %10.1f\n", kinds[kind].name, series_at(&series[kind], 0),
               series_at(&series[kind], 0.5), series_at(&series[kind], 0.99));
    return 0;
}

static const struct weir_command cost_command = {
    .name = "watch_cost",
    .summary = "measure what a watched worker's calls cost",
    .opts = cost_opts,
    .n_opts = sizeof cost_opts / sizeof *cost_opts,
    .run = cost_main,
};

int main(int argc, char **argv)
{
    return cost_main(&cost_command, argc, argv);
}
