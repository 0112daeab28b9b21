/* zones: what the timers cost, ns per zone, beside the clock reads they are made of. */
#include "bench/series.h"
#include "cli/options.h"
#include "prof/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { COUNTS_MAX = 8, THREADS_LARGEST = 64 };

struct zones_options {
    const char *threads;
    int rounds, calls;
    bool json;
};

static const struct weir_opt zones_opts[] = {
    {"threads", WEIR_OPT_TEXT, .offset = offsetof(struct zones_options, threads), "N,N,auto", "1,2",
     "numbers of threads that time zones at once"},
    {"rounds", WEIR_OPT_INT, .offset = offsetof(struct zones_options, rounds), "N", "201",
     "measurements of each kind, of all threads together", 1, SERIES_MAX},
    {"calls", WEIR_OPT_INT, .offset = offsetof(struct zones_options, calls), "N", "20000", "zones in a measurement",
     256, 100000000},
    {"json", WEIR_OPT_FLAG, .offset = offsetof(struct zones_options, json), .help = "print JSON"},
};

/* ---- the kinds ---- */

static _Thread_local volatile uint64_t sink; /* keeps clock reads from being optimised away */

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

/* The compiler may carry nothing over from one zone to the next, as between zones of real work. */
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

static void run_carve(int calls)
{
    for (int i = 0; i < calls; i++) {
        forget();
        WEIR_ZONE(WEIR_STAGE_IMAGE_DECODE);
        weir_zone_carve(WEIR_STAGE_TO_TENSOR, 1);
    }
}

static void run_span(int calls)
{
    uint64_t start = weir_clock_ticks();
    for (int i = 0; i < calls; i++) {
        forget();
        weir_span(WEIR_STAGE_TOTAL_GETITEM, weir_clock_ticks() - start);
    }
}

static const struct kind {
    const char *name, *key;
    bool attached;
    void (*run)(int calls);
} kinds[] = {
    {"two clock reads, as a zone makes", "two_clock_reads", false, run_clock},
    {"two reads of CLOCK_MONOTONIC", "two_monotonic_reads", false, run_monotonic},
    {"two reads of the thread's CPU clock", "two_cpu_clock_reads", false, run_cpu_clock},
    {"zone, thread not attached", "zone_not_attached", false, run_zone},
    {"zone", "zone", true, run_zone},
    {"zone and a carve", "zone_and_carve", true, run_carve},
    {"span (one clock read)", "span", true, run_span},
};
enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

/* ---- measuring ---- */

struct bench {
    const struct zones_options *options;
    const struct kind *kind;
    struct weir_recorder *recorder;
    int rounds; /* of each thread */
    pthread_barrier_t start;
    pthread_mutex_t lock;
    struct series ns;
    bool failed;
};

static void measure_rounds(struct bench *bench)
{
    int calls = bench->options->calls;
    bench->kind->run(calls); /* warm-up: makes the stage's cells */
    for (int i = 0; i < bench->rounds; i++) {
        pthread_barrier_wait(&bench->start);
        uint64_t start = weir_clock_ticks();
        bench->kind->run(calls);
        double ns = (double)weir_clock_to_ns(weir_clock_ticks() - start) / calls;
        pthread_mutex_lock(&bench->lock);
        series_add(&bench->ns, ns);
        pthread_mutex_unlock(&bench->lock);
    }
}

static void *thread_main(void *user)
{
    struct bench *bench = user;
    if (bench->kind->attached && weir_thread_attach(bench->recorder, "zones", WEIR_ROLE_OTHER) < 0)
        bench->failed = true; /* still measured, and thrown away: the others wait at the barrier */
    measure_rounds(bench);
    weir_thread_detach();
    return NULL;
}

static int run_threads(struct bench *bench, int threads)
{
    pthread_t ids[THREADS_LARGEST];
    pthread_barrier_init(&bench->start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, thread_main, bench) != 0)
            return -EAGAIN; /* the threads that run wait for ever: the program ends now */
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&bench->start);
    return bench->failed ? -ENOMEM : 0;
}

static int measure(const struct zones_options *o, const struct kind *kind, int threads, struct series *ns)
{
    int rounds = (o->rounds + threads - 1) / threads;
    struct bench bench = {.options = o, .kind = kind, .rounds = rounds, .lock = PTHREAD_MUTEX_INITIALIZER};
    int rc = weir_recorder_open(&bench.recorder);
    if (rc == 0)
        rc = run_threads(&bench, threads);
    if (rc == 0)
        weir_recorder_close(&bench.recorder);
    *ns = bench.ns;
    return rc;
}

/* ---- the program ---- */

static void print_text(const int *threads, int n, const struct series *ns)
{
    bench_print_machine();
    printf("clock:   %s, calibrated to %.2f ppm\n", weir_clock.tsc ? "time stamp counter (rdtsc)" : "CLOCK_MONOTONIC",
           weir_clock.error_ppm);
    printf("\nthreads  ns each, loop included                      n       min    median       p99       max\n");
    for (int i = 0; i < n * KIND_COUNT; i++)
        printf("%7d  %-40s %4d  %8.2f  %8.2f  %8.2f  %8.2f\n", threads[i / KIND_COUNT], kinds[i % KIND_COUNT].name,
               ns[i].n, series_at(&ns[i], 0), series_at(&ns[i], 0.5), series_at(&ns[i], 0.99), series_at(&ns[i], 1));
}

static void print_json(const struct weir_command *command, const struct zones_options *o, const int *threads, int n,
                       const struct series *ns)
{
    struct weir_json json;
    weir_json_open(&json, stdout, true);
    weir_json_object(&json, NULL);
    bench_json_machine(&json);
    weir_json_object(&json, "config");
    weir_options_json(command, o, &json);
    weir_json_end(&json, '}');
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
        }
        weir_json_end(&json, '}');
    }
    weir_json_end(&json, ']');
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static int zones_main(const struct weir_command *command, int argc, char **argv)
{
    struct zones_options o;
    struct weir_err err = WEIR_ERR_NONE;
    static struct series ns[COUNTS_MAX * KIND_COUNT];
    int threads[COUNTS_MAX];
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, NULL, &(int){0});
    if (parse != WEIR_PARSE_RUN)
        return parse == WEIR_PARSE_HELP ? 0 : 2;
    int n = bench_counts("threads", o.threads, THREADS_LARGEST, threads, COUNTS_MAX, &err);
    if (n < 0) {
        fprintf(stderr, "zones: %s\n", err.text);
        return 2;
    }
    weir_clock_init();
    for (int i = 0; i < n * KIND_COUNT; i++)
        if (measure(&o, &kinds[i % KIND_COUNT], threads[i / KIND_COUNT], &ns[i]) < 0) {
            fprintf(stderr, "zones: a thread cannot be started, or memory is short\n");
            return 1;
        }
    if (o.json)
        print_json(command, &o, threads, n, ns);
    else
        print_text(threads, n, ns);
    return 0;
}

static const struct weir_command zones_command = {
    .name = "zones",
    .summary = "Cost of the timers: ns per zone, beside the clock reads they are made of.",
    .opts = zones_opts,
    .n_opts = sizeof zones_opts / sizeof zones_opts[0],
    .run = zones_main,
};

int main(int argc, char **argv)
{
    return zones_main(&zones_command, argc, argv);
}
