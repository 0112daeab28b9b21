/* handoff: measures how batches get from the workers to the consumer. It measures weir_loader_next for a ready batch,
 * the delay between a batch's last task and a waiting consumer, and the time for a one-sample batch requested from idle
 * workers. That time is compared with the time of the sample's slowest frame. */
#include "base/resources.h"
#include "bench/series.h"
#include "cli/options.h"
#include "datasets/synth/synth.h"
#include "weir/loader.h"
#include "weir/stages.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct handoff_options {
    const char *data;
    int batches, batch_size, prefetch, num_workers;
    bool json;
};

static const struct weir_opt handoff_opts[] = {
    {"data", WEIR_OPT_TEXT, .offset = offsetof(struct handoff_options, data), "DIR", "build/bench-handoff",
     "JPEG dataset; generated if missing (640x480, 4 cameras)"},
    {"batches", WEIR_OPT_INT, .offset = offsetof(struct handoff_options, batches), "N", "300",
     "batches per kind of measurement", 1, SERIES_MAX},
    {"batch-size", WEIR_OPT_INT, .offset = offsetof(struct handoff_options, batch_size), "N", "2",
     "samples per batch, except on demand", 1, 1024},
    {"prefetch", WEIR_OPT_INT, .offset = offsetof(struct handoff_options, prefetch), "N", "4",
     "batches to prefetch, except on demand", 1, 4096},
    {"num-workers", WEIR_OPT_INT, .offset = offsetof(struct handoff_options, num_workers), "N", "auto",
     "worker threads; auto: one per usable core", 1, WEIR_WORKERS_MAX, true},
    {"json", WEIR_OPT_FLAG, .offset = offsetof(struct handoff_options, json), .help = "JSON output"},
};

enum { ON_DEMAND_CORES = 4 };
static const double READY_P50_US = 5, READY_P99_US = 50, ON_DEMAND_RATIO = 1.3;

enum { READY, RELEASE, WAITING, ON_DEMAND, SLOWEST, RATIO, KINDS };
static const struct {
    const char *key, *name;
} kinds[KINDS] = {
    {"next_ready_us", "weir_loader_next for a ready batch, us"},
    {"release_us", "weir_loader_release, us"},
    {"wake_us", "from the last task to a waiting consumer, us"},
    {"on_demand_us", "one sample on demand, from release to next, us"},
    {"slowest_frame_us", "the slowest camera of that sample, us"},
    {"on_demand_ratio", "one sample / its slowest camera"},
};

static void sleep_ns(uint64_t ns)
{
    nanosleep(&(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}, NULL);
}

static double us_between(uint64_t begin_ns, uint64_t end_ns)
{
    return (double)(end_ns - begin_ns) / 1e3;
}

static int make_data(const char *path, struct weir_err *err)
{
    struct stat st;
    struct weir_synth_config config;
    char part[PATH_MAX];
    if (stat(path, &st) == 0)
        return 0;
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return weir_err_set(err, -ENAMETOOLONG, "%s: the path is too long", path);
    weir_synth_config_default(&config);
    config.out = part;
    config.format = "act-jpeg";
    config.cameras = "top,left,right,low";
    config.episodes = 2;
    config.steps = 25;
    fprintf(stderr, "generating %s: 200 frames of 640x480 at quality 95\n", path);
    int rc = weir_synth_write(&config, err);
    return rc == 0 && rename(part, path) != 0 ? weir_err_set(err, -errno, "%s: %s", path, strerror(errno)) : rc;
}

static int open_loader(const struct handoff_options *o, int batch_size, int prefetch, struct weir_loader **loader,
                       struct weir_err *err)
{
    struct weir_loader_config config;
    weir_loader_config_default(&config);
    config.data = o->data;
    config.num_workers = o->num_workers == WEIR_OPT_AUTO ? WEIR_WORKERS_AUTO : o->num_workers;
    config.batch_size = batch_size;
    config.prefetch = prefetch;
    config.num_epochs = 1000000; /* more than needed; the benchmark stops after a number of batches */
    config.train_split = 1;
    return weir_loader_open(loader, &config, err);
}

/* ---- a consumer that computes, and one that only waits ---- */

/* Requests batches, and sleeps step_ns before each request. A batch counts as ready if its last task had ended before
 * the request. Measures ready batches if step_ns > 0, otherwise batches that were not ready. */
static int take(struct weir_loader *loader, int batches, uint64_t step_ns, struct series *series, struct weir_err *err)
{
    for (int i = 0, tries = 0; i < batches && tries < 4 * batches; tries++) {
        struct weir_batch *batch;
        sleep_ns(step_ns);
        uint64_t begin_ns = weir_clock_monotonic_ns();
        int rc = weir_loader_next(loader, &batch, err);
        uint64_t end_ns = weir_clock_monotonic_ns();
        if (rc <= 0)
            return rc < 0 ? rc : weir_err_set(err, -EINTR, "the loader was stopped early");
        bool ready = batch->ready_ns < begin_ns;
        if (ready && step_ns)
            series_add(&series[READY], us_between(begin_ns, end_ns));
        else if (!ready && !step_ns)
            series_add(&series[WAITING], us_between(batch->ready_ns, end_ns));
        i += ready == (step_ns > 0);
        begin_ns = weir_clock_monotonic_ns();
        weir_loader_release(loader, batch);
        if (ready && step_ns)
            series_add(&series[RELEASE], us_between(begin_ns, weir_clock_monotonic_ns()));
    }
    return 0;
}

static int measure_delivery(const struct handoff_options *o, struct series *series, struct weir_err *err)
{
    struct weir_loader *loader;
    int rc = open_loader(o, o->batch_size, o->prefetch, &loader, err);
    uint64_t begin_ns = weir_clock_monotonic_ns();
    if (rc == 0)
        rc = take(loader, o->batches, 0, series, err);
    uint64_t batch_ns = (weir_clock_monotonic_ns() - begin_ns) / (uint64_t)o->batches;
    if (rc == 0)
        rc = take(loader, o->batches, 2 * batch_ns, series, err);
    weir_loader_close(&loader);
    return rc;
}

/* ---- one sample on demand ---- */

/* Returns the longest camera task since the snapshot *last, and replaces *last with a new snapshot. */
static int slowest_frame(struct weir_loader *loader, struct weir_snapshot **last, double *us)
{
    struct weir_snapshot *now, *diff;
    int rc = weir_snapshot_take(weir_loader_recorder(loader), &now);
    if (rc < 0)
        return rc;
    rc = weir_snapshot_diff(now, *last, &diff);
    if (rc == 0)
        *us = (double)diff->stages[WEIR_STAGE_ONE_CAMERA].max_ns / 1e3;
    weir_snapshot_free(&diff);
    weir_snapshot_free(last);
    *last = now;
    return rc;
}

/* Measures one-sample batches from idle workers. The workers are idle because the consumer holds both slots until it
 * releases one. */
static int demand(struct weir_loader *loader, int batches, struct series *series, struct weir_err *err)
{
    struct weir_batch *held, *batch;
    struct weir_snapshot *last = NULL;
    double frame_us = 0;
    int rc = weir_loader_next(loader, &held, err);
    if (rc > 0)
        rc = weir_loader_next(loader, &batch, err);
    for (int i = 0; i < batches && rc > 0; i++) {
        if (slowest_frame(loader, &last, &frame_us) < 0)
            rc = weir_err_set(err, -ENOMEM, "out of memory");
        sleep_ns(500000); /* gives all workers time to fall asleep */
        uint64_t begin_ns = weir_clock_monotonic_ns();
        weir_loader_release(loader, held);
        held = batch;
        rc = rc > 0 ? weir_loader_next(loader, &batch, err) : rc;
        double us = us_between(begin_ns, weir_clock_monotonic_ns());
        if (rc > 0 && slowest_frame(loader, &last, &frame_us) < 0)
            rc = weir_err_set(err, -ENOMEM, "out of memory");
        series_add(&series[ON_DEMAND], us);
        series_add(&series[SLOWEST], frame_us);
        series_add(&series[RATIO], frame_us > 0 ? us / frame_us : 0);
    }
    weir_snapshot_free(&last);
    return rc < 0 ? rc : 0;
}

static int measure_demand(const struct handoff_options *o, struct series *series, struct weir_err *err)
{
    struct weir_loader *loader;
    int rc = open_loader(o, 1, 1, &loader, err);
    if (rc == 0)
        rc = demand(loader, o->batches, series, err);
    weir_loader_close(&loader);
    return rc;
}

/* ---- the program ---- */

static const char *verdict(bool fine)
{
    return fine ? "PASS" : "MISS";
}

static void print_text(const struct series *series)
{
    bench_print_machine();
    printf("\n%-50s     n       min       p50       p90       p99       max\n", "");
    for (int k = 0; k < KINDS; k++)
        printf("%-50s  %4d  %8.2f  %8.2f  %8.2f  %8.2f  %8.2f\n", kinds[k].name, series[k].n, series_at(&series[k], 0),
               series_at(&series[k], 0.5), series_at(&series[k], 0.9), series_at(&series[k], 0.99),
               series_at(&series[k], 1));
    printf("\n%s: a ready batch is delivered within %.0f us (p50) and %.0f us (p99)\n",
           verdict(series_at(&series[READY], 0.5) <= READY_P50_US && series_at(&series[READY], 0.99) <= READY_P99_US),
           READY_P50_US, READY_P99_US);
    if (weir_cores_usable() < ON_DEMAND_CORES)
        printf("one sample of 4 cameras compared with its slowest frame: needs %d cores, but only %d are usable\n",
               ON_DEMAND_CORES, weir_cores_usable());
    else
        printf("%s: one sample takes at most %.1f times as long as its slowest frame (p50)\n",
               verdict(series_at(&series[RATIO], 0.5) <= ON_DEMAND_RATIO), ON_DEMAND_RATIO);
}

static void print_json(const struct weir_command *command, const struct handoff_options *o, const struct series *series)
{
    struct weir_json json;
    bench_json_begin(&json, command, o);
    for (int k = 0; k < KINDS; k++)
        series_json(&json, kinds[k].key, &series[k]);
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static int handoff_main(const struct weir_command *command, int argc, char **argv)
{
    static struct series series[KINDS];
    struct handoff_options o;
    struct weir_err err = WEIR_ERR_NONE;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, NULL, &(int){0});
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    int rc = make_data(o.data, &err);
    if (rc == 0)
        rc = measure_delivery(&o, series, &err);
    if (rc == 0)
        rc = measure_demand(&o, series, &err);
    if (rc < 0) {
        fprintf(stderr, "handoff: %s\n", err.text);
        return 1;
    }
    if (o.json)
        print_json(command, &o, series);
    else
        print_text(series);
    return 0;
}

static const struct weir_command handoff_command = {
    .name = "handoff",
    .summary = "Delivery of batches from the workers to the consumer, in microseconds.",
    .opts = handoff_opts,
    .n_opts = sizeof handoff_opts / sizeof handoff_opts[0],
    .notes = "Speed is printed as PASS or MISS, and does not affect the exit status.",
    .run = handoff_main,
};

int main(int argc, char **argv)
{
    return handoff_command.run(&handoff_command, argc, argv);
}
