/* switches.h: when a thread was not on a core, and whether it was preempted or slept, without a system call for each
 * question.
 *
 * The kernel writes the context switches of one thread into a ring that the thread has mapped (perf_event_open, a
 * software event that counts nothing, which needs no privilege where kernel.perf_event_paranoid is 2 or less). Whoever
 * wants to know loads one word to see whether anything was added, and reads the records only then. The time that a
 * hypervisor gives to other machines (steal) is not seen: the thread counts as being on its core. */
#ifndef WEIR_PROF_RECORD_SWITCHES_H
#define WEIR_PROF_RECORD_SWITCHES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One thread's ring. All zero is one that was never opened. Only the thread itself opens, reads and closes it. */
struct weir_switches {
    const _Atomic uint64_t *head; /* how far the kernel has written; never NULL after weir_switches_open */
    _Atomic uint64_t tail;        /* how far its records have been read */
    void *page;                   /* the mapping: a page of the kernel's figures, a page of records; NULL = no ring */
    uint64_t bytes;               /* of a page */
    /* One moment by our clock and by that of the records, at the end of the last reading. */
    _Atomic uint64_t read_ticks, read_ns;
    /* The thread's CPU clock at some moment, and the time off the core since: what tells how much is missing when
     * records were lost. */
    uint64_t sync_ticks, sync_cpu_ns, off_ticks;
};

/* Called for each time that the thread was not on a core, in order. Times in ticks of the clock (clock.h). */
typedef void weir_off_fn(void *user, uint64_t start, uint64_t end, bool preempted);

/* Begins to follow the calling thread. 0, or -errno: -EACCES or -EPERM where the kernel or a container forbids it,
 * -ENOSYS where it does not know it, -EPERM where no memory may be locked, -EMFILE; then the ring is one that never has
 * anything. */
int weir_switches_open(struct weir_switches *switches);
/* Tries it: 0, or why not (one line) and -errno. */
int weir_switches_try(char *why, size_t size);
/* What a failure of weir_switches_open means: "perf_event_open: Permission denied (kernel.perf_event_paranoid is 4)".
 */
void weir_switches_why(int rc, char *why, size_t size);
/* Gives everything back; on the thread that opened it. */
void weir_switches_close(struct weir_switches *switches);
/* In a child after fork, where the mapping does not exist. */
void weir_switches_forget(struct weir_switches *switches);

static inline bool weir_switches_any(const struct weir_switches *switches)
{
    /* Relaxed: read only to see that there is something; who reads the records loads it again. */
    return atomic_load_explicit(switches->head, memory_order_relaxed) !=
           atomic_load_explicit(&switches->tail, memory_order_relaxed);
}

/* Hands out what was added since the last reading; on the thread itself. */
void weir_switches_read(struct weir_switches *switches, weir_off_fn *off, void *user);

/* The same for another thread that looks, without taking anything away; now_ticks and now_ns are one moment by both
 * clocks (weir_switches_now). A time off the core that has not ended ends now. What the owner reads at the same moment
 * may be torn: the caller finds that out, and asks again. */
void weir_switches_peek(const struct weir_switches *switches, uint64_t now_ticks, uint64_t now_ns, weir_off_fn *off,
                        void *user);
void weir_switches_now(uint64_t *ticks, uint64_t *ns);

#endif
