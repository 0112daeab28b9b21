/* A stress test, mainly for ThreadSanitizer. Several loaders run on their own threads, with random numbers of workers
 * and slots, damaged frames and error policies. Other threads stop them at random moments, and read their snapshots,
 * counts and faults. Half of the loaders use the fake GPU. A plain program, because Criterion does not start under
 * ThreadSanitizer. Runs for SECONDS, or longer if some kinds of run have not occurred by then. Usage: stress_loader
 * [SECONDS [SEED]] */
#include "io/io.h"
#include "pipeline/gpu/gpu.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/loader.h"
#include "weir/profiler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNNERS = 3, EPISODES = 4, STEPS = 6, FRAMES_BAD = 10 };

static const char *const formats[] = {"act", "robomimic-gzip", "act-jpeg", "astrobench"};
enum { FORMATS = sizeof formats / sizeof formats[0], DATA_SETS = 2 * FORMATS, JPEGS = 2 };
static const char *data_sets[DATA_SETS], *indexes[DATA_SETS]; /* every format undamaged, then every format damaged */
static uint64_t end_ns, last_ns; /* end if all kinds of run have occurred, and the latest end */
static bool uring, direct;       /* supported by this machine */

struct runner {
    pthread_t thread;
    uint64_t random;
    uint64_t runs, batches, samples, stopped, failed, skipped, substituted, snapshots, fed;
};

/* Flags of the kinds of run that must all occur. */
enum { STOPPED = 1, FAILED = 2, SKIPPED = 4, SUBSTITUTED = 8, LOOKED_AT = 16, FED = 32, ALL = 63, PATIENCE = 12 };
static _Atomic unsigned happened;

static void note_kinds(const struct runner *r)
{
    atomic_fetch_or(&happened, (r->stopped ? STOPPED : 0u) | (r->failed ? FAILED : 0u) | (r->skipped ? SKIPPED : 0u) |
                                   (r->substituted ? SUBSTITUTED : 0u) | (r->snapshots ? LOOKED_AT : 0u) |
                                   (r->fed ? FED : 0u));
}

/* Returns the kinds that have not occurred when the time is over, and 0 before that. */
static unsigned missing_kinds(void)
{
    return weir_clock_monotonic_ns() < end_ns ? 0 : ALL & ~atomic_load(&happened);
}

static bool goes_on(void)
{
    uint64_t now_ns = weir_clock_monotonic_ns();
    return now_ns < end_ns || (now_ns < last_ns && missing_kinds());
}

static uint64_t draw(struct runner *runner, uint64_t n)
{
    runner->random ^= runner->random << 13;
    runner->random ^= runner->random >> 7;
    runner->random ^= runner->random << 17;
    return runner->random % n;
}

static void sleep_us(uint64_t us)
{
    nanosleep(&(struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000}, NULL);
}

/* ---- a thread that watches a loader ---- */

struct watcher {
    pthread_t thread;
    struct weir_loader *loader;
    uint64_t pause_us, stop_after_us; /* stop_after_us: 0 = does not stop the loader */
    _Atomic bool end;
    uint64_t snapshots;
};

static void look(struct watcher *watcher, struct weir_snapshot **last)
{
    struct weir_loader *loader = watcher->loader;
    struct weir_loader_counts counts;
    char text[WEIR_FAULT_TEXT];
    uint64_t count;
    struct weir_gpu_figures figures;
    struct weir_gpu_decode_figures decoded;
    weir_loader_counts(loader, &counts, watcher->snapshots % 3 == 0);
    weir_loader_gpu_figures(loader, &figures);
    if (figures.hidden_ns > figures.copy.total_ns)
        fixture_die("more copy time is hidden than was measured");
    weir_loader_gpu_decode_figures(loader, &decoded);
    for (int i = 0; i < decoded.n_engines; i++)
        if (decoded.engines[i].groups > decoded.engines[i].frames)
            fixture_die("more groups than frames were decoded");
    for (int i = 0; weir_loader_fault(loader, i, text, &count); i++)
        if (!strstr(text, "episode_") || count == 0)
            fixture_die("a fault without a name: %s", text);
    struct weir_source_figures *sources;
    if (weir_loader_sources(loader, &sources) < 0)
        fixture_die("no memory for figures");
    for (int i = 0; i < sources->n_calls[WEIR_SOURCE_READ]; i++)
        if (sources->calls[WEIR_SOURCE_READ][i].t >= STEPS)
            fixture_die("a call with a frame that does not exist");
    weir_source_figures_free(&sources);
    struct weir_recorder *recorder = weir_loader_recorder(loader);
    struct weir_snapshot *now, *diff;
    if (!recorder)
        return;
    if (weir_snapshot_take(recorder, &now) < 0 || weir_snapshot_diff(now, *last, &diff) < 0)
        fixture_die("no memory for a snapshot");
    for (int s = 0; *last && s < WEIR_STAGE_MAX; s++)
        if (diff->stages[s].count > now->stages[s].count)
            fixture_die("the calls of stage %d decreased", s);
        else if (now->stages[s].count && now->stages[s].max_ns > UINT64_C(3600000000000))
            fixture_die("stage %d has a call of more than an hour", s);
    weir_snapshot_free(&diff);
    weir_snapshot_free(last);
    *last = now;
    watcher->snapshots++;
}

static void *watch(void *user)
{
    struct watcher *watcher = user;
    struct weir_snapshot *last = NULL;
    uint64_t begin_ns = weir_clock_monotonic_ns();
    while (!atomic_load(&watcher->end)) {
        look(watcher, &last);
        if (watcher->stop_after_us && weir_clock_monotonic_ns() - begin_ns > watcher->stop_after_us * 1000)
            weir_loader_stop(watcher->loader);
        sleep_us(watcher->pause_us);
    }
    weir_snapshot_free(&last);
    return NULL;
}

/* ---- a thread that consumes ---- */

static void ignore_stall(void *user, const char *text)
{
    (void)user;
    if (strncmp(text, "stalled: ", 9) != 0)
        fixture_die("unexpected stall report: %s", text);
}

static void choose(struct runner *r, struct weir_loader_config *config)
{
    static const int workers[] = {0, 1, 2, 3, 7};
    weir_loader_config_default(config);
    int set = (int)draw(r, DATA_SETS);
    config->data = data_sets[set];
    config->index = draw(r, 3) ? NULL : indexes[set];
    config->num_workers = workers[draw(r, 5)];
    config->prefetch = 1 + (int)draw(r, draw(r, 3) ? 3 : 12);
    config->batch_size = 1 + (int)draw(r, 4);
    config->num_epochs = 1 + (int)draw(r, 3);
    config->obs_history = 1 + (int)draw(r, 2);
    config->on_error = (enum weir_on_error)draw(r, 3);
    /* No cache, or one of up to the size of all frames. */
    config->decode_cache_bytes = draw(r, 2) ? draw(r, 400000) : 0;
    config->no_timing = draw(r, 4) == 0;
    static const char *const engines[] = {"auto", "pread", "mmap", "null", "uring"};
    config->io = engines[draw(r, uring ? 5 : 4)];
    config->io_depth = (int)draw(r, 3) * 5;
    config->direct = direct && (strcmp(config->io, "uring") == 0 || strcmp(config->io, "pread") == 0) && draw(r, 2);
    config->cold = draw(r, 6) == 0;
    config->sampling = (enum weir_sampling)draw(r, 2);
    config->train_split = 0.6;
    config->seed = draw(r, 100);
    static const enum weir_dtype dtypes[] = {WEIR_DTYPE_U8, WEIR_DTYPE_F32, WEIR_DTYPE_F16, WEIR_DTYPE_BF16};
    static const char *const decoders[] = {"turbo", "nvjpeg", "hybrid"};
    config->device = draw(r, 2) ? "cuda" : NULL;
    config->decoder = config->device ? decoders[draw(r, 3)] : "turbo";
    config->deterministic = draw(r, 2);
    config->format.dtype = dtypes[draw(r, config->device ? 4 : 2)];
    config->format.layout = (enum weir_image_layout)draw(r, 2);
    config->stall_s = draw(r, 2) ? 0.001 : 0; /* short, so that the watchdog inspects a running loader */
    config->on_stall = ignore_stall;
}

/* Keeps enough frames in flight that frames wait for the GPU, so that its second decoder is opened. */
static void choose_crowded(struct runner *r, struct weir_loader_config *config)
{
    config->data = data_sets[JPEGS];
    config->index = NULL;
    config->device = "cuda";
    config->decoder = draw(r, 2) ? "nvjpeg" : "hybrid";
    config->prefetch = 40;
    config->batch_size = 4;
    config->num_epochs = 12;
    config->decode_cache_bytes = 0;
}

static void choose_missing(struct weir_loader_config *config, bool *stop)
{
    unsigned missing = missing_kinds();
    if (missing & (FAILED | SKIPPED | SUBSTITUTED)) {
        config->data = data_sets[FORMATS + JPEGS];
        config->index = NULL;
        config->on_error = missing & FAILED    ? WEIR_ON_ERROR_FAIL
                           : missing & SKIPPED ? WEIR_ON_ERROR_SKIP
                                               : WEIR_ON_ERROR_SUBSTITUTE;
    }
    if (missing & FED) {
        config->device = "cuda";
        config->decoder = "turbo";
    }
    if (missing)
        *stop = missing == STOPPED;
}

/* Reads every byte of the batch, so that ThreadSanitizer reports rows that are still being written. */
static void read_batch(const struct weir_batch *batch)
{
    uint64_t sum = 0;
    for (int i = 0; i < batch->n_tensors; i++)
        for (size_t k = 0; k < batch->tensors[i].sample_bytes * (size_t)batch->n; k++)
            sum += ((const uint8_t *)batch->tensors[i].data)[k];
    static _Atomic uint64_t sink;
    atomic_fetch_add_explicit(&sink, sum, memory_order_relaxed);
}

/* A consumer's stream, and memory for copies of its batches. */
struct reader {
    struct weir_device *device; /* NULL = batches are in host memory */
    void *stream;
    uint8_t *memory;
};

static void open_reader(struct reader *reader, struct weir_loader *loader)
{
    *reader = (struct reader){.device = weir_device_of(loader)};
    if (reader->device && weir_device_stream(reader->device, &reader->stream, NULL) < 0)
        fixture_die("no stream");
}

static void close_reader(struct reader *reader)
{
    if (reader->device)
        weir_device_stream_free(reader->device, reader->stream);
    free(reader->memory);
}

static void look_at(struct runner *r, struct reader *reader, struct weir_loader *loader, struct weir_batch *batch)
{
    struct weir_batch host;
    struct weir_err err = WEIR_ERR_NONE;
    if (!reader->device) {
        read_batch(batch);
        return;
    }
    r->fed++;
    if (!reader->memory)
        reader->memory = malloc(weir_device_fetch_bytes(batch));
    if (weir_loader_wait(loader, batch, reader->stream, &err) < 0 ||
        (draw(r, 2) && weir_device_busy(reader->device, draw(r, 500000), reader->stream, &err) < 0))
        fixture_die("%s", err.text);
    if (draw(r, 2) && weir_device_fetch(reader->device, batch, reader->stream, reader->memory, &host, &err) < 0)
        fixture_die("%s", err.text);
}

static void release(struct runner *r, struct reader *reader, struct weir_loader *loader, struct weir_batch *batch)
{
    if (reader->device && draw(r, 4))
        weir_loader_release_after(loader, batch, reader->stream);
    else
        weir_loader_release(loader, batch);
}

/* Consumes all batches. Sometimes keeps one while it takes the next, and then releases the two in reverse order. */
static int consume(struct runner *r, struct reader *reader, struct weir_loader *loader, int slots, struct weir_err *err)
{
    struct weir_batch *kept = NULL, *batch;
    int rc;
    while ((rc = weir_loader_next(loader, &batch, err)) > 0) {
        look_at(r, reader, loader, batch);
        r->batches++;
        r->samples += (uint64_t)batch->n;
        if (draw(r, 8) == 0)
            sleep_us(draw(r, 2000));
        struct weir_batch *last = batch;
        if (kept) {
            release(r, reader, loader, batch);
            last = kept;
            kept = NULL;
        } else if (slots > 2 && draw(r, 3) == 0) {
            kept = batch;
            continue;
        }
        release(r, reader, loader, last);
    }
    return rc;
}

static void run_once(struct runner *r)
{
    struct weir_loader_config config;
    struct weir_loader *loader;
    struct weir_loader_facts facts;
    struct weir_err err = WEIR_ERR_NONE;
    choose(r, &config);
    if (draw(r, 6) == 0)
        choose_crowded(r, &config);
    bool stop = draw(r, 2) == 0;
    choose_missing(&config, &stop);
    bool whole = false;
    for (int i = 0; i < FORMATS; i++)
        whole |= config.data == data_sets[i];
    if (weir_loader_open(&loader, &config, &err) < 0) {
        if (whole || config.on_error != WEIR_ON_ERROR_FAIL)
            fixture_die("%s", err.text);
        r->failed++;
        return;
    }
    weir_loader_facts(loader, &facts);
    struct watcher watcher = {.loader = loader, .pause_us = draw(r, 3000)};
    watcher.stop_after_us = stop ? 1 + draw(r, 30000) : 0;
    pthread_create(&watcher.thread, NULL, watch, &watcher);
    struct reader reader;
    open_reader(&reader, loader);
    int rc = consume(r, &reader, loader, facts.lendable, &err);
    if (rc < 0 && (whole || config.on_error != WEIR_ON_ERROR_FAIL))
        fixture_die("%s", err.text);
    atomic_store(&watcher.end, true);
    if (draw(r, 2))
        weir_loader_finish(loader);
    pthread_join(watcher.thread, NULL);
    struct weir_loader_counts counts;
    weir_loader_counts(loader, &counts, false);
    close_reader(&reader);
    weir_loader_close(&loader);
    r->runs++;
    r->stopped += stop;
    r->failed += rc < 0;
    r->skipped += counts.skipped_samples;
    r->substituted += counts.substituted_frames;
    r->snapshots += watcher.snapshots;
}

static void *run(void *user)
{
    while (goes_on()) {
        run_once(user);
        note_kinds(user);
    }
    return NULL;
}

static void make_data(struct runner *r)
{
    static char paths[2 * DATA_SETS][512];
    for (int i = 0; i < DATA_SETS; i++) {
        char name[32];
        const char *format = formats[i % FORMATS];
        snprintf(name, sizeof name, "%s%s", format, i < FORMATS ? "" : "-damaged");
        snprintf(paths[i], sizeof paths[0], "%s", fixture_synth(name, format, EPISODES, STEPS, 32, 32, "top,wrist"));
        snprintf(paths[DATA_SETS + i], sizeof paths[0], "%.500s.index", paths[i]);
        data_sets[i] = paths[i];
        indexes[i] = paths[DATA_SETS + i];
        /* Raw frames cannot be damaged, since any byte is a valid colour. */
        for (int k = 0; k < FRAMES_BAD && i >= FORMATS + JPEGS; k++)
            fixture_damage(paths[i], (int)draw(r, EPISODES), (int)draw(r, 2), 1 + (int)draw(r, STEPS - 1),
                           FIXTURE_ZEROED);
    }
}

/* Checks whether io_uring is permitted, and whether /tmp supports direct reads. */
static void find_ways(void)
{
    char text[256];
    struct weir_loader_config config;
    struct weir_loader *loader;
    uring = weir_uring_describe(text, sizeof text);
    weir_loader_config_default(&config);
    config.data = data_sets[0];
    config.direct = true;
    config.io = "pread";
    direct = weir_loader_open(&loader, &config, NULL) == 0;
    weir_loader_close(&loader);
    fprintf(stderr, "io_uring: %s, direct reads: %s\n", uring ? "yes" : "no", direct ? "yes" : "no");
}

/* ---- a profiler that records all loaders ---- */

static void note_window(void *user, const struct weir_profiler_window *window)
{
    uint64_t *events = user;
    if (!window->trace)
        fixture_die("no trace: %s", window->error ? window->error : "no reason given");
    for (size_t i = 0; i < window->trace->n_events; i++) {
        const struct weir_event *e = &window->trace->events[i];
        if (e->start_ns < window->trace->begin_ns || e->duration_ns < 0 || !e->name)
            fixture_die("event %zu of a window is invalid", i);
    }
    *events += window->trace->n_events;
}

/* Marks steps of a few ms until the end, and records every second one. */
static uint64_t profile_until_end(void)
{
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    uint64_t events = 0;
    weir_profiler_config_default(&config);
    config.schedule = (struct weir_schedule){.wait = 1, .active = 1};
    config.record_shapes = config.profile_memory = config.gpu = true;
    config.on_trace_ready = note_window;
    config.user = &events;
    if (weir_profiler_open(&profiler, &config, NULL) < 0)
        fixture_die("no profiler");
    while (goes_on()) {
        sleep_us(3000);
        weir_profiler_step(profiler);
    }
    weir_profiler_close(&profiler);
    return events;
}

int main(int argc, char **argv)
{
    struct runner runners[RUNNERS] = {{.random = 1}}, all = {0};
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    setenv("WEIR_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
    setenv("WEIR_FAKE_JPEG", "frame_ns=200000", 1);
    fixture_open();
    make_data(&runners[0]);
    find_ways();
    end_ns = weir_clock_monotonic_ns() + (uint64_t)(seconds * 1e9);
    last_ns = end_ns + (uint64_t)(seconds * PATIENCE * 1e9);
    for (int i = 0; i < RUNNERS; i++) {
        runners[i].random = (seed * RUNNERS + (uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
        pthread_create(&runners[i].thread, NULL, run, &runners[i]);
    }
    uint64_t events = profile_until_end();
    for (int i = 0; i < RUNNERS; i++) {
        pthread_join(runners[i].thread, NULL);
        all.runs += runners[i].runs;
        all.batches += runners[i].batches;
        all.samples += runners[i].samples;
        all.stopped += runners[i].stopped;
        all.failed += runners[i].failed;
        all.skipped += runners[i].skipped;
        all.substituted += runners[i].substituted;
        all.snapshots += runners[i].snapshots;
        all.fed += runners[i].fed;
    }
    fixture_close();
    printf("%llu runs (%llu stopped, %llu failed), %llu batches, %llu samples, %llu skipped, %llu frames substituted, "
           "%llu snapshots, %llu events recorded, %llu batches on a GPU\n",
           (unsigned long long)all.runs, (unsigned long long)all.stopped, (unsigned long long)all.failed,
           (unsigned long long)all.batches, (unsigned long long)all.samples, (unsigned long long)all.skipped,
           (unsigned long long)all.substituted, (unsigned long long)all.snapshots, (unsigned long long)events,
           (unsigned long long)all.fed);
    bool all_met = events && all.runs && atomic_load(&happened) == ALL;
    if (!all_met)
        fprintf(stderr, "some kind of run never occurred; specify more seconds\n");
    return all_met ? 0 : 1;
}
