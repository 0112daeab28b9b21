#include "base/numbers.h"
#include "base/threads.h"
#include "io/storage.h"
#include "weir/base.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { SMALL_BYTES = 4096, MOST_BYTES = 1 << 20, DEPTH_MAX = 64, ALONE_MAX = 16 };
enum { ALONE_NS = 50 * 1000 * 1000, TOGETHER_NS = 300 * 1000 * 1000 };
/* Duration of the initial burst, which is not counted. Linux's blk-throttle and cloud disks grant bandwidth in slices
 * of up to 100 ms, and grant a whole slice immediately after a pause, so the first reads do not show the sustained
 * rate. */
enum { BURST_NS = 100 * 1000 * 1000 };

struct probing {
    const struct weir_file_set *set;
    const struct weir_extent *extents;
    int n;
    uint64_t burst_ns, until_ns; /* end of the burst, and end of the measurement */
    _Atomic int taken;
    _Atomic uint64_t bytes; /* bytes read after the burst */
};

struct alone {
    struct probing *p;
    struct weir_storage_probe *probe;
};

/* Returns the duration of one read in ns, or 0 if the read failed. */
static uint64_t time_read(const struct weir_file_set *set, const struct weir_extent *extent, size_t most, void *buffer)
{
    size_t length = extent->length < most ? extent->length : most;
    int fd = open(weir_file_set_path(set, extent->file), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    /* round to whole pages, because a page that is dropped only in part stays cached */
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = extent->offset / page * page,
             end = (extent->offset + length + page - 1) / page * page;
    posix_fadvise(fd, (off_t)begin, (off_t)(end - begin), POSIX_FADV_DONTNEED);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* disables the kernel's read-ahead */
    uint64_t from_ns = weir_clock_monotonic_ns();
    ssize_t got = pread(fd, buffer, length, (off_t)extent->offset);
    uint64_t took_ns = weir_clock_monotonic_ns() - from_ns;
    close(fd);
    return got == (ssize_t)length ? took_ns + 1 : 0;
}

/* Returns the median duration of consecutive single reads in seconds, or 0 if none succeeded. */
static double alone(struct probing *p, size_t most, void *buffer)
{
    uint64_t ns[ALONE_MAX], until_ns = weir_clock_monotonic_ns() + ALONE_NS;
    int n = 0;
    for (int tries = 0; tries < 2 * ALONE_MAX && n < ALONE_MAX; tries++) {
        if (n > 0 && weir_clock_monotonic_ns() > until_ns)
            break;
        int i = atomic_fetch_add(&p->taken, 1) % p->n;
        ns[n] = time_read(p->set, &p->extents[i], most, buffer);
        n += ns[n] > 0;
    }
    qsort(ns, (size_t)n, sizeof ns[0], weir_compare_uint64);
    return n > 0 ? (double)ns[n / 2] / 1e9 : 0;
}

/* Returns the part of a read's bytes that was read after the burst, assuming a constant rate. */
static uint64_t after_burst(const struct probing *p, const struct weir_extent *extent, uint64_t begin_ns,
                            uint64_t end_ns)
{
    uint64_t bytes = extent->length < MOST_BYTES ? extent->length : MOST_BYTES;
    if (begin_ns >= p->burst_ns)
        return bytes;
    if (end_ns <= p->burst_ns)
        return 0;
    return (uint64_t)((double)bytes * (double)(end_ns - p->burst_ns) / (double)(end_ns - begin_ns));
}

static void *read_some(void *user)
{
    struct probing *p = user;
    void *buffer = malloc(MOST_BYTES);
    pthread_setname_np(pthread_self(), "weir-probe");
    while (buffer && weir_clock_monotonic_ns() < p->until_ns) {
        const struct weir_extent *extent = &p->extents[atomic_fetch_add(&p->taken, 1) % p->n];
        uint64_t begin_ns = weir_clock_monotonic_ns();
        if (time_read(p->set, extent, MOST_BYTES, buffer) > 0)
            atomic_fetch_add(&p->bytes, after_burst(p, extent, begin_ns, weir_clock_monotonic_ns()));
    }
    free(buffer);
    return NULL;
}

/* Returns the rate in bytes per second with `depth` concurrent reads. */
static double together(struct probing *p, int depth)
{
    pthread_t threads[DEPTH_MAX];
    int started = 0;
    p->burst_ns = weir_clock_monotonic_ns() + BURST_NS;
    p->until_ns = p->burst_ns - BURST_NS + TOGETHER_NS;
    while (started < depth && weir_thread_start(&threads[started], read_some, p) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    uint64_t end_ns = weir_clock_monotonic_ns();
    return end_ns > p->burst_ns ? (double)atomic_load(&p->bytes) * 1e9 / (double)(end_ns - p->burst_ns) : 0;
}

/* Also runs in a separate thread, so that all reading threads have the same name. */
static void *read_alone(void *user)
{
    const struct alone *job = user;
    void *buffer = malloc(MOST_BYTES);
    pthread_setname_np(pthread_self(), "weir-probe");
    if (buffer) {
        job->probe->small_s = alone(job->p, SMALL_BYTES, buffer);
        job->probe->whole_s = alone(job->p, MOST_BYTES, buffer);
    }
    free(buffer);
    return NULL;
}

void weir_storage_probe(struct weir_storage_probe *probe, const struct weir_file_set *set,
                        const struct weir_extent *extents, int n, int depth)
{
    struct probing p = {.set = set, .extents = extents, .n = n};
    struct alone job = {&p, probe};
    pthread_t thread;
    *probe = (struct weir_storage_probe){0};
    if (n <= 0 || weir_thread_start(&thread, read_alone, &job) != 0)
        return;
    pthread_join(thread, NULL);
    depth = depth < 1 ? 1 : depth < DEPTH_MAX ? depth : DEPTH_MAX;
    probe->bytes_per_s = together(&p, depth);
    if (probe->small_s > 0 && probe->whole_s > 0 && probe->bytes_per_s > 0)
        probe->depth = depth;
}
