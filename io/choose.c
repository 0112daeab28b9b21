#include "base/resources.h"
#include "base/text.h"
#include "base/threads.h"
#include "io/ahead.h"
#include "io/file_set_priv.h"
#include "io/io_ops.h"
#include "io/storage.h"
#include "origin/origin.h"
#include "weir/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 64, THREADS_MAX = 32, TIMED_NS = 30 * 1000 * 1000, TRIES_MIN = 8 };
static const double NEARLY_ALL = 0.95;
static const double WORTH_IT = 1.1; /* minimum speed-up for which a later engine in the table is chosen */

/* Trial of one engine on its part of the extents. The task ids are indexes into this part. */
struct timed_run {
    const struct weir_extent *extents;
    uint64_t n;
    uint64_t until_ns;
    struct weir_ahead *ahead;
    uint64_t ahead_next;
    _Atomic uint64_t taken, bytes;
    _Atomic int error;
    _Atomic bool go; /* set after everything has been opened, so that opening a ring is not timed */
};

struct timed_thread {
    struct timed_run *run;
    struct weir_reader *reader;
    uint8_t *buffer;
    pthread_t thread;
};

static int next_extent(void *user, uint64_t from, uint64_t *task_id, struct weir_extent *extent)
{
    struct timed_run *run = user;
    while (!atomic_load(&run->go))
        nanosleep(&(struct timespec){0, 50000}, NULL);
    if (run->ahead_next < from)
        run->ahead_next = from;
    if (run->ahead_next >= run->n)
        return -1;
    *task_id = run->ahead_next;
    *extent = run->extents[run->ahead_next++];
    return 1;
}

static void *read_some(void *user)
{
    struct timed_thread *t = user;
    struct timed_run *run = t->run;
    uint64_t task_id;
    while (weir_clock_monotonic_ns() < run->until_ns && (task_id = atomic_fetch_add(&run->taken, 1)) < run->n) {
        const struct weir_extent *x = &run->extents[task_id];
        const uint8_t *data;
        weir_reader_begin(t->reader, run->ahead, task_id);
        int rc = weir_read(t->reader, x->file, x->offset, x->length, t->buffer, &data);
        weir_reader_end(t->reader);
        if (rc < 0)
            atomic_store(&run->error, rc);
        else
            atomic_fetch_add(&run->bytes, x->length);
    }
    return NULL;
}

static size_t longest(const struct weir_extent *extents, int n)
{
    size_t max = 1;
    for (int i = 0; i < n; i++)
        max = extents[i].length > max ? extents[i].length : max;
    return max;
}

static int open_threads(struct timed_run *run, struct timed_thread *threads, int n, const char *engine,
                        struct weir_file_set *set, size_t extent_max, struct weir_err *err)
{
    for (int i = 0; i < n; i++) {
        threads[i].run = run;
        threads[i].buffer = malloc(extent_max);
        if (!threads[i].buffer)
            return -ENOMEM;
        int rc = weir_reader_open(&threads[i].reader, engine, set, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Returns the engine's rate in bytes per second, or a negative error code. */
static double time_engine(const char *engine, const struct weir_choice_config *config,
                          const struct weir_extent *extents, int n, struct weir_err *err)
{
    struct timed_run run = {.extents = extents, .n = (uint64_t)n};
    struct timed_thread threads[THREADS_MAX] = {0};
    struct weir_file_set *set;
    int n_threads = config->threads < 1 ? 1 : config->threads < THREADS_MAX ? config->threads : THREADS_MAX;
    if (weir_file_set_copy(&set, config->set, 0) < 0)
        return -ENOMEM;
    size_t extent_max = longest(extents, n);
    struct weir_ahead_config ahead = {.engine = engine,
                                      .set = set,
                                      .depth = config->depth,
                                      .takers = n_threads,
                                      .extent_max = extent_max,
                                      .next = next_extent,
                                      .taken = &run.taken,
                                      .user = &run};
    int rc = open_threads(&run, threads, n_threads, engine, set, extent_max, err), started = 0;
    if (rc == 0 && weir_ahead_kind(engine) != WEIR_AHEAD_NOT)
        rc = weir_ahead_open(&run.ahead, &ahead, err);
    uint64_t begin_ns = weir_clock_monotonic_ns();
    run.until_ns = begin_ns + TIMED_NS;
    atomic_store(&run.go, true);
    while (rc == 0 && started < n_threads &&
           weir_thread_start(&threads[started].thread, read_some, &threads[started]) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i].thread, NULL);
    double seconds = (double)(weir_clock_monotonic_ns() - begin_ns) / 1e9;
    weir_ahead_close(&run.ahead);
    for (int i = 0; i < n_threads; i++) {
        weir_reader_close(&threads[i].reader);
        free(threads[i].buffer);
    }
    weir_file_set_close(&set);
    rc = rc < 0 ? rc : run.error;
    return rc < 0 ? rc : (double)run.bytes / seconds;
}

/* Copies the extents that are not in the page cache; with direct reads, copies all extents. Returns their number. */
static int cold_ones(const struct weir_choice_config *config, struct weir_extent *cold)
{
    int n = 0;
    for (int i = 0; i < config->n; i++)
        if (weir_file_set_align(config->set) > 1 ||
            weir_page_cache_fraction(config->set, &config->extents[i], 1) < 0.05)
            cold[n++] = config->extents[i];
    return n;
}

/* Appends one engine's result to a list, for example "pread 310 MB/s". */
static void add_words(char *text, size_t size, const char *engine, double rate, bool there)
{
    size_t used = strlen(text);
    if (!there)
        snprintf(text + used, size - used, "%s%s is not available", used ? ", " : "", engine);
    else if (rate < 0)
        snprintf(text + used, size - used, "%s%s cannot be used", used ? ", " : "", engine);
    else
        snprintf(text + used, size - used, "%s%s %.0f MB/s", used ? ", " : "", engine, rate / 1e6);
}

/* Returns the number of engines to time. Each engine gets different extents, so that no extent has been cached by an
 * earlier engine. */
static int candidates(void)
{
    const struct weir_io_ops *ops;
    int n = 0;
    for (int row = 0; (ops = weir_io_ops_at(row)); row++)
        n += ops->auto_tries;
    return n;
}

static void time_all(struct weir_choice *choice, const struct weir_choice_config *config,
                     const struct weir_extent *cold, int n)
{
    bool direct = weir_file_set_align(config->set) > 1;
    double best = 0;
    int part = n / candidates(), tried = 0;
    char words[160] = "";
    const struct weir_io_ops *ops;
    for (int row = 0; (ops = weir_io_ops_at(row)); row++) {
        struct weir_err err = WEIR_ERR_NONE;
        bool there = !ops->why_not;
        if (!ops->auto_tries || (direct && there && !ops->can_direct))
            continue;
        double rate = there ? time_engine(ops->name, config, cold + tried++ * part, part, &err) : -1;
        if (rate > best * (best > 0 ? WORTH_IT : 1)) {
            best = rate;
            choice->engine = ops->name;
        }
        add_words(words, sizeof words, ops->name, rate, there);
    }
    snprintf(choice->why, sizeof choice->why, "fastest for %s: %s",
             direct ? "direct reads" : "frames that are not in the page cache", words);
}

static uint64_t total_bytes(const struct weir_file_set *set)
{
    uint64_t bytes = 0;
    for (int i = 0; i < weir_file_set_count(set); i++)
        if (__builtin_add_overflow(bytes, weir_file_set_size(set, i), &bytes))
            return UINT64_MAX;
    return bytes;
}

void weir_io_choose(struct weir_choice *choice, const struct weir_choice_config *config)
{
    choice->engine = weir_file_set_engine(config->set);
    if (weir_file_set_origin(config->set)) {
        snprintf(choice->why, sizeof choice->why, "the files are on a server");
        return;
    }
    int samples = config->n < SAMPLES ? config->n : SAMPLES;
    bool direct = weir_file_set_align(config->set) > 1;
    double cached = direct ? 0 : weir_page_cache_fraction(config->set, config->extents, samples);
    if (cached < 0 || cached >= NEARLY_ALL) {
        if (samples == 0)
            snprintf(choice->why, sizeof choice->why, "no frame is stored as a plain extent of a file");
        else if (cached < 0)
            snprintf(choice->why, sizeof choice->why, "the kernel does not report the contents of the page cache");
        else
            snprintf(choice->why, sizeof choice->why, "%.0f %% of %d sampled frames are in the page cache",
                     100 * cached, samples);
        return;
    }
    uint64_t bytes = total_bytes(config->set), available = weir_memory_available_bytes();
    if (!direct && bytes < available / 4 * 3) {
        snprintf(choice->why, sizeof choice->why,
                 "the files (%s) fit in free memory (%s) and will be cached after one epoch",
                 weir_size((double)bytes).text, weir_size((double)available).text);
        return;
    }
    struct weir_extent *cold = malloc(sizeof *cold * (size_t)config->n);
    int n = cold ? cold_ones(config, cold) : 0;
    if (n >= candidates() * TRIES_MIN)
        time_all(choice, config, cold, n);
    else
        snprintf(choice->why, sizeof choice->why, "too few frames to time the engines");
    free(cold);
}
