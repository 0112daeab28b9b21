/* switches.h: when a thread was off its core, and whether it was preempted or slept, without a system call per query.
 *
 * The kernel writes one thread's context switches into a ring mapped by that thread (perf_event_open with a software
 * event that counts nothing; needs no privilege where kernel.perf_event_paranoid is 2 or less). A query loads one word
 * to check for new records, and reads them only then. Time that a hypervisor gives to other guests (steal) is not seen:
 * the thread counts as on its core. */
#ifndef WEIR_PROF_RECORD_SWITCHES_H
#define WEIR_PROF_RECORD_SWITCHES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One thread's ring; all zero = never opened. Only the thread itself opens, reads and closes it. */
struct weir_switches {
    const _Atomic uint64_t *head; /* kernel's write position; never NULL after weir_switches_open */
    _Atomic uint64_t tail;        /* read position */
    void *page;                   /* the mapping: one page of kernel metadata, one page of records; NULL = no ring */
    uint64_t bytes;               /* bytes per page */
    /* One moment by our clock and by the records' clock, at the end of the last reading. */
    _Atomic uint64_t read_ticks, read_ns;
    /* The thread's CPU clock at one moment, and the time off the core since. Recovers the missing time when records
     * were lost. */
    uint64_t sync_ticks, sync_cpu_ns, off_ticks;
};

/* Receives each time off the core, in order. Times are ticks of weir_clock. */
typedef void weir_off_fn(void *user, uint64_t start, uint64_t end, bool preempted);

/* Starts to follow the calling thread. Returns 0 or -errno: -EACCES or -EPERM where the kernel or a container forbids
 * it, -ENOSYS where it is unsupported, -EPERM where memory cannot be locked, -EMFILE. On failure the ring stays empty.
 */
int weir_switches_open(struct weir_switches *switches);
/* Tests whether it works. Returns 0, or -errno with one line in why. */
int weir_switches_try(char *why, size_t size);
/* Explains a failure of weir_switches_open: "perf_event_open: Permission denied (kernel.perf_event_paranoid is 4)". */
void weir_switches_why(int rc, char *why, size_t size);
/* Releases everything. Call on the thread that opened it. */
void weir_switches_close(struct weir_switches *switches);
/* For a child of fork(), where the mapping does not exist. */
void weir_switches_forget(struct weir_switches *switches);

static inline bool weir_switches_any(const struct weir_switches *switches)
{
    /* Relaxed: only a hint; the reader of the records loads it again. */
    return atomic_load_explicit(switches->head, memory_order_relaxed) !=
           atomic_load_explicit(&switches->tail, memory_order_relaxed);
}

/* Reports the records added since the last reading. Call on the thread itself. */
void weir_switches_read(struct weir_switches *switches, weir_off_fn *off, void *user);

/* Like weir_switches_read, from another thread and without consuming records. now_ticks and now_ns are one moment by
 * both clocks (weir_switches_now). A time off the core that has not ended ends now. The result may be torn while the
 * owner reads; the caller detects that and retries. */
void weir_switches_peek(const struct weir_switches *switches, uint64_t now_ticks, uint64_t now_ns, weir_off_fn *off,
                        void *user);
void weir_switches_now(uint64_t *ticks, uint64_t *ns);

#endif
