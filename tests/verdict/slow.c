/* A library for LD_PRELOAD that slows a run down (tests/verdict/situations.py, bench/bottlenecks.sh): it can delay
 * reads in the workers and in the storage probe, slow down decoders, and make the consumer's steps uneven. Each effect
 * is off unless its variable is set.
 *
 *     WEIR_SLOW_US=N            delays each read of a worker by N microseconds
 *     WEIR_SLOW_EVERY=N         affects only every Nth read (default 1)
 *     WEIR_SLOW_FIRST=N         affects only the first N reads
 *     WEIR_SLOW_THEN_US=N, WEIR_SLOW_THEN_EVERY=N   additionally delays every Nth read, delayed already or not
 *     WEIR_SLOW_AFTER=N         does not affect the first N reads
 *     WEIR_SLOW_THREAD=NAME     affects only this thread ("weir-w1", "weir-w" for all workers, "" for all threads);
 *                               default: all workers and the storage probe
 *     WEIR_SLOW_FILE=TEXT       affects only files whose paths end with TEXT
 *     WEIR_SLOW_MAP=FILE        affects only reads of the bytes listed in FILE, as lines "FROM TO PATH"
 *     WEIR_SLOW_RECORD=FILE     at exit, writes all reads to FILE in the format of WEIR_SLOW_MAP
 *     WEIR_SLOW_BYTES_PER_S=N   bandwidth shared by all reads;  WEIR_SLOW_EACH_BYTES_PER_S=N  bandwidth of each read
 *     WEIR_SLOW_JPEG_US=N       additional CPU time per JPEG;  WEIR_SLOW_JPEG_SLEEP_US=N  additional sleep per JPEG
 *     WEIR_SLOW_JPEG_THREAD=NAME   affects only JPEGs decoded on this thread
 *     WEIR_SLOW_INFLATE_US=N    additional CPU time per chunk
 *     WEIR_SLOW_STEP_US=N, WEIR_SLOW_STEP_EVERY=N   additional time of every Nth step of the consumer */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { RANGES_MAX = 4096, PATH_BYTES = 512 };

struct range {
    uint64_t from, to;
    char path[PATH_BYTES];
};

static struct range map[RANGES_MAX], seen[RANGES_MAX];
static int n_map = -1, n_seen; /* n_map: -1 = affect all reads */
static long read_us, every, first_reads, after_reads, then_us, then_every, bytes_per_s, each_bytes_per_s;
static long jpeg_us, jpeg_sleep_us, inflate_us, step_us, step_every;
static const char *thread_name, *jpeg_thread, *file_end, *record_path;
static _Atomic long reads, steps;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, wire = PTHREAD_MUTEX_INITIALIZER;

static long number(const char *name, long missing)
{
    const char *text = getenv(name);
    return text ? atol(text) : missing;
}

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void begin(void)
{
    read_us = number("WEIR_SLOW_US", 0);
    every = number("WEIR_SLOW_EVERY", 1);
    first_reads = number("WEIR_SLOW_FIRST", 0);
    after_reads = number("WEIR_SLOW_AFTER", 0);
    then_us = number("WEIR_SLOW_THEN_US", 0);
    then_every = number("WEIR_SLOW_THEN_EVERY", 1);
    bytes_per_s = number("WEIR_SLOW_BYTES_PER_S", 0);
    each_bytes_per_s = number("WEIR_SLOW_EACH_BYTES_PER_S", 0);
    jpeg_us = number("WEIR_SLOW_JPEG_US", 0);
    jpeg_sleep_us = number("WEIR_SLOW_JPEG_SLEEP_US", 0);
    inflate_us = number("WEIR_SLOW_INFLATE_US", 0);
    step_us = number("WEIR_SLOW_STEP_US", 0);
    step_every = number("WEIR_SLOW_STEP_EVERY", 1);
    thread_name = getenv("WEIR_SLOW_THREAD");
    jpeg_thread = getenv("WEIR_SLOW_JPEG_THREAD");
    file_end = getenv("WEIR_SLOW_FILE");
    record_path = getenv("WEIR_SLOW_RECORD");
    FILE *in = getenv("WEIR_SLOW_MAP") ? fopen(getenv("WEIR_SLOW_MAP"), "r") : NULL;
    for (n_map = in ? 0 : -1; in && n_map < RANGES_MAX; n_map++)
        if (fscanf(in, "%lu %lu %511[^\n]", &map[n_map].from, &map[n_map].to, map[n_map].path) != 3)
            break;
    if (in)
        fclose(in);
}

__attribute__((destructor)) static void end(void)
{
    FILE *out = record_path && n_seen ? fopen(record_path, "w") : NULL;
    for (int i = 0; out && i < n_seen; i++)
        fprintf(out, "%lu %lu %s\n", seen[i].from, seen[i].to, seen[i].path);
    if (out)
        fclose(out);
}

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

static void burn_us(long us)
{
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000L + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

/* ---- reads ---- */

static void note(const char *path, uint64_t from, uint64_t to)
{
    pthread_mutex_lock(&lock);
    int i = 0;
    while (i < n_seen && strcmp(seen[i].path, path) != 0)
        i++;
    if (i == n_seen && n_seen < RANGES_MAX) {
        seen[n_seen] = (struct range){from, to, ""};
        snprintf(seen[n_seen++].path, sizeof seen->path, "%s", path);
    }
    if (i < n_seen) {
        seen[i].from = from < seen[i].from ? from : seen[i].from;
        seen[i].to = to > seen[i].to ? to : seen[i].to;
    }
    pthread_mutex_unlock(&lock);
}

static int is_slow(const char *path, uint64_t from, uint64_t to)
{
    size_t length = strlen(path), end_length = file_end ? strlen(file_end) : 0;
    if (length < end_length || (file_end && strcmp(path + length - end_length, file_end) != 0))
        return 0;
    for (int i = 0; i < n_map; i++)
        if (from < map[i].to && to > map[i].from && strcmp(path, map[i].path) == 0)
            return 1;
    return n_map < 0;
}

/* Transfers share the bandwidth, so only one sleeps at a time. */
static void transfer(size_t n)
{
    pthread_mutex_lock(&wire);
    sleep_us((long)((double)n * 1e6 / (double)bytes_per_s));
    pthread_mutex_unlock(&wire);
}

/* Selects the workers and the storage probe by default. Without workers the consumer reads, so WEIR_SLOW_THREAD must
 * select it. */
static int is_slow_thread(const char *name)
{
    if (thread_name)
        return strncmp(name, thread_name, strlen(thread_name)) == 0;
    return strncmp(name, "weir-w", 6) == 0 || strcmp(name, "weir-probe") == 0;
}

static void slow_read(int fd, size_t n, off_t offset)
{
    char name[16], link[64], path[PATH_BYTES];
    prctl(PR_GET_NAME, name);
    if (!is_slow_thread(name))
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    if (record_path)
        note(path, (uint64_t)offset, (uint64_t)offset + n);
    if (bytes_per_s > 0)
        transfer(n);
    if (each_bytes_per_s > 0)
        sleep_us((long)((double)n * 1e6 / (double)each_bytes_per_s));
    if (read_us == 0 || !is_slow(path, (uint64_t)offset, (uint64_t)offset + n))
        return;
    long number_of_read = reads++;
    if (number_of_read < after_reads)
        return;
    if (then_us > 0 && number_of_read % then_every == then_every - 1)
        sleep_us(then_us);
    if (number_of_read % every == every - 1 && (first_reads == 0 || number_of_read < first_reads))
        sleep_us(read_us);
}

ssize_t pread(int fd, void *to, size_t n, off_t offset)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real)
        *(void **)&real = next("pread");
    if (read_us > 0 || bytes_per_s > 0 || each_bytes_per_s > 0 || record_path)
        slow_read(fd, n, offset);
    return real(fd, to, n, offset);
}

/* ---- decoders, declared without their libraries' headers ---- */

int jpeg_start_decompress(void *decompress);
int libdeflate_zlib_decompress(void *d, const void *in, size_t in_bytes, void *out, size_t out_bytes, size_t *actual);

int jpeg_start_decompress(void *decompress)
{
    static int (*real)(void *);
    if (!real)
        *(void **)&real = next("jpeg_start_decompress");
    char name[16] = "";
    if (jpeg_thread)
        prctl(PR_GET_NAME, name);
    int slow = !jpeg_thread || strcmp(name, jpeg_thread) == 0;
    if (slow && jpeg_us > 0)
        burn_us(jpeg_us);
    if (slow && jpeg_sleep_us > 0)
        sleep_us(jpeg_sleep_us);
    return real(decompress);
}

int libdeflate_zlib_decompress(void *d, const void *in, size_t in_bytes, void *out, size_t out_bytes, size_t *actual)
{
    static int (*real)(void *, const void *, size_t, void *, size_t, size_t *);
    if (!real)
        *(void **)&real = next("libdeflate_zlib_decompress");
    if (inflate_us > 0)
        burn_us(inflate_us);
    return real(d, in, in_bytes, out, out_bytes, actual);
}

/* ---- the consumer ---- */

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
    static int (*real)(clockid_t, int, const struct timespec *, struct timespec *);
    if (!real)
        *(void **)&real = next("clock_nanosleep");
    if (step_us > 0 && getpid() == gettid() && steps++ % step_every == step_every - 1)
        sleep_us(step_us);
    return real(clock, flags, until, left);
}
