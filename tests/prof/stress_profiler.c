/* A stress test of the profiler, also for ThreadSanitizer: threads that write every kind of record, including
 * short-lived ones, with a schedule that never ends. Memory use must not grow. Usage: stress_profiler [SECONDS] */
#include "weir/profiler.h"
#include "weir/recorder.h"
#include "weir/stages.h"
#include "weir/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 3, GROWTH_MAX = 16 << 20 };

/* AddressSanitizer delays the reuse of freed memory, which can add hundreds of MB. */
#if defined(__SANITIZE_ADDRESS__)
enum { UNDER_ASAN = true };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { UNDER_ASAN = true };
#else
enum { UNDER_ASAN = false };
#endif
#else
enum { UNDER_ASAN = false };
#endif

static _Atomic bool ended;
static struct weir_recorder *recorder;

struct seen {
    uint64_t windows, events, dropped, messages;
};

static void die(const char *text)
{
    fprintf(stderr, "stress_profiler: %s\n", text);
    exit(1);
}

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file || fscanf(file, "%*u %llu", &pages) != 1)
        die("no /proc/self/statm");
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void every_kind(uint64_t n)
{
    WEIR_RANGE("outer");
    weir_item_self = n % 5;
    {
        WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
        struct weir_lap lap = weir_lap_begin();
        WEIR_OPERATOR("inner");
        weir_lap(&lap, WEIR_STAGE_READ_BYTES);
        weir_zone_shapes(weir_shapes_intern(1, (int[]){1}, (int64_t[]){(int64_t)(n % 7)}, (const char *[]){"float"}));
        weir_lap(&lap, WEIR_STAGE_IMAGE_DECODE);
    }
    struct weir_async async = weir_async_begin(weir_name_intern("way", WEIR_CAT_LOADER_ITEM));
    weir_counter(weir_name_intern("n", WEIR_CAT_OTHER), (double)n);
    weir_instant(weir_name_intern("now", WEIR_CAT_OTHER));
    weir_memory_allocated(&n, 64, WEIR_MEMORY_CPU);
    weir_memory_freed(&n, 64, WEIR_MEMORY_CPU);
    weir_async_end(&async, n + 1);
    weir_item_self = 0;
}

static void *writer(void *user)
{
    uint64_t n = 0, lives = *(const uint64_t *)user;
    if (weir_thread_attach(recorder, "writer", WEIR_ROLE_WORKER) < 0)
        die("no counters for a thread");
    for (; !atomic_load_explicit(&ended, memory_order_relaxed) && (lives == 0 || n < lives); n++) {
        every_kind(n);
        if (n % 64 == 0)
            nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    weir_thread_detach();
    return NULL;
}

/* Runs threads one after the other, each for a thousand records. Each thread reuses the counters of the previous one.
 */
static void *breeder(void *unused)
{
    static const uint64_t lives = 1000;
    while (!atomic_load_explicit(&ended, memory_order_relaxed)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, writer, (void *)&lives) != 0)
            die("no thread");
        pthread_join(thread, NULL);
    }
    return unused;
}

static void on_window(void *user, const struct weir_profiler_window *window)
{
    struct seen *seen = user;
    const struct weir_averages_config config = {.by_shape = true};
    struct weir_averages *averages;
    if (!window->trace || window->error)
        die(window->error ? window->error : "no trace");
    if (weir_averages_open(&averages, window->trace, &config) < 0)
        die("no averages");
    weir_averages_close(&averages);
    seen->windows++;
    seen->events += window->trace->n_events;
    seen->dropped += window->dropped;
}

static void on_message(void *user, const char *line)
{
    struct seen *seen = user;
    if (!strstr(line, "window is dropped")) /* allowed: on a slow machine, windows pile up */
        die(line);
    seen->messages++;
}

/* Resident memory: maximum in the first half of the time, minimum in the last quarter, and overall maximum. Queued
 * windows on a busy machine come and go, but a leak remains visible. */
struct memory {
    uint64_t before, after, most;
};

static bool grows(const struct memory *memory)
{
    return !UNDER_ASAN && memory->after > memory->before + GROWTH_MAX;
}

static struct memory step_until(struct weir_profiler *profiler, double seconds)
{
    uint64_t begin_ns = weir_clock_monotonic_ns();
    struct memory memory = {0, UINT64_MAX, 0};
    double part;
    do {
        nanosleep(&(struct timespec){0, 2000000}, NULL);
        weir_profiler_step(profiler);
        part = (double)(weir_clock_monotonic_ns() - begin_ns) / (seconds * 1e9);
        uint64_t now = resident_bytes();
        memory.most = now > memory.most ? now : memory.most;
        if (part < 0.5)
            memory.before = now > memory.before ? now : memory.before;
        else if (part > 0.75)
            memory.after = now < memory.after ? now : memory.after;
    } while (part < 1);
    return memory;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 8;
    static const uint64_t for_ever = 0;
    struct seen seen = {0};
    struct weir_profiler_config config;
    struct weir_profiler *profiler;
    pthread_t threads[WRITERS + 1];
    weir_profiler_config_default(&config);
    config.schedule = (struct weir_schedule){.wait = 2, .warmup = 1, .active = 5};
    config.record_shapes = config.profile_memory = true;
    config.on_trace_ready = on_window;
    config.on_message = on_message;
    config.user = &seen;
    if (weir_loader_stages() < 0 || weir_recorder_open(&recorder) < 0 ||
        weir_profiler_open(&profiler, &config, NULL) < 0)
        die("no profiler");
    for (int i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, writer, (void *)&for_ever);
    pthread_create(&threads[WRITERS], NULL, breeder, NULL);
    struct memory memory = step_until(profiler, seconds);
    for (int again = 0; again < 4 && grows(&memory); again++) {
        uint64_t most = memory.most; /* a leak continues to grow from the previous maximum, but queued windows do not */
        memory = step_until(profiler, seconds);
        memory.before = most > memory.before ? most : memory.before;
    }
    atomic_store(&ended, true);
    for (int i = 0; i <= WRITERS; i++)
        pthread_join(threads[i], NULL);
    weir_profiler_close(&profiler);
    weir_recorder_close(&recorder);
    printf(
        "%llu windows, %llu events, %llu dropped, %llu windows dropped; resident memory at most %.1f MB in the first "
        "half, at least %.1f MB at the end\n",
        (unsigned long long)seen.windows, (unsigned long long)seen.events, (unsigned long long)seen.dropped,
        (unsigned long long)seen.messages, (double)memory.before / 1e6, (double)memory.after / 1e6);
    if (seen.windows == 0 || seen.events == 0)
        die("nothing was recorded");
    if (grows(&memory))
        die("memory grows");
    return 0;
}
