/* kernel_stats.h: the kernel's counters: waits for a core, time stolen by a hypervisor, bytes read from storage. */
#ifndef WEIR_BASE_KERNEL_STATS_H
#define WEIR_BASE_KERNEL_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Nanoseconds that a thread of this process has been runnable without a core since it was created, because other
 * threads ran or its cgroup's quota was used up (/proc/self/task/TID/schedstat). False where the kernel does not count
 * it. Thread-safe; takes about 20 us. */
bool weir_run_delay_ns(pid_t tid, uint64_t *delay_ns);

/* Times summed over all CPUs since boot, in clock ticks (/proc/stat). steal is time that a hypervisor gave to other
 * machines while this one had work; busy includes it. Both are 0 if unavailable. */
struct weir_machine_time {
    uint64_t busy, steal;
};
void weir_machine_time_read(struct weir_machine_time *time, const char *root);

/* Bytes that this process has read from storage (read_bytes of /proc/self/io), without page cache hits; UINT64_MAX if
 * unavailable. Takes about 20 us. */
uint64_t weir_storage_bytes(void);

#endif
