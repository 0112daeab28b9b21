#include "prof/record/switches.h"

#include "weir/base.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The ring is one page. 4 KiB hold 255 records, enough for 127 times off the core between two zone ends. The page is
 * locked memory, of which an unprivileged user can have 516 KiB per core (kernel.perf_event_mlock_kb) plus
 * RLIMIT_MEMLOCK. */
enum { RECORD_BYTES = 16, NOW_TRIES = 8 };

/* A record in the kernel's format: the header, followed by the fields that sample_id_all adds. */
struct switch_record {
    struct perf_event_header header;
    uint64_t ns;
};
_Static_assert(sizeof(struct switch_record) == RECORD_BYTES, "size of a record with sample_id_all and only the time");

static const _Atomic uint64_t never; /* stands in for the head of a ring that is not open */

/* Keeps the pair of readings that took the least time, because a time slice can end between the two. */
void weir_clock_pair(clockid_t clock, int tries, uint64_t enough_ns, uint64_t *ticks, uint64_t *ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < tries && weir_clock_to_ns(best) > enough_ns; i++) {
        uint64_t before = weir_clock_ticks();
        uint64_t at = clock_ns(clock);
        uint64_t took = weir_clock_ticks() - before;
        if (took >= best)
            continue;
        best = took;
        *ticks = before + took / 2;
        *ns = at;
    }
}

void weir_switches_now(uint64_t *ticks, uint64_t *ns)
{
    weir_clock_pair(CLOCK_MONOTONIC_RAW, NOW_TRIES, 1000, ticks, ns);
}

static void sync_with_cpu_clock(struct weir_switches *s, uint64_t ticks)
{
    s->sync_ticks = ticks;
    s->sync_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    s->off_ticks = 0;
}

int weir_switches_open(struct weir_switches *s)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TIME,
        .exclude_kernel = 1, /* nothing is sampled, and excluding the kernel requires no privilege */
        .exclude_hv = 1,
        .watermark = 1, /* with a watermark that is never reached, so no wake-ups */
        .wakeup_watermark = UINT32_MAX,
        .sample_id_all = 1,
        .use_clockid = 1,
        .context_switch = 1,
        .clockid = CLOCK_MONOTONIC_RAW,
    };
    *s = (struct weir_switches){.head = &never, .bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    void *map = mmap(NULL, 2 * s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int rc = map == MAP_FAILED ? -errno : 0;
    close(fd); /* the mapping keeps the event alive */
    if (rc < 0)
        return rc;
    uint64_t ticks, ns;
    s->page = map;
    s->head = (const _Atomic uint64_t *)&((struct perf_event_mmap_page *)map)->data_head;
    weir_switches_now(&ticks, &ns);
    atomic_store_explicit(&s->read_ticks, ticks, memory_order_relaxed);
    atomic_store_explicit(&s->read_ns, ns, memory_order_relaxed);
    sync_with_cpu_clock(s, ticks);
    return 0;
}

void weir_switches_forget(struct weir_switches *s)
{
    s->head = &never;
    atomic_store_explicit(&s->tail, 0, memory_order_relaxed);
    s->page = NULL;
}

void weir_switches_close(struct weir_switches *s)
{
    void *page = s->page;
    weir_switches_forget(s);
    if (page)
        munmap(page, 2 * s->bytes);
}

void weir_switches_why(int rc, char *why, size_t size)
{
    int paranoid = 0;
    FILE *f = rc == -EACCES || rc == -EPERM ? fopen("/proc/sys/kernel/perf_event_paranoid", "re") : NULL;
    bool known = f && fscanf(f, "%d", &paranoid) == 1;
    int n = snprintf(why, size, "perf_event_open: %s", strerror(-rc));
    if (known && n >= 0 && (size_t)n < size)
        snprintf(why + n, size - (size_t)n, " (kernel.perf_event_paranoid is %d)", paranoid);
    if (f)
        fclose(f);
}

int weir_switches_try(char *why, size_t size)
{
    struct weir_switches switches;
    weir_clock_init();
    int rc = weir_switches_open(&switches);
    weir_switches_close(&switches);
    if (rc < 0)
        weir_switches_why(rc, why, size);
    return rc;
}

/* State of a walk through the records. */
struct walk {
    const unsigned char *records;
    uint64_t bytes;
    uint64_t from_ticks, to_ticks, from_ns, to_ns; /* two moments, each on both clocks, before and after the records */
    uint64_t out, last; /* out: when the thread left its core (0 = on a core); last: time of the last record */
    bool preempted, lost;
    weir_off_fn *off;
    void *user;
};

/* Converts the records' clock to ticks by linear interpolation between the two moments. Times outside them, by at most
 * the time that a clock reading takes, use the clock's nominal rate. */
static uint64_t to_ticks(const struct walk *w, uint64_t ns)
{
    if (ns >= w->to_ns)
        return w->to_ticks + (uint64_t)((double)(ns - w->to_ns) / weir_clock_ns_per_tick());
    if (ns <= w->from_ns)
        return w->from_ticks - (uint64_t)((double)(w->from_ns - ns) / weir_clock_ns_per_tick());
    double part = (double)(ns - w->from_ns) / (double)(w->to_ns - w->from_ns);
    return w->from_ticks + (uint64_t)(part * (double)(w->to_ticks - w->from_ticks));
}

static void copy_out(const struct walk *w, uint64_t at, void *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = w->records[(at + i) % w->bytes];
}

static void walk_one(struct walk *w, const struct switch_record *record)
{
    uint64_t at = to_ticks(w, record->ns);
    w->last = at;
    if (record->header.misc & PERF_RECORD_MISC_SWITCH_OUT) {
        w->out = at;
        w->preempted = record->header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    } else if (w->out) {
        w->off(w->user, w->out, at, w->preempted);
        w->out = 0;
    }
}

static void walk(struct walk *w, uint64_t tail, uint64_t head)
{
    struct switch_record record;
    if (head - tail > w->bytes)
        return; /* inconsistent, because another thread reads while the owner does */
    while (head - tail >= sizeof record) {
        copy_out(w, tail, &record, sizeof record);
        if (record.header.size < sizeof record.header || record.header.size > head - tail)
            return; /* the kernel has overwritten this record */
        if (record.header.type == PERF_RECORD_SWITCH)
            walk_one(w, &record);
        else if (record.header.type == PERF_RECORD_LOST)
            w->lost = true;
        tail += record.header.size;
    }
}

struct sum {
    weir_off_fn *off;
    void *user;
    uint64_t ticks;
};

static void add_off(void *user, uint64_t start, uint64_t end, bool preempted)
{
    struct sum *sum = user;
    sum->ticks += end - start;
    sum->off(sum->user, start, end, preempted);
}

/* Compensates for lost records. The thread's CPU clock shows the total time off the core since it was last read. The
 * part without records is placed after the existing records. */
static void make_up(struct weir_switches *s, struct walk *w, struct sum *sum)
{
    uint64_t now = weir_clock_ticks(), cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->sync_cpu_ns;
    uint64_t cpu = (uint64_t)((double)cpu_ns / weir_clock_ns_per_tick());
    uint64_t known = cpu + s->off_ticks + sum->ticks, all = now - s->sync_ticks;
    uint64_t start = w->out ? w->out : w->last, missing = all > known ? all - known : 0;
    if (start && missing > 0) /* not counted as preempted, because the reason is lost */
        w->off(w->user, start, start + missing < now ? start + missing : now, false);
    sync_with_cpu_clock(s, now);
    sum->ticks = 0;
}

void weir_switches_read(struct weir_switches *s, weir_off_fn *off, void *user)
{
    struct perf_event_mmap_page *page = s->page;
    if (!page)
        return;
    struct sum sum = {off, user, 0};
    struct walk w = {
        .records = (const unsigned char *)page + s->bytes, .bytes = s->bytes, .off = add_off, .user = &sum};
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    w.from_ticks = atomic_load_explicit(&s->read_ticks, memory_order_relaxed);
    w.from_ns = atomic_load_explicit(&s->read_ns, memory_order_relaxed);
    /* Acquire, so that the records up to head are visible. */
    uint64_t head = atomic_load_explicit(s->head, memory_order_acquire);
    weir_switches_now(&w.to_ticks, &w.to_ns);
    bool full = head - tail > s->bytes - 2 * RECORD_BYTES;
    walk(&w, tail, head);
    if (full || w.lost)
        make_up(s, &w, &sum);
    s->off_ticks += sum.ticks;
    atomic_store_explicit(&s->tail, head, memory_order_relaxed);
    atomic_store_explicit(&s->read_ticks, w.to_ticks, memory_order_relaxed);
    atomic_store_explicit(&s->read_ns, w.to_ns, memory_order_relaxed);
    /* Release, so that the kernel overwrites the records only after they have been read. */
    atomic_store_explicit((_Atomic uint64_t *)&page->data_tail, head, memory_order_release);
}

void weir_switches_peek(const struct weir_switches *s, uint64_t now_ticks, uint64_t now_ns, weir_off_fn *off,
                        void *user)
{
    const struct perf_event_mmap_page *page = s->page;
    if (!page)
        return;
    struct walk w = {.records = (const unsigned char *)page + s->bytes,
                     .bytes = s->bytes,
                     .to_ticks = now_ticks,
                     .to_ns = now_ns,
                     .off = off,
                     .user = user};
    w.from_ticks = atomic_load_explicit(&s->read_ticks, memory_order_relaxed);
    w.from_ns = atomic_load_explicit(&s->read_ns, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);
    walk(&w, tail, atomic_load_explicit(s->head, memory_order_acquire));
    if (w.out && w.out < now_ticks)
        off(user, w.out, now_ticks, w.preempted);
}
