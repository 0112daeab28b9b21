/* switches.h: records when a thread was off its core and whether it was preempted or asleep, without a system call per
 * query.
 *
 * The kernel writes one thread's context switches into a ring that the thread has mapped (perf_event_open with a
 * software event that counts nothing; requires no privilege if kernel.perf_event_paranoid is at most 2). A query loads
 * one word to check for new records and reads them only if there are any. Time that a hypervisor gives to other guests
 * (steal) is not visible here, so it counts as time on the core. */
#ifndef WEIR_PROF_RECORD_SWITCHES_H
#define WEIR_PROF_RECORD_SWITCHES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec ts;
    return clock_gettime(clock, &ts) == 0 ? (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec : 0;
}

/* One thread's ring. All zero means never opened. Only the thread itself opens, reads and closes it. */
struct weir_switches {
    const _Atomic uint64_t *head; /* the kernel's write position; not NULL after weir_switches_open */
    _Atomic uint64_t tail;        /* read position */
    void *page;                   /* mapping of two pages, the kernel's metadata and the records; NULL = no ring */
    uint64_t bytes;               /* page size */
    /* The end of the last reading, as ticks and as time of the records' clock. */
    _Atomic uint64_t read_ticks, read_ns;
    /* The thread's CPU clock at one moment, and the time off the core since then. Used to compute the missing time if
     * records are lost. */
    uint64_t sync_ticks, sync_cpu_ns, off_ticks;
};

/* Called for each time off the core, in order. Times are ticks of weir_clock. */
typedef void weir_off_fn(void *user, uint64_t start, uint64_t end, bool preempted);

/* Starts recording the calling thread's context switches. Returns 0 or -errno: -EACCES or -EPERM if the kernel or a
 * container forbids it, -EPERM also if memory cannot be locked, -ENOSYS if it is unsupported, -EMFILE if the process
 * has too many open files. On failure the ring stays empty. */
int weir_switches_open(struct weir_switches *switches);
/* Tests whether context switches can be recorded. Returns 0, or -errno with the reason in why. */
int weir_switches_try(char *why, size_t size);
/* Describes an error of weir_switches_open, such as "perf_event_open: Permission denied (kernel.perf_event_paranoid is
 * 4)". */
void weir_switches_why(int rc, char *why, size_t size);
/* Frees the ring. Call this on the thread that opened it. */
void weir_switches_close(struct weir_switches *switches);
/* Resets the ring in a child of fork(), which does not inherit the mapping. */
void weir_switches_forget(struct weir_switches *switches);

static inline bool weir_switches_any(const struct weir_switches *switches)
{
    /* Relaxed, because this is only a hint; weir_switches_read loads head again. */
    return atomic_load_explicit(switches->head, memory_order_relaxed) !=
           atomic_load_explicit(&switches->tail, memory_order_relaxed);
}

/* Passes the times off the core since the last reading to `off`. Call this on the thread itself. */
void weir_switches_read(struct weir_switches *switches, weir_off_fn *off, void *user);

/* Like weir_switches_read, but for another thread, and without consuming records. now_ticks and now_ns are the current
 * time on both clocks (weir_switches_now). If the thread is off its core, that time is reported up to now. The result
 * can be inconsistent if the owner reads at the same time; the caller has to detect this and retry. */
void weir_switches_peek(const struct weir_switches *switches, uint64_t now_ticks, uint64_t now_ns, weir_off_fn *off,
                        void *user);
void weir_switches_now(uint64_t *ticks, uint64_t *ns);

/* Reads weir_clock and another clock at the same moment, until the readings took at most enough_ns. */
void weir_clock_pair(clockid_t clock, int tries, uint64_t enough_ns, uint64_t *ticks, uint64_t *ns);

#endif
