/* prof: measures the cost of the profiler in ns per zone, when off, aggregating and recording. The cost is compared
 * with that of the clock reads in a zone. */
#include "bench/series.h"
#include "cli/options.h"
#include "weir/profiler.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { COUNTS_MAX = 8, THREADS_LARGEST = 64 };

struct prof_options {
    const char *threads;
    int rounds, calls;
    bool json;
};

static const struct weir_opt prof_opts[] = {
    {"threads", WEIR_OPT_TEXT, .offset = offsetof(struct prof_options, threads), "N,N,auto", "1,2",
     "numbers of threads that time zones simultaneously"},
    {"rounds", WEIR_OPT_INT, .offset = offsetof(struct prof_options, rounds), "N", "101",
     "measurements per kind, summed over all threads", 1, SERIES_MAX},
    {"calls", WEIR_OPT_INT, .offset = offsetof(struct prof_options, calls), "N", "12000", "zones per measurement", 256,
     12000},
    {"json", WEIR_OPT_FLAG, .offset = offsetof(struct prof_options, json), .help = "JSON output"},
};

/* ---- kinds of measurement ---- */

static _Thread_local volatile uint64_t sink; /* keeps the compiler from removing clock reads */

static void run_clock(int calls)
{
    uint64_t sum = 0;
    for (int i = 0; i < calls; i++) {
        uint64_t start = weir_clock_ticks();
        sum += weir_clock_ticks() - start;
    }
    sink = sum;
}

static void run_monotonic(int calls)
{
    uint64_t sum = 0;
    for (int i = 0; i < calls; i++) {
        uint64_t start = weir_clock_monotonic_ns();
        sum += weir_clock_monotonic_ns() - start;
    }
    sink = sum;
}

static void run_cpu_clock(int calls)
{
    struct timespec ts;
    for (int i = 0; i < calls; i++) {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    }
    sink = (uint64_t)ts.tv_nsec;
}

/* Keeps the compiler from merging consecutive zones. Real work between the zones has the same effect. */
static inline void forget(void)
{
    __asm__ volatile("" ::: "memory");
}

static void run_zone(int calls)
{
    for (int i = 0; i < calls; i++) {
        forget();
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
    }
}

static void run_nested(int calls)
{
    for (int i = 0; i < calls; i += 2) {
        forget();
        WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
        forget();
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
    }
}

static void run_carve(int calls)
{
    for (int i = 0; i < calls; i++) {
        forget();
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
        weir_zone_carve(WEIR_STAGE_TO_TENSOR, 1);
    }
}

static void run_lap(int calls)
{
    struct weir_lap lap = weir_lap_begin();
    for (int i = 0; i < calls; i++) {
        forget();
        weir_lap(&lap, WEIR_STAGE_IMAGE_DECODE);
    }
}

static void run_span(int calls)
{
    uint64_t start = weir_clock_ticks();
    for (int i = 0; i < calls; i++) {
        forget();
        weir_span(WEIR_STAGE_TOTAL_GETITEM, start, weir_clock_ticks());
    }
}

static void run_range(int calls)
{
    for (int i = 0; i < calls; i++) {
        forget();
        WEIR_RANGE("range");
    }
}

static void run_item(int calls)
{
    weir_item_self = 1;
    run_zone(calls);
    weir_item_self = 0;
}

static const struct kind {
    const char *name, *key;
    bool attached, recorded;
    void (*run)(int calls);
} kinds[] = {
    {"two clock reads, like those of a zone", "two_clock_reads", false, false, run_clock},
    {"two reads of CLOCK_MONOTONIC", "two_monotonic_reads", false, false, run_monotonic},
    {"two reads of the thread's CPU clock", "two_cpu_clock_reads", false, false, run_cpu_clock},
    {"zone, off", "zone_off", false, false, run_zone},
    {"range, off", "range_off", false, false, run_range},
    {"zone, aggregated", "zone", true, false, run_zone},
    {"zone inside a zone, mean, aggregated", "zone_nested", true, false, run_nested},
    {"zone and a carve, aggregated", "zone_and_carve", true, false, run_carve},
    {"lap (one clock read), aggregated", "lap", true, false, run_lap},
    {"span (one clock read), aggregated", "span", true, false, run_span},
    {"zone, aggregated and recorded", "zone_recorded", true, true, run_zone},
    {"zone with an item, aggregated, recorded", "zone_item_recorded", true, true, run_item},
    {"lap, aggregated and recorded", "lap_recorded", true, true, run_lap},
    {"range, recorded", "range_recorded", false, true, run_range},
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

/* ---- measuring ---- */

struct bench {
    const struct prof_options *options;
    struct weir_recorder *recorder;
    struct weir_profiler *profiler;
    int threads, rounds; /* rounds: number per thread */
    pthread_barrier_t barrier;
    pthread_mutex_t lock;
    struct series *ns, *beside; /* per kind; beside is ns minus the two clock reads of the same round */
    uint64_t dropped;
    bool failed;
};

static void on_window(void *user, const struct weir_profiler_window *window)
{
    struct bench *bench = user;
    bench->dropped += window->dropped;
}

static void attach(struct bench *bench, bool attached)
{
    if (attached && !weir_thread_self && weir_thread_attach(bench->recorder, "prof", WEIR_ROLE_OTHER) < 0)
        bench->failed = true; /* results are discarded, but other threads wait for this one */
    if (!attached)
        weir_thread_detach();
}

/* Measures kind k on all threads simultaneously. The first thread starts and stops recording, and waits until the
 * records are drained. */
static void measure(struct bench *bench, int k, bool first, bool keep, double *reads_ns)
{
    int calls = bench->options->calls;
    if (first && kinds[k].recorded && weir_profiler_start(bench->profiler, NULL) < 0)
        bench->failed = true;
    attach(bench, kinds[k].attached);
    pthread_barrier_wait(&bench->barrier);
    kinds[k].run(64); /* allocates cells and rings, and warms up the caches */
    uint64_t start = weir_clock_ticks();
    kinds[k].run(calls);
    double ns = (double)weir_clock_to_ns(weir_clock_ticks() - start) / calls;
    pthread_barrier_wait(&bench->barrier);
    if (first && kinds[k].recorded) {
        weir_profiler_stop(bench->profiler);
        weir_profiler_flush(bench->profiler);
    }
    pthread_mutex_lock(&bench->lock);
    if (k == 0)
        *reads_ns = ns;
    if (keep) {
        series_add(&bench->ns[k], ns);
        series_add(&bench->beside[k], ns - *reads_ns);
    }
    pthread_mutex_unlock(&bench->lock);
}

struct member {
    struct bench *bench;
    bool first;
};

static void *thread_main(void *user)
{
    const struct member *member = user;
    double reads_ns = 0;
    for (int round = -1; round < member->bench->rounds; round++)
        for (int k = 0; k < KIND_COUNT; k++)
            measure(member->bench, k, member->first, round >= 0, &reads_ns);
    weir_thread_detach();
    return NULL;
}

static int run_threads(struct bench *bench)
{
    pthread_t ids[THREADS_LARGEST];
    struct member members[THREADS_LARGEST];
    pthread_barrier_init(&bench->barrier, NULL, (unsigned)bench->threads);
    for (int i = 0; i < bench->threads; i++) {
        members[i] = (struct member){bench, i == 0};
        if (pthread_create(&ids[i], NULL, thread_main, &members[i]) != 0)
            return -EAGAIN; /* the started threads wait at the barrier, so the program must end now */
    }
    for (int i = 0; i < bench->threads; i++)
        pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&bench->barrier);
    return bench->failed ? -ENOMEM : 0;
}

static int measure_threads(const struct prof_options *o, int threads, struct series *ns, struct series *beside,
                           uint64_t *dropped)
{
    struct bench bench = {
        .options = o, .threads = threads, .ns = ns, .beside = beside, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct weir_profiler_config config;
    bench.rounds = (o->rounds + threads - 1) / threads;
    weir_profiler_config_default(&config);
    config.on_trace_ready = on_window;
    config.user = &bench;
    int rc = weir_loader_stages();
    if (rc == 0)
        rc = weir_recorder_open(&bench.recorder);
    if (rc == 0)
        rc = weir_profiler_open(&bench.profiler, &config, NULL);
    if (rc == 0)
        rc = run_threads(&bench);
    if (rc < 0)
        return rc;
    weir_profiler_close(&bench.profiler);
    weir_recorder_close(&bench.recorder);
    *dropped += bench.dropped;
    return 0;
}

/* ---- the program ---- */

static void print_text(const int *threads, int n, const struct series *ns, const struct series *beside)
{
    bench_print_machine();
    printf("clock:   %s, calibrated to %.2f ppm\n", weir_clock.tsc ? "time stamp counter (rdtsc)" : "CLOCK_MONOTONIC",
           weir_clock.error_ppm);
    printf(
        "\nthreads  ns each, including loop                     n       min    median       p99       max     minus two"
        " clock reads\n");
    for (int i = 0; i < n * KIND_COUNT; i++)
        printf("%7d  %-40s %4d  %8.2f  %8.2f  %8.2f  %8.2f    %+8.2f\n", threads[i / KIND_COUNT],
               kinds[i % KIND_COUNT].name, ns[i].n, series_at(&ns[i], 0), series_at(&ns[i], 0.5),
               series_at(&ns[i], 0.99), series_at(&ns[i], 1), series_at(&beside[i], 0.5));
}

static void print_json(const struct weir_command *command, const struct prof_options *o, const int *threads, int n,
                       const struct series *ns, const struct series *beside)
{
    struct weir_json json;
    bench_json_begin(&json, command, o);
    weir_json_bool(&json, "clock_is_tsc", weir_clock.tsc);
    weir_json_double(&json, "clock_error_ppm", weir_clock.error_ppm);
    weir_json_array(&json, "threads");
    for (int t = 0; t < n; t++) {
        weir_json_object(&json, NULL);
        weir_json_int(&json, "threads", threads[t]);
        for (int k = 0; k < KIND_COUNT; k++) {
            char key[64];
            snprintf(key, sizeof key, "%s_ns", kinds[k].key);
            series_json(&json, key, &ns[t * KIND_COUNT + k]);
            snprintf(key, sizeof key, "%s_beside_reads_ns", kinds[k].key);
            series_json(&json, key, &beside[t * KIND_COUNT + k]);
        }
        weir_json_end(&json, '}');
    }
    weir_json_end(&json, ']');
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static int prof_main(const struct weir_command *command, int argc, char **argv)
{
    struct prof_options o;
    struct weir_err err = WEIR_ERR_NONE;
    static struct series ns[COUNTS_MAX * KIND_COUNT], beside[COUNTS_MAX * KIND_COUNT];
    int threads[COUNTS_MAX];
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, NULL, &(int){0});
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    int n = bench_counts("threads", o.threads, THREADS_LARGEST, threads, COUNTS_MAX, &err);
    if (n < 0) {
        fprintf(stderr, "prof: %s\n", err.text);
        return 2;
    }
    weir_clock_init();
    uint64_t dropped = 0;
    for (int i = 0; i < n; i++)
        if (measure_threads(&o, threads[i], &ns[i * KIND_COUNT], &beside[i * KIND_COUNT], &dropped) < 0) {
            fprintf(stderr, "prof: cannot start a thread, or out of memory\n");
            return 1;
        }
    if (dropped)
        fprintf(stderr, "prof: %llu records were dropped, so the costs of recording are too low\n",
                (unsigned long long)dropped);
    if (o.json)
        print_json(command, &o, threads, n, ns, beside);
    else
        print_text(threads, n, ns, beside);
    return 0;
}

static const struct weir_command prof_command = {
    .name = "prof",
    .summary =
        "Cost of the profiler in ns per zone, when off, aggregating and recording, compared with its clock reads.",
    .opts = prof_opts,
    .n_opts = sizeof prof_opts / sizeof prof_opts[0],
    .run = prof_main,
};

int main(int argc, char **argv)
{
    return prof_main(&prof_command, argc, argv);
}
