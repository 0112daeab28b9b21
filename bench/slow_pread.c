/* Slow storage for bench/bottlenecks.sh, to be loaded with LD_PRELOAD: reads (pread) of threads named weir-w* sleep.
 *
 *     WEIR_SLOW_US=N        microseconds that a read sleeps; 0 or unset: none does
 *     WEIR_SLOW_EVERY=N     only every Nth of them; 1
 *     WEIR_SLOW_MAP=FILE    only reads that touch these bytes: lines "FROM TO PATH"; unset: all reads
 *     WEIR_SLOW_RECORD=FILE at exit, such lines of what was read */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { RANGES_MAX = 4096 };

struct range {
    uint64_t from, to;
    char path[512];
};

static struct range map[RANGES_MAX], seen[RANGES_MAX];
static int n_map = -1, n_seen; /* -1: all reads */
static long slow_us, every = 1;
static _Atomic long reads;
static const char *record_path;
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static long number(const char *name, long missing)
{
    const char *text = getenv(name);
    return text ? atol(text) : missing;
}

static void read_map(const char *path)
{
    FILE *in = fopen(path, "r");
    n_map = 0;
    while (in && n_map < RANGES_MAX &&
           fscanf(in, "%lu %lu %511[^\n]", &map[n_map].from, &map[n_map].to, map[n_map].path) == 3)
        n_map++;
    if (in)
        fclose(in);
}

__attribute__((constructor)) static void begin(void)
{
    *(void **)&real_pread = dlsym(RTLD_NEXT, "pread");
    slow_us = number("WEIR_SLOW_US", 0);
    every = number("WEIR_SLOW_EVERY", 1);
    record_path = getenv("WEIR_SLOW_RECORD");
    if (getenv("WEIR_SLOW_MAP"))
        read_map(getenv("WEIR_SLOW_MAP"));
}

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

__attribute__((destructor)) static void end(void)
{
    FILE *out = record_path && n_seen ? fopen(record_path, "w") : NULL;
    for (int i = 0; out && i < n_seen; i++)
        fprintf(out, "%lu %lu %s\n", seen[i].from, seen[i].to, seen[i].path);
    if (out)
        fclose(out);
}

static int is_slow(const char *path, uint64_t from, uint64_t to)
{
    for (int i = 0; i < n_map; i++)
        if (from < map[i].to && to > map[i].from && strcmp(path, map[i].path) == 0)
            return 1;
    return n_map < 0;
}

ssize_t pread(int fd, void *to, size_t n, off_t offset)
{
    char name[16], link[64], path[512];
    prctl(PR_GET_NAME, name);
    if (strncmp(name, "weir-w", 6) == 0 && (slow_us > 0 || record_path)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof path - 1);
        path[length > 0 ? length : 0] = '\0';
        if (record_path)
            note(path, (uint64_t)offset, (uint64_t)offset + n);
        if (slow_us > 0 && is_slow(path, (uint64_t)offset, (uint64_t)offset + n) && reads++ % every == every - 1)
            nanosleep(&(struct timespec){slow_us / 1000000, slow_us % 1000000 * 1000}, NULL);
    }
    return real_pread(fd, to, n, offset);
}
